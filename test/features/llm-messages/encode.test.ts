/** Request bodies of the messages wire. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LlmContent, LlmMessage, LlmRequest, ResolvedModel } from '../../../features/llm/index.ts'
import { encode } from '../../../features/llm-messages/encode.ts'
import { llmRequest, toolCall, user } from '../../helpers/llm-port.ts'
import { resolvedModel } from '../../helpers/model.ts'

const model = resolvedModel({ protocol: 'compat_messages', max_context_size: 200_000, capabilities: ['thinking'] })
const body = (request: Partial<LlmRequest>, change: Partial<ResolvedModel> = {}) =>
  encode(llmRequest({ ...model, ...change }, request)).body
const messages = (given: readonly LlmMessage[], change: Partial<ResolvedModel> = {}) =>
  body({ messages: given }, change).messages as { role: string; content: Record<string, unknown>[] }[]
const assistant = (...content: LlmContent[]): LlmMessage => ({ role: 'assistant', content })
const thinking = (text: string, signature?: string): LlmContent => ({ type: 'thinking', text, ...(signature && { signature }) })
const text = (value: string): LlmContent => ({ type: 'text', text: value })
const calling = (...ids: string[]): LlmMessage => ({
  role: 'assistant',
  content: ids.map(id => toolCall(id))
})
const image = { type: 'image', media_type: 'image/png', data: 'AAAA' } as const
const result = (id: string, ...content: LlmContent[]): LlmMessage => ({
  role: 'tool',
  tool_call_id: id,
  name: 'Read',
  content,
  is_error: false
})
const cached = { cache_control: { type: 'ephemeral' } }

test('breakpoints stand on the system block, the last tool and the last block of the last message', () => {
  const tools = ['A', 'B'].map(name => ({ name, description: name, parameters: { properties: {} } }))

  assert.deepEqual(body({ system: 'be kind', tools }), {
    model: 'm',
    max_tokens: 128_000,
    system: [{ type: 'text', text: 'be kind', ...cached }],
    messages: [{ role: 'user', content: [{ type: 'text', text: 'hello', ...cached }] }],
    tools: [
      { name: 'A', description: 'A', input_schema: { type: 'object', properties: {} } },
      { name: 'B', description: 'B', input_schema: { type: 'object', properties: {} }, ...cached }
    ],
    metadata: { user_id: 'session_1' },
    thinking: { type: 'disabled' },
    stream: true
  })
})

test('the end of the last request keeps its breakpoint, so that what it wrote to the cache is found: four in all', () => {
  const tools = [{ name: 'A', description: '', parameters: {} }]
  const given = [
    user('a'),
    calling('1'),
    result('1', text('x')),
    calling('2'),
    result('2', text('y')),
    calling('3'),
    result('3', text('z'))
  ]
  const sent = body({ system: 'be kind', tools, messages: given })
  const marks = (sent.messages as { content: object[] }[]).map(({ content }) => content.filter(block => 'cache_control' in block).length)

  assert.deepEqual(marks, [0, 0, 0, 0, 1, 0, 1])
  assert.equal(JSON.stringify(sent).match(/cache_control/g)?.length, 4)
  assert.equal(JSON.stringify(body({ system: 'x', tools, messages: [...given, assistant(text('so'))] })).match(/cache_control/g)?.length, 4)
})

test('a breakpoint never stands on thinking', () => {
  const [, last] = messages([user('a'), assistant(text('b'), thinking('hm', 'sig'))])

  assert.deepEqual(last?.content, [
    { type: 'text', text: 'b', ...cached },
    { type: 'thinking', thinking: 'hm', signature: 'sig' }
  ])
})

test('the results of one step stand in one user message, images inside, and what the user says next joins them', () => {
  const wire = messages([
    user('see'),
    calling('a', 'b'),
    result('a', text('one'), image),
    { ...result('b', text('two')), is_error: true } as LlmMessage,
    { role: 'user', content: [text('and?'), { type: 'image_url', url: 'https://x/y.png' }] }
  ])

  assert.deepEqual(wire[2], {
    role: 'user',
    content: [
      {
        type: 'tool_result',
        tool_use_id: 'a',
        content: [
          { type: 'text', text: 'one' },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }
        ]
      },
      { type: 'tool_result', tool_use_id: 'b', content: [{ type: 'text', text: 'two' }], is_error: true },
      { type: 'text', text: 'and?' },
      { type: 'image', source: { type: 'url', url: 'https://x/y.png' }, ...cached }
    ]
  })
})

test('a failed result with an image is not marked as failed: the wire takes texts alone there, and the text says it', () => {
  const failed = { ...result('a', text('<system>The tool call failed.</system>'), image), is_error: true } as LlmMessage

  const [block] = messages([user('see'), calling('a'), failed])[2]?.content ?? []

  assert.equal(block?.is_error, undefined)
  assert.match(JSON.stringify(block), /The tool call failed.*image\/png/)
})

test('a video is a block like an image, in a prompt and in a result', () => {
  const video = { type: 'video', media_type: 'video/mp4', data: 'AAAA' } as const
  const block = { type: 'video', source: { type: 'base64', media_type: 'video/mp4', data: 'AAAA' } }
  const [prompt, , results] = messages([{ role: 'user', content: [text('see'), video] }, calling('a'), result('a', video)])

  assert.deepEqual(prompt?.content[1], { ...block, ...cached })
  assert.deepEqual(results?.content[0]?.content, [block])
})
test('an image at a data address goes inline', () => {
  const [first] = messages([{ role: 'user', content: [{ type: 'image_url', url: 'data:image/webp;base64,AA==' }] }])

  assert.deepEqual(first?.content, [{ type: 'image', source: { type: 'base64', media_type: 'image/webp', data: 'AA==' }, ...cached }])
})

test('empty texts and messages that are left with nothing do not go out', () => {
  const wire = messages([user('a'), assistant(text(' ')), user('b')])

  assert.deepEqual(
    wire.map(({ role, content }) => [role, content.length]),
    [['user', 2]]
  )
})

test('thinking goes back as it was signed; unsigned only to names that we do not know; of other protocols never', () => {
  const given = [
    user('a'),
    assistant(thinking('signed', 'sig'), thinking('', 'redacted:abc'), thinking('bare'), thinking('foreign', 'responses:x'), text('b')),
    user('c')
  ]
  const kinds = (name: string) => messages(given, { name })[1]?.content.map(block => block.thinking ?? block.data ?? block.text)

  assert.deepEqual(kinds('claude-sonnet-4-5'), ['signed', 'abc', 'b'])
  assert.deepEqual(kinds('m'), ['signed', 'abc', 'bare', 'b'])
})

test('when the configuration keeps no thinking, only that of the running turn goes back', () => {
  const given = [user('a'), assistant(thinking('old', 's1'), text('b')), user('c'), assistant(thinking('new', 's2'), text('d'))]

  const sent = JSON.stringify(messages(given, { thinking_keep: 'off' }))

  assert.ok(!sent.includes('old') && sent.includes('new'))
})

test('broken arguments go back as an empty object, odd ids in the alphabet of the wire', () => {
  const [, call, answer] = messages([
    user('a'),
    { role: 'assistant', content: [toolCall('a.b', { arguments: '[1' })] },
    result('a.b', text('x'))
  ])

  assert.deepEqual(call?.content, [{ type: 'tool_use', id: 'a_b', name: 'Read', input: {} }])
  assert.equal(answer?.content[0]?.tool_use_id, 'a_b')
})

test('the output limit follows the family, the model record and the request', () => {
  const limits: readonly [string, number][] = [
    ['claude-3-opus-20240229', 4096],
    ['claude-3-5-haiku-20241022', 8192],
    ['claude-3-7-sonnet-20250219', 64_000],
    ['claude-opus-4-20250514', 32_000],
    ['claude-opus-4-1-20250805', 32_000],
    ['claude-opus-4-5-20251101', 64_000],
    ['vendor/claude-sonnet-4.5', 64_000],
    ['claude-sonnet-4-20250514', 64_000],
    ['claude-sonnet-4-6', 64_000],
    ['claude-opus-4-6', 128_000],
    ['claude-haiku-6', 128_000],
    ['someone-else', 128_000]
  ]

  for (const [name, limit] of limits) assert.equal(body({}, { name }).max_tokens, limit, name)
  assert.equal(body({}, { name: 'claude-3-opus', max_output_size: 9000 }).max_tokens, 9000)
  assert.equal(body({ max_output_tokens: 500 }).max_tokens, 500)
  assert.equal(body({ max_output_tokens: 500_000 }, { name: 'claude-opus-4' }).max_tokens, 32_000)
  assert.equal(body({}, { max_context_size: 30_000 }).max_tokens, 30_000)
  assert.equal(body({ context_tokens: 29_000 }, { max_context_size: 30_000 }).max_tokens, 1000)
  assert.equal(body({ context_tokens: 31_000 }, { max_context_size: 30_000 }).max_tokens, 1)
})

test('effort becomes a budget or a level, by family and by word', () => {
  const of = (name: string, effort: string, change: Partial<ResolvedModel> = {}) => {
    const { thinking: asked, output_config } = body({ effort }, { name, ...change })
    return [asked, output_config]
  }
  const budget = (budget_tokens: number) => [{ type: 'enabled', budget_tokens }, undefined]
  const adaptive = (effort?: string) => [{ type: 'adaptive', display: 'summarized' }, effort && { effort }]

  assert.deepEqual(of('claude-sonnet-4-5', 'low'), budget(1024))
  assert.deepEqual(of('claude-sonnet-4-5', 'medium'), budget(4096))
  assert.deepEqual(of('claude-sonnet-4-5', 'on'), budget(32_000))
  assert.deepEqual(of('claude-opus-4-1', 'high'), budget(24_000))
  assert.deepEqual(of('claude-opus-4-6', 'high'), adaptive('high'))
  assert.deepEqual(of('claude-opus-4-6', 'on'), adaptive())
  assert.deepEqual(of('claude-opus-4-6', 'off'), [{ type: 'disabled' }, undefined])
  assert.deepEqual(of('claude-3-5-haiku', 'high'), [undefined, undefined])
  assert.deepEqual(of('m', 'off', { capabilities: [] }), [undefined, undefined])
  assert.deepEqual(of('m', 'low', { adaptive_thinking: true }), adaptive('low'))
  assert.deepEqual(of('claude-opus-4-6', 'low', { adaptive_thinking: false }), budget(1024))
  assert.deepEqual(of('claude-opus-4-5', 'high', { max_output_size: 1200 }), [{ type: 'disabled' }, undefined])
})

test('known families are told to keep earlier thinking, others only when the user says so; each thing names its beta', () => {
  const of = (name: string, thinking_keep?: string) => {
    const encoded = encode(llmRequest({ ...model, name, ...(thinking_keep && { thinking_keep }) }, { effort: 'high' }))
    const management = encoded.body.context_management as { edits: { keep: unknown }[] } | undefined
    return [management?.edits[0]?.keep, encoded.betas.map(beta => beta.replace(/-\d.*/, ''))]
  }

  assert.deepEqual(of('claude-sonnet-4-5'), ['all', ['interleaved-thinking', 'context-management']])
  assert.deepEqual(of('claude-opus-4-6', '3'), [{ type: 'thinking_turns', value: 3 }, ['context-management']])
  assert.deepEqual(of('claude-opus-4-6', 'off'), [undefined, []])
  assert.deepEqual(of('m'), [undefined, ['interleaved-thinking']])
  assert.deepEqual(of('m', 'all'), ['all', ['interleaved-thinking', 'context-management']])
})

test('sampling is sent while the model does not think, one of the two', () => {
  const both = { temperature: 0.5, top_p: 0.9 }

  assert.deepEqual([body({}, both).temperature, body({}, both).top_p], [0.5, undefined])
  assert.equal(body({}, { top_p: 0.9 }).top_p, 0.9)
  assert.equal(body({ effort: 'high' }, both).temperature, undefined)
})

test('a breakpoint stands on no thinking, redacted or not; thinking without a text and a signature stays away', () => {
  const given = [user('a'), assistant(text('b'), thinking('', 'redacted:abc')), assistant(thinking('c', 'sig'), thinking(''))]
  assert.deepEqual(messages(given)[1]?.content, [
    { type: 'text', text: 'b', ...cached },
    { type: 'redacted_thinking', data: 'abc' },
    { type: 'thinking', thinking: 'c', signature: 'sig' }
  ])
})
