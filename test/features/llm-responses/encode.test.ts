/** Request bodies of the responses wire. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LlmMessage, LlmRequest, ResolvedModel } from '../../../features/llm/index.ts'
import { encode } from '../../../features/llm-responses/encode.ts'
import { llmRequest, toolCall, user } from '../../helpers/llm-port.ts'
import { resolvedModel } from '../../helpers/model.ts'

const model = resolvedModel({ protocol: 'compat_responses', capabilities: ['thinking'] })
const body = (request: Partial<LlmRequest>, change: Partial<ResolvedModel> = {}) => encode(llmRequest({ ...model, ...change }, request))
const input = (messages: readonly LlmMessage[], change: Partial<ResolvedModel> = {}) =>
  body({ messages }, change).input as Record<string, unknown>[]
const image = { type: 'image', media_type: 'image/png', data: 'AAAA' } as const

test('a plain request streams, stores nothing, and names the session as cache key', () => {
  const tools = [{ name: 'Read', description: 'reads', parameters: { type: 'object' } }]

  assert.deepEqual(body({ system: 'be kind', tools }), {
    model: 'm',
    instructions: 'be kind',
    input: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'hello' }] }],
    tools: [{ type: 'function', name: 'Read', description: 'reads', parameters: { type: 'object', properties: {} }, strict: false }],
    prompt_cache_key: 'session_1',
    store: false,
    stream: true
  })
})

test('images stand in user messages and in tool results', () => {
  const png = { type: 'input_image', image_url: 'data:image/png;base64,AAAA' }
  const [first, , result] = input([
    { role: 'user', content: [{ type: 'text', text: 'see' }, image, { type: 'image_url', url: 'https://x/y.png' }] },
    { role: 'assistant', content: [toolCall('a')] },
    { role: 'tool', tool_call_id: 'a', name: 'Read', content: [{ type: 'text', text: 'one' }, image], is_error: false }
  ])

  assert.deepEqual(first?.content, [{ type: 'input_text', text: 'see' }, png, { type: 'input_image', image_url: 'https://x/y.png' }])
  assert.deepEqual(result?.output, [{ type: 'input_text', text: 'one' }, png])
})

test('reasoning goes back when it is encrypted for this protocol and something came of it', () => {
  const thinking = (text: string, signature?: string) => ({ type: 'thinking', text, ...(signature && { signature }) }) as const
  const ours = thinking('hm', 'responses:rs_1:en:c')
  const answer = { type: 'text', text: 'b' } as const
  const assistant = (...content: (typeof answer | ReturnType<typeof thinking>)[]): LlmMessage => ({
    role: 'assistant',
    content
  })
  const types = (...messages: LlmMessage[]) => input([user('a'), ...messages]).map(item => item.type)

  const [, item] = input([user('a'), assistant(ours, answer)])
  assert.deepEqual(item, { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'hm' }], encrypted_content: 'en:c' })
  assert.deepEqual(input([assistant(thinking('', 'responses::enc'), answer)])[0], {
    type: 'reasoning',
    summary: [],
    encrypted_content: 'enc'
  })
  assert.deepEqual(types(assistant(thinking('bare'), thinking('foreign', 'sig'), answer)), ['message', 'message'])
  assert.deepEqual(types(assistant(ours)), ['message'])
  const kept = input([user('a'), assistant(ours, answer), user('c'), assistant(ours, answer)], { thinking_keep: 'off' })
  assert.deepEqual(
    kept.map(one => one.type),
    ['message', 'message', 'message', 'reasoning', 'message']
  )
})

test('a text goes back with the phase that it was said in; texts of other protocols belong to none', () => {
  const say = (text: string, signature?: string) => ({ type: 'text', text, ...(signature && { signature }) }) as const
  const items = input([
    {
      role: 'assistant',
      content: [say('first', 'responses:commentary'), toolCall('a'), say('then', 'responses:final_answer'), say('other', 'x:y')]
    }
  ])

  assert.deepEqual(
    items.map(({ type, phase }) => phase ?? type),
    ['commentary', 'function_call', 'final_answer', 'message']
  )
})

test('an answer goes back with every field that strict servers demand, under an id of its own', () => {
  const say = (text: string) => ({ type: 'text', text }) as const
  const items = input([
    user('a'),
    { role: 'assistant', content: [say('b'), toolCall('x'), say('c')] },
    user('d'),
    { role: 'assistant', content: [say('e')] }
  ])
  const answers = items.filter(({ role }) => role === 'assistant')

  assert.deepEqual(
    answers.map(({ id: _, ...rest }) => rest),
    ['b', 'c', 'e'].map(text => ({
      type: 'message',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text, annotations: [] }]
    }))
  )
  assert.equal(new Set(answers.map(({ id }) => id)).size, 3)
  for (const { id } of answers) assert.match(String(id), /^msg_\w{1,60}$/)
})

test('broken arguments go back as an empty object, long ids cut and still distinct', () => {
  const long = 'x'.repeat(80)
  const items = input([
    { role: 'assistant', content: ['1', '2'].map(end => toolCall(long + end, { arguments: '{"pa' })) },
    { role: 'tool', tool_call_id: `${long}2`, name: 'Read', content: [], is_error: false }
  ])

  assert.equal(items[0]?.arguments, '{}')
  assert.notEqual(items[0]?.call_id, items[1]?.call_id)
  assert.equal(items[2]?.call_id, items[1]?.call_id)
  assert.match(String(items[1]?.call_id), /^[a-zA-Z0-9_-]{1,64}$/)
})

test('effort off uses the off level of the model; limits are passed on', () => {
  assert.deepEqual(body({}, { off_effort: 'minimal' }).reasoning, { effort: 'minimal', summary: 'auto' })
  assert.equal(body({}, { max_output_size: 700 }).max_output_tokens, 700)
  assert.equal(body({ max_output_tokens: 3 }, { max_output_size: 700 }).max_output_tokens, 16)
})

test('sampling is passed on unless the model thinks', () => {
  const sampled = (change: Partial<ResolvedModel>) => {
    const { temperature, top_p } = body({}, { temperature: 0.5, top_p: 0.9, ...change })
    return [temperature, top_p]
  }
  assert.deepEqual(sampled({ capabilities: [] }), [0.5, 0.9])
  assert.deepEqual(sampled({ off_effort: 'none' }), [0.5, 0.9])
  assert.deepEqual(sampled({}), [undefined, undefined])
})
