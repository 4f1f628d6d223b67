/** Chunks of the chat completions wire, also as upstreams really send them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LlmPart } from '../../../features/llm/index.ts'
import { ChatDecoder } from '../../../features/llm-chat/decode.ts'
import { calls, joined } from '../../helpers/llm-port.ts'

/** Feeds deltas as chunks of the first choice and ends the stream. */
function decode(
  deltas: readonly Record<string, unknown>[],
  finish: string | null = 'stop',
  decoder = new ChatDecoder(undefined, () => 'made_up')
) {
  const parts: LlmPart[] = []
  for (const delta of deltas) decoder.feed({ id: 'r1', choices: [{ delta }] }, parts)
  decoder.feed({ choices: [{ delta: {}, finish_reason: finish }] }, parts)
  return [...parts, ...decoder.end('t1')]
}
const call = (fields: Record<string, unknown>) => ({ tool_calls: [fields] })

test('the first field that carries reasoning is the one that counts', () => {
  const parts = decode([{ reasoning: 'a' }, { reasoning: 'b', reasoning_content: 'x' }])

  assert.equal(joined(parts, 'thinking'), 'ab')
})

test('reasoning arrives as text or as a list of details', () => {
  assert.equal(
    joined(
      decode([
        {
          reasoning_details: [
            { type: 'reasoning.text', text: 'a' },
            { type: 'reasoning.summary', summary: 'b' }
          ]
        }
      ]),
      'thinking'
    ),
    'ab'
  )
})

test('a configured key wins over what else is there', () => {
  const parts = decode([{ my_thoughts: 'yes', reasoning_content: 'no' }], 'stop', new ChatDecoder('my_thoughts'))

  assert.equal(joined(parts, 'thinking'), 'yes')
})

test('a call is held back until its id and name are known, then its arguments follow', () => {
  const parts = decode([
    call({ index: 0, function: { arguments: '{"a"' } }),
    call({ index: 0, id: 'c1' }),
    call({ index: 0, function: { name: 'Read', arguments: ':1' } }),
    call({ index: 0, function: { arguments: '}' } })
  ])

  assert.deepEqual(parts.slice(0, 3), [
    { type: 'tool_call', id: 'c1', name: 'Read' },
    { type: 'tool_arguments', id: 'c1', text: '{"a":1' },
    { type: 'tool_arguments', id: 'c1', text: '}' }
  ])
})

test('parallel calls that all carry index 0, or none, are told apart by their ids', () => {
  for (const index of [{ index: 0 }, {}]) {
    const parts = decode([
      call({ ...index, id: 'c1', function: { name: 'Read', arguments: '{}' } }),
      call({ ...index, id: 'c2', function: { name: 'Glob', arguments: '{"x":' } }),
      call({ ...index, function: { arguments: '1}' } })
    ])

    assert.deepEqual(calls(parts), [
      { id: 'c1', name: 'Read', arguments: '{}' },
      { id: 'c2', name: 'Glob', arguments: '{"x":1}' }
    ])
  }
})

test('an upstream that repeats id and name in every piece makes one call', () => {
  const piece = (text: string) => call({ index: 0, id: 'c1', function: { name: 'Read', arguments: text } })

  assert.deepEqual(calls(decode([piece('{"a"'), piece(':1}')])), [{ id: 'c1', name: 'Read', arguments: '{"a":1}' }])
})

test('a call without id gets one, a call without name is dropped, arguments may be an object', () => {
  const parts = decode([
    call({ index: 0, function: { name: 'Read', arguments: { path: 'a' } } }),
    call({ index: 1, id: 'lost', function: { arguments: '{}' } })
  ])

  assert.deepEqual(calls(parts), [{ id: 'made_up', name: 'Read', arguments: '{"path":"a"}' }])
})

test('stop after tool calls means tool_calls; unknown reasons are other', () => {
  const reason = (parts: LlmPart[]) => parts.at(-1)

  const { raw_reason, ...finish } = reason(decode([call({ id: 'c1', function: { name: 'Read' } })])) as Extract<LlmPart, { type: 'finish' }>
  assert.deepEqual([finish, raw_reason], [{ type: 'finish', reason: 'tool_calls', response_id: 'r1', trace_id: 't1' }, 'stop'])
  assert.deepEqual(reason(decode([{ content: 'x' }], 'constructor')), {
    type: 'finish',
    reason: 'other',
    raw_reason: 'constructor',
    response_id: 'r1',
    trace_id: 't1'
  })
})

test('usage is found at the top, in the first choice, with cached tokens in either place, and never negative', () => {
  const usage = (chunk: Record<string, unknown>) => {
    const decoder = new ChatDecoder(undefined)
    decoder.feed(chunk, [])
    const part = decoder.end(undefined)[0]
    return part?.type === 'usage' ? part.usage : undefined
  }

  const expected = { inputOther: 6, output: 3, inputCacheRead: 4, inputCacheCreation: 0 }
  assert.deepEqual(usage({ choices: [], usage: { prompt_tokens: 10, completion_tokens: 3, cached_tokens: 4 } }), expected)
  assert.deepEqual(
    usage({ choices: [{ usage: { prompt_tokens: 10, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 4 } } }] }),
    expected
  )
  assert.equal(usage({ usage: { prompt_tokens: 1, cached_tokens: 4 } })?.inputOther, 0)
})

test('nulls and missing fields are no trouble', () => {
  const decoder = new ChatDecoder(undefined)
  const parts: LlmPart[] = []

  for (const chunk of [
    {},
    { choices: null, usage: null },
    { choices: [{ delta: null }] },
    { choices: [{ delta: { content: null, tool_calls: null } }] }
  ]) {
    decoder.feed(chunk, parts)
  }

  assert.deepEqual(parts, [])
})
