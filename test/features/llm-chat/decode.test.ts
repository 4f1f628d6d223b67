/** Chunks of the chat completions wire, also as upstreams really send them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LlmPart } from '../../../features/llm/index.ts'
import { ChatDecoder, failureOf } from '../../../features/llm-chat/decode.ts'
import { calls, joined } from '../../helpers/llm-port.ts'

/** Feeds deltas as chunks of the first choice and ends the stream. */
function decode(
  deltas: readonly Record<string, unknown>[],
  finish: string | null = 'stop',
  decoder = new ChatDecoder({ model: 'm' }, ids())
) {
  const parts: LlmPart[] = []
  for (const delta of deltas) decoder.feed({ id: 'r1', choices: [{ delta }] }, parts)
  decoder.feed({ choices: [{ delta: {}, finish_reason: finish }] }, parts)
  return [...parts, ...decoder.end('t1')]
}
const ids = () => {
  let made = 0
  return () => `made_up_${++made}`
}
const call = (fields: Record<string, unknown>) => ({ tool_calls: [fields] })

test('of several choices the first is the answer, in whatever chunks and order they come', () => {
  const decoder = new ChatDecoder({ model: 'm' }, ids())
  const parts: LlmPart[] = []
  const feed = (...choices: object[]) => decoder.feed({ choices }, parts)
  feed({ index: 1, delta: { content: 'other' } })
  feed({ index: 1, delta: { content: ' one' } }, { index: 0, delta: { content: 'this' } })
  feed({ index: 1, delta: {}, finish_reason: 'length' })
  const early = decoder.finished
  feed({ delta: { content: ' one' }, finish_reason: 'stop' })

  assert.deepEqual([joined(parts, 'text'), early, decoder.finished], ['this one', false, true])
  assert.equal(failureOf({ choices: [{ index: 1, delta: {}, finish_reason: 'error' }] }), undefined)
})

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
  const parts = decode(
    [{ my_thoughts: 'yes', reasoning_content: 'no' }],
    'stop',
    new ChatDecoder({ model: 'm', configured: 'my_thoughts' })
  )

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

  assert.deepEqual(calls(parts), [{ id: 'made_up_1', name: 'Read', arguments: '{"path":"a"}' }])
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
    const decoder = new ChatDecoder({ model: 'm' })
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
  const decoder = new ChatDecoder({ model: 'm' })
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

test('calls without number and id are told apart by their names, or by arguments that are whole', () => {
  const whole = (name: string, text: string, fields: object = {}) => call({ ...fields, function: { name, arguments: text } })
  const names = (parts: LlmPart[]) => calls(parts).map(one => [one.name, one.arguments])

  for (const numbered of [{}, { index: 0 }]) {
    assert.deepEqual(names(decode([whole('Read', '{"a":1}', numbered), whole('Glob', '{"b":2}', numbered)])), [
      ['Read', '{"a":1}'],
      ['Glob', '{"b":2}']
    ])
    assert.deepEqual(names(decode([whole('Read', '{"a":1}', numbered), whole('Read', '{"a":2}', numbered)])), [
      ['Read', '{"a":1}'],
      ['Read', '{"a":2}']
    ])
    assert.deepEqual(names(decode([whole('Read', '{"a"', numbered), whole('Read', ':1}', numbered), whole('Read', '', numbered)])), [
      ['Read', '{"a":1}']
    ])
  }
})

test('an upstream that makes up another id for every piece makes one call', () => {
  const piece = (id: string, fields: object) => call({ index: 0, id, function: fields })

  const parts = decode([
    piece('r1', { name: 'Read', arguments: '{"a"' }),
    piece('r2', { arguments: ':' }),
    piece('r3', { name: 'Read', arguments: '1}' })
  ])

  assert.deepEqual(calls(parts), [{ id: 'r1', name: 'Read', arguments: '{"a":1}' }])
})

test('a name that is repeated with every piece does not make the arguments be read again and again', t => {
  const pieces = ['{"path":"', ...Array.from({ length: 500 }, () => 'a{b}c'), '"}']
  const { parse } = JSON
  for (const id of ['one', undefined]) {
    const reads = t.mock.method(JSON, 'parse', parse)

    const parts = decode(pieces.map(args => call({ index: 0, ...(id && { id }), function: { name: 'Read', arguments: args } })))

    reads.mock.restore()
    assert.ok(reads.mock.callCount() < 5, `read ${reads.mock.callCount()} times`)
    assert.deepEqual(
      calls(parts).map(one => one.arguments),
      [pieces.join('')]
    )
  }
})

test('what comes along with a call stays with it', () => {
  const extra_content = { vendor: { thought_signature: 'abc' } }
  const parts = decode([call({ index: 0, id: 'c1', extra_content, function: { name: 'Read', arguments: '{}' } })])

  const found = parts.find(part => part.type === 'tool_call')
  assert.deepEqual(found?.type === 'tool_call' && found.extras, { chat_model: 'm', chat_extra: JSON.stringify(extra_content) })
})

test('reasoning is sealed where the answer begins, with the field that carried it', () => {
  const parts = decode([{ reasoning: 'hm', content: null }, { reasoning: ' so', content: '' }, { content: 'ok' }])

  assert.deepEqual(parts.slice(0, 4), [
    { type: 'thinking', text: 'hm' },
    { type: 'thinking', text: ' so' },
    { type: 'thinking', text: '', signature: 'chat:{"model":"m","key":"reasoning"}' },
    { type: 'text', text: 'ok' }
  ])
})

