/** Request bodies of the chat completions wire. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LlmMessage, LlmRequest, ResolvedModel } from '../../../features/llm/index.ts'
import { compatChat, svc } from '../../../features/llm-chat/dialect.ts'
import { encode } from '../../../features/llm-chat/encode.ts'
import { llmRequest, toolCall, user } from '../../helpers/llm-port.ts'
import { resolvedModel } from '../../helpers/model.ts'

const model = resolvedModel({ capabilities: ['thinking'] })
const wire = (request: Partial<LlmRequest>, key?: string) => encode(llmRequest(model, request), compatChat, key)
interface WireMessage {
  readonly role: string
  readonly content: unknown
  readonly reasoning_details?: unknown
  readonly tool_call_id?: string
  readonly tool_calls?: readonly { readonly id: string; readonly function: { readonly arguments: string } }[]
}
const messages = (given: readonly LlmMessage[], key?: string) => wire({ messages: given }, key).messages as WireMessage[]
const assistant = (text: string, thinking = '', ids: readonly string[] = []): LlmMessage => ({
  role: 'assistant',
  content: [
    ...(thinking ? [{ type: 'thinking', text: thinking } as const] : []),
    ...(text ? [{ type: 'text', text } as const] : []),
    ...ids.map(id => toolCall(id))
  ]
})
const image = { type: 'image', media_type: 'image/png', data: 'AAAA' } as const

test('a plain request asks for a stream with usage, the system prompt first', () => {
  assert.deepEqual(wire({ system: 'be kind' }), {
    model: 'm',
    messages: [
      { role: 'system', content: 'be kind' },
      { role: 'user', content: 'hello' }
    ],
    stream: true,
    stream_options: { include_usage: true },
    prompt_cache_key: 'session_1'
  })
})

test('a single text is a string, images are data URLs in a list', () => {
  const [first] = messages([
    { role: 'user', content: [{ type: 'text', text: 'see' }, image, { type: 'image_url', url: 'https://x/y.png' }] }
  ])

  assert.deepEqual(first?.content, [
    { type: 'text', text: 'see' },
    { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
    { type: 'image_url', image_url: { url: 'https://x/y.png' } }
  ])
})

test('an assistant message that only calls tools has null content', () => {
  assert.deepEqual(messages([assistant('', '', ['c1'])]), [
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'c1', type: 'function', function: { name: 'Read', arguments: '{"path":"a"}' } }]
    }
  ])
})

test('reasoning goes back under the key of the upstream, and stays away while there is none', () => {
  const given = [assistant('hi', 'hmm')]

  assert.deepEqual(messages(given, 'reasoning_content'), [{ role: 'assistant', content: 'hi', reasoning_content: 'hmm' }])
  assert.deepEqual(messages(given, 'reasoning_details')[0]?.reasoning_details, [{ type: 'reasoning.text', text: 'hmm' }])
  assert.deepEqual(messages(given), [{ role: 'assistant', content: 'hi' }])
})

test('when the configuration keeps no reasoning, only that of the running turn goes back', () => {
  const result: LlmMessage = { role: 'tool', tool_call_id: 'c1', name: 'Read', content: [], is_error: false }
  const turns = [user('a'), assistant('old', 'h1'), user('b'), assistant('', 'h2', ['c1']), result, user('a reminder')]

  const body = encode(llmRequest({ ...model, thinking_keep: 'off' }, { messages: turns }), svc, 'reasoning_content')

  const sent = (body.messages as Record<string, unknown>[]).map(message => message.reasoning_content)
  assert.deepEqual(sent, [undefined, undefined, undefined, 'h2', undefined, undefined])
})

test('entries of reasoning_details go back as they came, to the model from which they came', () => {
  const seal = (entry: object, from = 'm') => `chat:${JSON.stringify({ model: from, key: 'reasoning_details', entry })}`
  const thinking = (text: string, signature: string) => ({ type: 'thinking', text, signature }) as const
  const message: LlmMessage = {
    role: 'assistant',
    content: [
      thinking('hm', seal({ type: 'reasoning.text', signature: 's', index: 0 })),
      thinking('in short', seal({ type: 'reasoning.summary', index: 1 })),
      thinking('', seal({ type: 'reasoning.encrypted', data: 'enc', id: 'r1' })),
      thinking('elsewhere', seal({ type: 'reasoning.text', signature: 'x' }, 'other')),
      thinking('', seal({ type: 'reasoning.encrypted', data: 'x' }, 'other')),
      thinking('signed by others', 'sig')
    ]
  }

  assert.deepEqual(messages([message], 'reasoning_details')[0]?.reasoning_details, [
    { type: 'reasoning.text', text: 'hm', signature: 's', index: 0 },
    { type: 'reasoning.summary', summary: 'in short', index: 1 },
    { type: 'reasoning.encrypted', data: 'enc', id: 'r1' },
    { type: 'reasoning.text', text: 'elsewhere' },
    { type: 'reasoning.text', text: 'signed by others' }
  ])
})

test('what came along with a call goes back with it, to the model from which it came', () => {
  const extra_content = { vendor: { thought_signature: 'abc' } }
  const call = (id: string, chat_model: string) => toolCall(id, { extras: { chat_model, chat_extra: JSON.stringify(extra_content) } })
  const [message] = messages([{ role: 'assistant', content: [call('c1', 'm'), call('c2', 'other')] }])

  assert.deepEqual(
    message?.tool_calls?.map(one => (one as { extra_content?: unknown }).extra_content),
    [extra_content, undefined]
  )
})

test('images of tool results follow in one user message after the whole block', () => {
  const result = (id: string): LlmMessage => ({ role: 'tool', tool_call_id: id, name: 'Read', content: [image], is_error: false })

  const roles = messages([assistant('', '', ['a', 'b']), result('a'), result('b'), user('and?')])

  assert.deepEqual(
    roles.map(message => message.role),
    ['assistant', 'tool', 'tool', 'user', 'user']
  )
  assert.equal(Array.isArray(roles[3]?.content) && roles[3].content.length, 3)
})

test('tool-call ids fit every upstream and stay distinct', () => {
  const long = 'x'.repeat(80)
  const [message, result] = messages([
    assistant('', '', [`${long}1`, `${long}2`, 'a.b']),
    { role: 'tool', tool_call_id: `${long}2`, name: 'Read', content: [], is_error: false }
  ])

  const ids = message?.tool_calls?.map(call => call.id) ?? []
  assert.equal(new Set(ids).size, 3)
  for (const id of ids) assert.match(id, /^[a-zA-Z0-9_-]{1,64}$/)
  assert.equal(result?.tool_call_id, ids[1])
})

test('a thought signature that must not go back is replaced by what its provider documents', () => {
  const extras = { chat_model: 'm', chat_extra: JSON.stringify({ google: { thought_signature: 's', other: 1 }, more: 2 }) }
  const request = { messages: [{ role: 'assistant', content: [toolCall('c1', { extras })] }], replayed_thinking: 'none' } as const
  const [message] = wire(request).messages as WireMessage[]

  assert.deepEqual((message?.tool_calls?.[0] as { extra_content?: unknown } | undefined)?.extra_content, {
    google: { thought_signature: 'skip_thought_signature_validator', other: 1 },
    more: 2
  })
})

test('broken arguments of an earlier call do not go back as they are', () => {
  const broken = ['{"pa', '', '[1]', 'null', '"text"'].map((text, at) => toolCall(`c${at}`, { arguments: text }))
  const [message] = messages([{ role: 'assistant', content: broken }])

  for (const call of message?.tool_calls ?? []) assert.equal(call.function.arguments, '{}')
})

test('the output limit has the name that the model family takes, and a ceiling', () => {
  assert.equal(wire({ max_output_tokens: 500 }).max_tokens, 500)
  assert.equal(wire({ max_output_tokens: 10_000_000 }).max_tokens, 131072)
  assert.equal(encode(llmRequest({ ...model, name: 'o3-mini', max_output_size: 7 }), compatChat, undefined).max_completion_tokens, 7)
  assert.equal(encode(llmRequest({ ...model, max_output_size: 7 }), svc, undefined).max_completion_tokens, 7)
})

test('svc: without a limit of its own an answer may take what the window has left', () => {
  const limit = (change: Partial<ResolvedModel>, context_tokens?: number) =>
    encode(llmRequest({ ...model, ...change }, context_tokens === undefined ? {} : { context_tokens }), svc, undefined)
      .max_completion_tokens

  assert.equal(limit({}), 1000)
  assert.equal(limit({}, 300), 700)
  assert.equal(limit({}, 5000), 1)
  assert.equal(limit({ max_context_size: 1_000_000 }), 131_072)
  assert.equal('max_tokens' in wire({}), false)
})

test('svc: keywords about the schema itself are left out, names and data are not', () => {
  const parameters = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: 'x',
    type: 'object',
    properties: {
      $schema: { type: 'string', $comment: 'a name', default: { $id: 'data' } },
      definitions: { type: 'array', items: { $anchor: 'a', type: 'string' } }
    }
  }
  const [tool] = encode(llmRequest(model, { tools: [{ name: 'T', description: '', parameters }] }), svc, undefined).tools as {
    function: { parameters: unknown }
  }[]

  assert.deepEqual(tool?.function.parameters, {
    type: 'object',
    properties: {
      $schema: { type: 'string', default: { $id: 'data' } },
      definitions: { type: 'array', items: { type: 'string' } }
    }
  })
})

test('compat_chat: effort on with thinking in the history asks for medium; off uses the off level of the model', () => {
  assert.equal(wire({ effort: 'on', messages: [assistant('hi', 'hmm')] }).reasoning_effort, 'medium')
  assert.equal(wire({ effort: 'off', messages: [assistant('hi', 'hmm')] }).reasoning_effort, undefined)
  assert.equal(encode(llmRequest({ ...model, off_effort: 'minimal' }), compatChat, undefined).reasoning_effort, 'minimal')
})

test('svc: built-in functions, and schemas without references', () => {
  const parameters = {
    type: 'object',
    properties: { at: { $ref: '#/$defs/Point' } },
    $defs: { Point: { type: 'object', properties: { next: { $ref: '#/$defs/Point' } } } }
  }
  const tools = [
    { name: '$search', description: '', parameters: {} },
    { name: 'Move', description: 'moves', parameters }
  ]

  assert.deepEqual(encode(llmRequest(model, { tools }), svc, undefined).tools, [
    { type: 'builtin_function', function: { name: '$search' } },
    {
      type: 'function',
      function: {
        name: 'Move',
        description: 'moves',
        parameters: { type: 'object', properties: { at: { type: 'object', properties: { next: { type: 'object' } } } } }
      }
    }
  ])
})

test('a schema without a type gets one, the whole and every value in it', () => {
  const parameters = {
    properties: {
      any: { description: 'x' },
      kind: { enum: ['a', 'b'] },
      size: { const: 3 },
      list: { items: {} },
      table: { properties: { deep: {} } },
      choice: { anyOf: [{ type: 'string' }, { type: 'null' }] }
    }
  }
  const sent = (dialect: typeof svc, given: object = parameters) => {
    const [tool] = encode(llmRequest(model, { tools: [{ name: 'T', description: '', parameters: { ...given } }] }), dialect, undefined)
      .tools as {
      function: { parameters: unknown }
    }[]
    return tool?.function.parameters
  }

  for (const dialect of [compatChat, svc]) {
    assert.deepEqual(sent(dialect, {}), { type: 'object', properties: {} })
    assert.deepEqual(sent(dialect), {
      type: 'object',
      properties: {
        any: { type: 'string', description: 'x' },
        kind: { type: 'string', enum: ['a', 'b'] },
        size: { type: 'integer', const: 3 },
        list: { type: 'array', items: { type: 'string' } },
        table: { type: 'object', properties: { deep: { type: 'string' } } },
        choice: parameters.properties.choice
      }
    })
  }
})

test('a model that thinks gets no sampling; one that does not, or is told not to, does', () => {
  const sampled = { temperature: 0.5, top_p: 0.9 }
  const sent = (dialect: typeof svc, change: object, effort = 'on') => {
    const { temperature, top_p } = encode(llmRequest({ ...model, ...sampled, ...change }, { effort }), dialect, undefined)
    return [temperature, top_p]
  }

  for (const dialect of [compatChat, svc]) {
    assert.deepEqual(sent(dialect, { capabilities: [] }), [0.5, 0.9])
    assert.deepEqual(sent(dialect, { capabilities: ['thinking'] }), [undefined, undefined])
    assert.deepEqual(sent(dialect, { capabilities: ['thinking'], off_effort: 'none' }, 'off'), [0.5, 0.9])
    assert.deepEqual(sent(dialect, { capabilities: ['always_thinking'], off_effort: 'none' }, 'off'), [undefined, undefined])
  }
  assert.deepEqual(sent(compatChat, { capabilities: ['thinking'] }, 'off'), [undefined, undefined], 'nothing on the wire switches it off')
})

test('svc: a model that cannot think gets no thinking field', () => {
  assert.equal('thinking' in encode(llmRequest({ ...model, capabilities: [] }, { effort: 'high' }), svc, undefined), false)
})

test('a system prompt that was rendered anew goes out, also in front of the same messages', () => {
  const given = [user('hello')]
  const systems = ['first', 'second', 'second'].map(system => (wire({ messages: given, system }).messages as WireMessage[])[0]?.content)
  assert.deepEqual(systems, ['first', 'second', 'second'])
})

test('svc: as long as all reasoning is kept, an answer without any has the field for it, too', () => {
  const history: LlmMessage[] = [user('a'), { role: 'assistant', content: [{ type: 'text', text: 'b' }, toolCall('c')] }]
  const field = (dialect: typeof svc, effort: string, change: object = {}) => {
    const body = encode(llmRequest({ ...model, ...change }, { messages: history, effort }), dialect, 'reasoning_content')
    return (body.messages as Record<string, unknown>[]).at(-1)?.reasoning_content
  }

  assert.equal(field(svc, 'on'), ' ')
  assert.equal(field(svc, 'off'), undefined)
  assert.equal(field(svc, 'on', { thinking_keep: 'off' }), undefined)
  assert.equal(field(svc, 'on', { capabilities: [] }), undefined)
  assert.equal(field(compatChat, 'high'), undefined)
})

test('svc is told what to keep of earlier thinking, unless the configuration keeps none', () => {
  const thinking = (thinking_keep?: string) =>
    encode(llmRequest({ ...model, ...(thinking_keep ? { thinking_keep } : {}) }, { effort: 'high' }), svc, undefined).thinking
  assert.deepEqual(thinking(), { type: 'enabled', effort: 'high', keep: 'all' })
  assert.deepEqual(thinking('off'), { type: 'enabled', effort: 'high' })
})
