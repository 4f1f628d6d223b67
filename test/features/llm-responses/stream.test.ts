/** What is particular to the responses stream: items, summaries, encrypted reasoning, failures in words of the protocol. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createUpstream } from '../../../features/llm/index.ts'
import { responsesAdapter } from '../../../features/llm-responses/adapter.ts'
import { readReplayData, writeReplayData } from '../../../features/llm-responses/replay-data.ts'
import type { TestContextLike } from '../../../kernel/testing.ts'
import { fakeUpstream, type Step } from '../../helpers/fake-upstream.ts'
import { calls, collect, failure, joined, llmRequest } from '../../helpers/llm-port.ts'
import { resolvedModel } from '../../helpers/model.ts'
import { responsesWire } from '../../helpers/upstream-responses.ts'

async function bench(t: TestContextLike, replies: readonly (readonly Step[])[]) {
  const upstream = await fakeUpstream(t, replies, { wire: responsesWire })
  const pool = createUpstream({})
  t.after(() => pool.close())
  const adapter = responsesAdapter(pool)
  const model = resolvedModel({ protocol: 'compat_responses', base_url: `${upstream.url}?api-version=1` })
  return { upstream, run: () => collect(adapter.stream(llmRequest(model), new AbortController().signal)) }
}

const raw = (...events: readonly object[]): Step => ({ raw: events.map(event => `data: ${JSON.stringify(event)}\n\n`).join('') })
const done = (output_index: number, item: object) => ({ type: 'response.output_item.done', output_index, item })

test('reasoning ends with its encrypted content, summaries are a blank line apart', async t => {
  const delta = (text: string) => ({ type: 'response.reasoning_summary_text.delta', output_index: 0, delta: text })
  const part = { type: 'response.reasoning_summary_part.added', output_index: 0 }
  const { run, upstream } = await bench(t, [
    [
      raw(part, delta('one'), part, delta('two'), done(0, { type: 'reasoning', id: 'rs_1', encrypted_content: 'enc' })),
      raw(done(1, { type: 'reasoning', id: 'rs_2', summary: [], encrypted_content: 'more' })),
      { text: 'ok' }
    ]
  ])

  const parts = await run()

  assert.equal(joined(parts, 'thinking'), 'one\n\ntwo')
  assert.deepEqual(
    parts.flatMap(one => (one.type === 'thinking' && one.signature ? [one.signature] : [])),
    ['responses:rs_1:enc', 'responses:rs_2:more']
  )
  assert.equal(upstream.requests[0]?.path, '/v1/responses?api-version=1')
})

test('plain reasoning text is thinking too', async t => {
  const { run } = await bench(t, [[raw({ type: 'response.reasoning_text.delta', output_index: 0, delta: 'hm' }), { text: 'ok' }]])

  assert.equal(joined(await run(), 'thinking'), 'hm')
})

test('what was never streamed is taken from the finished items', async t => {
  const { run } = await bench(t, [
    [
      raw(
        done(0, { type: 'reasoning', id: 'rs', summary: [{ type: 'summary_text', text: 'hm' }] }),
        done(1, { type: 'message', content: [{ type: 'output_text', text: 'whole' }] }),
        done(2, { type: 'function_call', call_id: 'c1', name: 'Read', arguments: '{"a":1}' }),
        {
          type: 'response.output_item.added',
          output_index: 3,
          item: { type: 'function_call', call_id: 'c2', name: 'Read', arguments: '' }
        },
        { type: 'response.function_call_arguments.done', output_index: 3, arguments: '{"b":2}' },
        done(3, { type: 'function_call', call_id: 'c2', name: 'Read', arguments: '{"b":2}' })
      )
    ]
  ])

  const parts = await run()

  assert.deepEqual([joined(parts, 'thinking'), joined(parts, 'text')], ['hm', 'whole'])
  assert.deepEqual(calls(parts), [
    { id: 'c1', name: 'Read', arguments: '{"a":1}' },
    { id: 'c2', name: 'Read', arguments: '{"b":2}' }
  ])
})

test('a message keeps the phase that it belongs to', async t => {
  const said = (output_index: number, delta: string) => ({ type: 'response.output_text.delta', output_index, delta })
  const { run } = await bench(t, [
    [
      raw(said(0, 'I look.'), done(0, { type: 'message', phase: 'commentary', content: [] })),
      raw(said(1, 'It is so.'), done(1, { type: 'message', phase: 'final_answer', content: [] })),
      raw(done(2, { type: 'message', phase: 'final_answer', content: [] }))
    ]
  ])

  assert.deepEqual(
    (await run()).filter(part => part.type === 'text'),
    [
      { type: 'text', text: 'I look.' },
      { type: 'text', text: '', signature: 'responses:commentary' },
      { type: 'text', text: 'It is so.' },
      { type: 'text', text: '', signature: 'responses:final_answer' }
    ]
  )
})

test('a refusal is text', async t => {
  const { run } = await bench(t, [[raw({ type: 'response.refusal.delta', output_index: 0, delta: 'no' })]])

  assert.equal(joined(await run(), 'text'), 'no')
})

test('unknown reasons are other, and the last event ends the stream at once', async t => {
  const { run } = await bench(t, [[{ text: 'x' }, { finish: 'tired' }]])

  assert.deepEqual((await run()).at(-1), { type: 'finish', reason: 'other', raw_reason: 'tired', response_id: 'resp_0' })
})

test('a response that calls itself incomplete is so whatever its last event is called', async t => {
  const ended = (response: object): readonly Step[] => [
    { text: 'half' },
    raw({ type: 'response.completed', response: { id: 'r', ...response } }),
    { end: true }
  ]
  const { run } = await bench(t, [
    ended({ status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } }),
    ended({ status: 'incomplete', incomplete_details: null }),
    ended({ status: 'completed', incomplete_details: null })
  ])

  const reasons = []
  for (let at = 0; at < 3; at++) reasons.push((await run()).flatMap(part => (part.type === 'finish' ? [part.reason] : [])))

  assert.deepEqual(reasons.flat(), ['truncated', 'other', 'completed'])
})

test('failures in the stream have the class that their code names', async t => {
  const failed = (code: string, message = 'x') => [
    { text: 'half' },
    raw({ type: 'response.failed', response: { error: { code, message } } })
  ]
  const { run } = await bench(t, [
    failed('rate_limit_exceeded'),
    failed('context_length_exceeded'),
    failed('insufficient_quota', 'You exceeded your current quota'),
    failed('server_error'),
    failed('invalid_image_format'),
    [raw({ type: 'error', code: 'server_error', message: 'The model is overloaded', param: null })],
    [raw({ type: 'error', error: { type: 'invalid_request_error', message: 'no' } })],
    [raw({ type: 'response.failed', response: {} })]
  ])

  const found = []
  for (let at = 0; at < 8; at++) {
    const { code, retryable } = failure(await run())
    found.push([code, retryable])
  }

  assert.deepEqual(found, [
    ['provider.rate_limit', true],
    ['context.overflow', false],
    ['provider.rate_limit', false],
    ['provider.api_error', true],
    ['provider.api_error', false],
    ['provider.overloaded', true],
    ['provider.api_error', false],
    ['provider.api_error', true]
  ])
})

test('text that comes only with its end, or only with the last event, is not lost', async t => {
  const output = [
    { type: 'reasoning', id: 'rs', summary: [], content: [{ type: 'reasoning_text', text: 'hm' }], encrypted_content: 'enc' },
    { type: 'message', content: [{ type: 'output_text', text: 'whole' }] },
    { type: 'function_call', call_id: 'c1', name: 'Read', arguments: '{"a":1}' },
    { type: 'web_search_call', id: 'ws_1' }
  ]
  const text = { type: 'response.output_text.done', output_index: 0, content_index: 0, text: 'whole' }
  const completed = (all: object[]) => raw({ type: 'response.completed', response: { id: 'r', output: all } })
  const { run } = await bench(t, [
    [raw(text, done(0, output[1] as object)), completed([output[1] as object]), { end: true }],
    [completed(output), { end: true }]
  ])

  const late = await run()
  const last = await run()

  assert.equal(joined(late, 'text'), 'whole')
  assert.deepEqual([joined(last, 'thinking'), joined(last, 'text')], ['hm', 'whole'])
  assert.deepEqual(calls(last), [{ id: 'c1', name: 'Read', arguments: '{"a":1}' }])
})

test('items that all have the same place are told apart by their ids, and those whose ids change by their places', async t => {
  const added = (output_index: number, item: object) => ({ type: 'response.output_item.added', output_index, item })
  const text = (item_id: string, output_index: number, delta: string) => ({
    type: 'response.output_text.delta',
    item_id,
    output_index,
    delta
  })
  const args = (item_id: string, output_index: number, delta: string) => ({
    type: 'response.function_call_arguments.delta',
    item_id,
    output_index,
    delta
  })
  const call = (id: string, x: number, whole = false) => ({
    type: 'function_call',
    id,
    call_id: `c${x}`,
    name: 'Read',
    arguments: whole ? `{"x":${x}}` : ''
  })
  const message = (id: string) => ({ type: 'message', id, content: [{ type: 'output_text', text: 'Hello' }] })
  const samePlace = [
    ...[added(0, { type: 'message', id: 'm1', content: [] }), text('m1', 0, 'Hel'), text('m1', 0, 'lo')],
    ...[added(0, call('f1', 1)), added(0, call('f2', 2)), args('f1', 0, '{"x":'), args('f2', 0, '{"x":2}'), args('f1', 0, '1}')],
    ...[done(0, message('m1')), done(0, call('f1', 1, true)), done(0, call('f2', 2, true))]
  ]
  const otherIds = [
    ...[added(0, { type: 'message', id: 'a', content: [] }), text('b', 0, 'Hel'), text('c', 0, 'lo'), done(0, message('d'))],
    ...[added(1, call('e', 1)), args('f', 1, '{"x":1}'), done(1, call('g', 1, true))],
    ...[added(2, call('h', 2)), args('i', 2, '{"x":2}'), done(2, call('j', 2, true))]
  ]
  const onlyWhole = [done(0, message('m1')), done(0, call('f1', 1, true)), done(0, call('f2', 2, true))]
  const unnamed = onlyWhole.map(({ item, ...event }) => ({ ...event, item: { ...item, id: undefined } }))

  for (const events of [samePlace, otherIds, onlyWhole, unnamed]) {
    const { run } = await bench(t, [[raw(...events)]])
    const parts = await run()
    assert.equal(joined(parts, 'text'), 'Hello')
    assert.deepEqual(calls(parts), [
      { id: 'c1', name: 'Read', arguments: '{"x":1}' },
      { id: 'c2', name: 'Read', arguments: '{"x":2}' }
    ])
  }
})

test('what was streamed is not said again by the last event, also where nothing has a number', async t => {
  const item = { type: 'message', id: 'm1', content: [{ type: 'output_text', text: 'once' }] }
  const { run } = await bench(t, [
    [
      raw(
        { type: 'response.output_text.delta', item_id: 'm1', delta: 'once' },
        { type: 'response.completed', response: { id: 'r1', output: [item] } }
      )
    ]
  ])
  assert.equal(joined(await run(), 'text'), 'once')
})

test('encrypted reasoning comes back whole, whatever its id is made of', () => {
  const replay = readReplayData(writeReplayData({ id: 'rs:1', encrypted_content: 'a:b' }))
  assert.deepEqual(replay, { id: 'rs1', encrypted_content: 'a:b' })
})
