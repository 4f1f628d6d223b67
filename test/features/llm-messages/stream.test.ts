/** What is particular to the messages stream: blocks, signatures, figures in two places, error events, headers and paths. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createUpstream, type LlmRequest, type ResolvedModel } from '../../../features/llm/index.ts'
import { messagesAdapter } from '../../../features/llm-messages/adapter.ts'
import type { TestContextLike } from '../../../kernel/testing.ts'
import { fakeUpstream, type Step } from '../../helpers/fake-upstream.ts'
import { calls, collect, failure, joined, llmRequest } from '../../helpers/llm-port.ts'
import { resolvedModel } from '../../helpers/model.ts'
import { messagesWire } from '../../helpers/upstream-messages.ts'

async function bench(t: TestContextLike, replies: readonly (readonly Step[])[]) {
  const upstream = await fakeUpstream(t, replies, { wire: messagesWire })
  const pool = createUpstream({})
  t.after(() => pool.close())
  const adapter = messagesAdapter(pool)
  const model = resolvedModel({ protocol: 'compat_messages', base_url: upstream.url, api_key: 'k' })
  const run = (request?: Partial<LlmRequest>, change?: Partial<ResolvedModel>) =>
    collect(adapter.stream(llmRequest({ ...model, ...change }, request), new AbortController().signal))
  return { upstream, run }
}

const raw = (...events: readonly object[]): Step => ({ raw: events.map(event => `data: ${JSON.stringify(event)}\n\n`).join('') })
const start = (index: number, content_block: object) => ({ type: 'content_block_start', index, content_block })
const grow = (index: number, delta: object) => ({ type: 'content_block_delta', index, delta })
const stop = (index: number) => ({ type: 'content_block_stop', index })

test('each thinking block ends with its signature, redacted ones are kept as they are', async t => {
  const { run } = await bench(t, [
    [
      { thinking: 'first' },
      raw(stop(0), start(1, { type: 'redacted_thinking', data: 'abc' }), stop(1)),
      raw(start(2, { type: 'thinking', thinking: '' }), grow(2, { type: 'signature_delta', signature: 'only' }), stop(2)),
      raw(start(3, { type: 'text', text: 'so' }), stop(3), { type: 'message_delta', delta: { stop_reason: 'end_turn' } }),
      raw({ type: 'message_stop' }),
      { end: true }
    ],
    [{ thinking: 'again' }, { text: 'ok' }]
  ])

  const odd = (await run()).filter(part => part.type === 'thinking')
  const plain = (await run()).filter(part => part.type === 'thinking')

  assert.deepEqual(odd, [
    { type: 'thinking', text: 'first' },
    { type: 'thinking', text: '', signature: 'redacted:abc' },
    { type: 'thinking', text: '', signature: 'only' }
  ])
  assert.deepEqual(plain, [
    { type: 'thinking', text: 'again' },
    { type: 'thinking', text: '', signature: 'sig-1-0' }
  ])
})

test('a call without parameters has empty arguments, one with all of them in its beginning has those', async t => {
  const blocks = [
    start(0, { type: 'tool_use', id: 'a', name: 'Now', input: {} }),
    stop(0),
    start(1, { type: 'tool_use', id: 'b', name: 'Read', input: { path: 'x' } }),
    stop(1),
    start(2, { type: 'tool_use', id: 'c', name: 'Late', input: {} })
  ]
  const { run } = await bench(t, [[raw(...blocks), raw({ type: 'message_delta', delta: { stop_reason: 'end_turn' } }), { end: true }]])

  const parts = await run()

  assert.deepEqual(
    calls(parts).map(call => [call.id, call.arguments]),
    [
      ['a', '{}'],
      ['b', '{"path":"x"}'],
      ['c', '{}']
    ]
  )
  assert.deepEqual(parts.at(-1), { type: 'finish', reason: 'tool_calls', raw_reason: 'end_turn', response_id: 'msg_0' })
})

test('blocks that stream side by side are told apart', async t => {
  const { run } = await bench(t, [
    [
      raw(
        start(0, { type: 'tool_use', id: 'a', name: 'Read' }),
        start(1, { type: 'tool_use', id: 'b', name: 'Read' }),
        grow(1, { type: 'input_json_delta', partial_json: '{"x":' }),
        grow(0, { type: 'input_json_delta', partial_json: '{"y":2}' }),
        grow(1, { type: 'input_json_delta', partial_json: '1}' }),
        stop(1),
        stop(0)
      )
    ]
  ])

  assert.deepEqual(
    calls(await run()).map(call => call.arguments),
    ['{"y":2}', '{"x":1}']
  )
})

test('usage of the beginning stands until the end corrects it', async t => {
  const usage = { input_tokens: 3, cache_read_input_tokens: 20, cache_creation_input_tokens: 4, output_tokens: 1 }
  const { run } = await bench(t, [
    [
      raw({ type: 'message_start', message: { id: 'x', usage } }),
      { text: 'hi' },
      raw({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 9, input_tokens: null } }),
      { end: true }
    ]
  ])

  assert.deepEqual(
    (await run()).find(part => part.type === 'usage'),
    { type: 'usage', usage: { inputOther: 3, output: 9, inputCacheRead: 20, inputCacheCreation: 4 } }
  )
})

test('stop reasons beyond the common ones', async t => {
  const reasons = ['stop_sequence', 'pause_turn', 'model_context_window_exceeded', 'refusal', 'something_new']
  const { run } = await bench(
    t,
    reasons.map(finish => [{ text: 'x' }, { finish }])
  )

  const found = []
  for (const _ of reasons) found.push((await run()).at(-1))

  assert.deepEqual(
    found.map(part => part?.type === 'finish' && part.reason),
    ['completed', 'paused', 'truncated', 'filtered', 'other']
  )
})

test('an error event ends the stream with the class that its type names', async t => {
  const event = (type: string, message = 'x') => [{ text: 'half' }, raw({ type: 'error', error: { type, message } })]
  const { run } = await bench(t, [
    event('overloaded_error'),
    event('rate_limit_error'),
    event('authentication_error'),
    event('invalid_request_error', 'prompt is too long: 5 tokens > 4 maximum'),
    event('api_error')
  ])

  const found = []
  for (let at = 0; at < 5; at++) {
    const { code, retryable } = failure(await run())
    found.push([code, retryable])
  }

  assert.deepEqual(found, [
    ['provider.overloaded', true],
    ['provider.rate_limit', true],
    ['provider.auth_error', false],
    ['context.overflow', false],
    ['provider.api_error', true]
  ])
})

test('an event is what its data say; its name in the stream counts where they say nothing', async t => {
  const line = (name: string, data: object) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`
  const { type: _, ...delta } = grow(0, { type: 'text_delta', text: 'lo' })
  const events = [
    line('message', start(0, { type: 'text', text: '' })),
    line('message', grow(0, { type: 'text_delta', text: 'hel' })),
    line('content_block_delta', delta)
  ]
  const { run } = await bench(t, [[{ raw: events.join('') }]])

  assert.equal(joined(await run(), 'text'), 'hello')
})

test('unknown events and blocks are passed over', async t => {
  const { run } = await bench(t, [
    [raw({ type: 'later' }, start(0, { type: 'server_tool_use', id: 's', name: 'web' }), stop(0), {}), { text: 'hi' }]
  ])

  const parts = await run()

  assert.equal(joined(parts, 'text'), 'hi')
  assert.deepEqual(calls(parts), [])
})

test('base URLs work with and without the version; betas of the user stay; a token goes as bearer', async t => {
  const { run, upstream } = await bench(t, [[{ text: 'ok' }]])
  const own = { 'anthropic-beta': 'mine-1, context-management-2025-06-27' }

  await run()
  await run({}, { base_url: `${upstream.url}/v1?team=a` })
  await run({ effort: 'high' }, { name: 'claude-sonnet-4-5', headers: own, bearer: true, max_context_size: 100_000 })

  assert.deepEqual(
    upstream.requests.map(request => request.path),
    ['/v1/messages', '/v1/messages?team=a', '/v1/messages?beta=true']
  )
  const [plain, , thinking] = upstream.requests.map(request => request.headers)
  assert.deepEqual([plain?.['x-api-key'], plain?.authorization, plain?.['anthropic-version']], ['k', undefined, '2023-06-01'])
  assert.deepEqual([thinking?.['x-api-key'], thinking?.authorization], [undefined, 'Bearer k'])
  assert.equal(thinking?.['anthropic-beta'], 'mine-1,context-management-2025-06-27,interleaved-thinking-2025-05-14')
})

test('thinking that nobody stops ends where the next block begins', async t => {
  const { run } = await bench(t, [
    [
      raw(start(0, { type: 'thinking', thinking: '' }), grow(0, { type: 'thinking_delta', thinking: 'hm' })),
      raw(grow(0, { type: 'signature_delta', signature: 's' }), start(1, { type: 'text', text: 'so' })),
      raw({ type: 'message_delta', delta: { stop_reason: 'end_turn' } }),
      { end: true }
    ]
  ])

  assert.deepEqual((await run()).slice(0, 3), [
    { type: 'thinking', text: 'hm' },
    { type: 'thinking', text: '', signature: 's' },
    { type: 'text', text: 'so' }
  ])
})

test('figures that were counted do not become nothing at the end', async t => {
  const zeros = { input_tokens: 0, cache_read_input_tokens: 0, cache_creation_input_tokens: 0, output_tokens: 9 }
  const { run } = await bench(t, [
    [
      raw({ type: 'message_start', message: { id: 'x', usage: { input_tokens: 30, cache_read_input_tokens: 20, output_tokens: 1 } } }),
      { text: 'hi' },
      raw({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: zeros }),
      { end: true }
    ]
  ])

  assert.deepEqual(
    (await run()).find(part => part.type === 'usage'),
    { type: 'usage', usage: { inputOther: 30, output: 9, inputCacheRead: 20, inputCacheCreation: 0 } }
  )
})