test('entries of reasoning_details are put together and sealed one by one, encrypted ones too', () => {
  const detail = (...reasoning_details: object[]) => ({ reasoning: 'the same again', reasoning_details })
  const parts = decode([
    detail({ type: 'reasoning.text', text: 'a', index: 0, signature: null }),
    detail({ type: 'reasoning.text', text: 'b', index: 0 }),
    detail({ type: 'reasoning.text', signature: 's', index: 0 }, { type: 'reasoning.encrypted', data: 'enc', index: 1 }),
    { content: 'ok' }
  ])
  const seal = (entry: object) => `chat:${JSON.stringify({ model: 'm', key: 'reasoning_details', entry })}`

  assert.deepEqual(parts.slice(0, 5), [
    { type: 'thinking', text: 'a' },
    { type: 'thinking', text: 'b' },
    { type: 'thinking', text: '', signature: seal({ type: 'reasoning.text', index: 0, signature: 's' }) },
    { type: 'thinking', text: '', signature: seal({ type: 'reasoning.encrypted', data: 'enc', index: 1 }) },
    { type: 'text', text: 'ok' }
  ])
})

test('a field that carried reasoning before is looked at first; when it is gone another one counts', () => {
  const known = () => new ChatDecoder({ model: 'm', known: 'reasoning' })

  assert.equal(joined(decode([{ reasoning_content: 'x', reasoning: 'y' }], 'stop', known()), 'thinking'), 'y')
  assert.equal(joined(decode([{ reasoning_content: 'x' }], 'stop', known()), 'thinking'), 'x')
})

test('content may be a list of parts, thinking among them', () => {
  const parts = decode([
    { content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] }] },
    { content: [{ type: 'text', text: 'o' }] },
    { content: 'k' }
  ])

  assert.deepEqual([joined(parts, 'thinking'), joined(parts, 'text')], ['hm', 'ok'])
})

test('reasons of other families have their meaning, those of a breakdown are errors', () => {
  const reason = (raw: string) => {
    const last = decode([{ content: 'x' }], raw).at(-1)
    return last?.type === 'finish' && last.reason
  }

  assert.deepEqual(['model_length', 'max_tokens', 'sensitive'].map(reason), ['truncated', 'truncated', 'filtered'])
  for (const finish_reason of [
    'error',
    'network_error',
    'insufficient_system_resource',
    'MALFORMED_FUNCTION_CALL',
    'function_call_filter: MALFORMED_FUNCTION_CALL',
    'TOO_MANY_TOOL_CALLS',
    'MISSING_THOUGHT_SIGNATURE'
  ]) {
    assert.ok(failureOf({ choices: [{ delta: {}, finish_reason }] }))
  }
  assert.deepEqual(failureOf({ choices: [{ error: { code: 502, message: 'x' }, finish_reason: 'stop' }] }), { code: 502, message: 'x' })
  assert.equal(failureOf({ choices: [{ delta: {}, finish_reason: 'stop' }] }), undefined)
})

test('figures that were counted do not become nothing at the end', () => {
  const decoder = new ChatDecoder({ model: 'm' })
  const counted = { choices: [{ delta: { content: 'x' }, finish_reason: 'stop' }], usage: { prompt_tokens: 10, completion_tokens: 3 } }
  for (const each of [counted, { choices: [], usage: {} }, { choices: [], usage: { prompt_tokens: 0, completion_tokens: 0 } }])
    decoder.feed(each, [])

  const usage = decoder.end(undefined).find(part => part.type === 'usage')

  assert.deepEqual(usage?.usage, { inputOther: 10, output: 3, inputCacheRead: 0, inputCacheCreation: 0 })
})

test('usage in every chunk: the last one counts; cached tokens also under the name of hits', () => {
  const decoder = new ChatDecoder({ model: 'm' })
  const chunk = (completion_tokens: number) => ({
    usage: { prompt_tokens: 10, completion_tokens, prompt_cache_hit_tokens: 4 },
    choices: []
  })
  for (const each of [chunk(1), chunk(2), { usage: null, choices: [] }, chunk(3)]) decoder.feed(each, [])

  const part = decoder.end(undefined)[0]
  assert.deepEqual(part?.type === 'usage' && part.usage, { inputOther: 6, output: 3, inputCacheRead: 4, inputCacheCreation: 0 })
})

test('an id that comes behind the name belongs to the call that waits for it, with what came along before', () => {
  const parts = decode([
    call({ index: 0, function: { name: 'Read', arguments: '' }, extra_content: { google: { thought_signature: 's' } } }),
    call({ index: 0, id: 'late', function: { name: 'Read', arguments: '{}' } })
  ])
  assert.deepEqual(
    parts.flatMap(part => (part.type === 'tool_call' ? [[part.id, part.extras?.chat_extra]] : [])),
    [['late', '{"google":{"thought_signature":"s"}}']]
  )
})

test('entries of reasoning_details with numbers of their own are sealed one by one', () => {
  const entry = (index: number, text: string) => ({ reasoning_details: [{ type: 'reasoning.text', index, text }] })
  const parts = decode([entry(0, 'a'), entry(0, 'b'), entry(1, 'c')])
  assert.deepEqual(
    parts.flatMap(part => (part.type === 'thinking' ? [part.signature ? JSON.parse(part.signature.slice(5)).entry.index : part.text] : [])),
    ['a', 'b', 0, 'c', 1]
  )
})
