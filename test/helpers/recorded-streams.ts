/** Streams of the four wires as providers write them, by protocol and by what happens in them. */

/** The wires that have a public client package. */
export type PublicProtocol = 'compat_chat' | 'compat_responses' | 'compat_messages' | 'compat_genai'

const sse = (...events: readonly (object | string)[]): string =>
  events.map(event => `data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`).join('')

const chat = (delta: object, finish_reason: string | null = null) => ({
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason }]
})
const chatUsage = {
  id: 'chatcmpl-1',
  choices: [],
  usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15, prompt_tokens_details: { cached_tokens: 4 } }
}
const chatCall = (index: number, fields: object, args: string) =>
  chat({ tool_calls: [{ index, ...fields, function: { ...(Object.keys(fields).length > 0 && { name: 'Read' }), arguments: args } }] })

const item = (type: 'added' | 'done', output_index: number, fields: object) => ({
  type: `response.output_item.${type}`,
  output_index,
  item: fields
})
const created = { type: 'response.created', response: { id: 'resp_1', created_at: 1, model: 'm' } }
const completed = (response: object = {}) => ({
  type: 'response.completed',
  response: {
    id: 'resp_1',
    incomplete_details: null,
    usage: {
      input_tokens: 10,
      input_tokens_details: { cached_tokens: 4 },
      output_tokens: 5,
      output_tokens_details: { reasoning_tokens: 2 }
    },
    ...response
  }
})
const message = (output_index: number, id: string, text: string) => [
  item('added', output_index, { type: 'message', id }),
  { type: 'response.output_text.delta', item_id: id, output_index, delta: text },
  item('done', output_index, { type: 'message', id })
]
const reasoning = (output_index: number, id: string, text: string) => [
  item('added', output_index, { type: 'reasoning', id, encrypted_content: null }),
  { type: 'response.reasoning_summary_part.added', item_id: id, output_index, summary_index: 0 },
  { type: 'response.reasoning_summary_text.delta', item_id: id, output_index, summary_index: 0, delta: text },
  item('done', output_index, { type: 'reasoning', id, encrypted_content: 'enc', summary: [{ type: 'summary_text', text }] })
]
const functionCall = (output_index: number, id: string, args: string) => [
  item('added', output_index, { type: 'function_call', id: `fc_${id}`, call_id: id, name: 'Read', arguments: '' }),
  { type: 'response.function_call_arguments.delta', item_id: `fc_${id}`, output_index, delta: args },
  item('done', output_index, { type: 'function_call', id: `fc_${id}`, call_id: id, name: 'Read', arguments: args, status: 'completed' })
]

const named = (...events: readonly (readonly [type: string, fields: object])[]): string =>
  events.map(([type, fields]) => `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`).join('')
type Named = readonly [type: string, fields: object]
const messageStart: Named = [
  'message_start',
  {
    message: {
      id: 'msg_1',
      type: 'message',
      model: 'm',
      role: 'assistant',
      content: [],
      usage: { input_tokens: 6, cache_read_input_tokens: 4, cache_creation_input_tokens: 0, output_tokens: 1 }
    }
  }
]
const block = (index: number, content_block: object, ...deltas: readonly object[]): Named[] => [
  ['content_block_start', { index, content_block }],
  ...deltas.map((delta): Named => ['content_block_delta', { index, delta }]),
  ['content_block_stop', { index }]
]
const textBlock = (index: number, text: string) => block(index, { type: 'text', text: '' }, { type: 'text_delta', text })
const thinkingBlock = (index: number, thinking: string) =>
  block(
    index,
    { type: 'thinking', thinking: '', signature: '' },
    { type: 'thinking_delta', thinking },
    { type: 'signature_delta', signature: 'sig' }
  )
const toolBlock = (index: number, id: string, partial_json: string) =>
  block(index, { type: 'tool_use', id, name: 'Read', input: {} }, { type: 'input_json_delta', partial_json })
const messageEnd = (stop_reason: string): Named[] => [
  ['message_delta', { delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 5 } }],
  ['message_stop', {}]
]

const candidate = (parts: readonly object[], more: object = {}) => ({
  responseId: 'r1',
  candidates: [{ content: { role: 'model', parts }, ...more }]
})
const genaiUsage = {
  usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 3, thoughtsTokenCount: 2, cachedContentTokenCount: 4, totalTokenCount: 15 }
}
const genaiCall = (args: object, more: object = {}) => ({ functionCall: { name: 'Read', args }, ...more })

/** What happens in a stream. */
export const cases = [
  'a text',
  'thinking and a text',
  'two calls side by side',
  'thinking, a call, thinking, a call',
  'an answer that was cut off',
  'an answer that was filtered',
  'an error in the middle',
  'a call with broken arguments',
  'an end without a reason',
  'a broken call after a text'
] as const
export type Case = (typeof cases)[number]

/** Absent: the wire has no such thing. */
export const recordedStreams: Readonly<Record<PublicProtocol, Readonly<Partial<Record<Case, string>>>>> = {
  compat_chat: {
    'a text': sse(
      chat({ role: 'assistant', content: '' }),
      chat({ content: 'Hel' }),
      chat({ content: 'lo' }),
      chat({}, 'stop'),
      chatUsage,
      '[DONE]'
    ),
    'thinking and a text': sse(
      chat({ role: 'assistant', reasoning_content: 'hm' }),
      chat({ content: 'Hi' }),
      chat({}, 'stop'),
      chatUsage,
      '[DONE]'
    ),
    'two calls side by side': sse(
      chatCall(0, { id: 'a', type: 'function' }, ''),
      chatCall(1, { id: 'b', type: 'function' }, ''),
      chatCall(0, {}, '{"path":"a"}'),
      chatCall(1, {}, '{"path":"b"}'),
      chat({}, 'tool_calls'),
      chatUsage,
      '[DONE]'
    ),
    'an answer that was cut off': sse(chat({ content: 'Hel' }), chat({}, 'length'), chatUsage, '[DONE]'),
    'an answer that was filtered': sse(chat({ content: 'Hel' }), chat({}, 'content_filter'), chatUsage, '[DONE]'),
    'an error in the middle': sse(chat({ content: 'Hel' }), { error: { message: 'overloaded', type: 'server_error', code: 'overloaded' } }),
    'a call with broken arguments': sse(
      chatCall(0, { id: 'a', type: 'function' }, '{"path":'),
      chat({}, 'tool_calls'),
      chatUsage,
      '[DONE]'
    ),
    'an end without a reason': sse(chat({ content: 'Hel' })),
    'a broken call after a text': sse(chat({ content: 'I call.' }), chat({}, 'MALFORMED_FUNCTION_CALL'), chatUsage, '[DONE]')
  },
  compat_responses: {
    'a text': sse(created, ...message(0, 'msg_1', 'Hello'), completed()),
    'thinking and a text': sse(created, ...reasoning(0, 'rs_1', 'hm'), ...message(1, 'msg_1', 'Hi'), completed()),
    'two calls side by side': sse(created, ...functionCall(0, 'a', '{"path":"a"}'), ...functionCall(1, 'b', '{"path":"b"}'), completed()),
    'thinking, a call, thinking, a call': sse(
      created,
      ...reasoning(0, 'rs_1', 'first'),
      ...functionCall(1, 'a', '{"path":"a"}'),
      ...reasoning(2, 'rs_2', 'second'),
      ...functionCall(3, 'b', '{"path":"b"}'),
      completed()
    ),
    'an answer that was cut off': sse(created, ...message(0, 'msg_1', 'Hel'), {
      ...completed({ incomplete_details: { reason: 'max_output_tokens' } }),
      type: 'response.incomplete'
    }),
    'an answer that was filtered': sse(created, ...message(0, 'msg_1', 'Hel'), {
      ...completed({ incomplete_details: { reason: 'content_filter' } }),
      type: 'response.incomplete'
    }),
    'an error in the middle': sse(created, {
      type: 'error',
      sequence_number: 1,
      error: { type: 'server_error', code: 'server_error', message: 'oops', param: null }
    }),
    'a call with broken arguments': sse(created, ...functionCall(0, 'a', '{"path":'), completed()),
    'an end without a reason': sse(created, ...message(0, 'msg_1', 'Hel'))
  },
  compat_messages: {
    'a text': named(messageStart, ...textBlock(0, 'Hello'), ...messageEnd('end_turn')),
    'thinking and a text': named(messageStart, ...thinkingBlock(0, 'hm'), ...textBlock(1, 'Hi'), ...messageEnd('end_turn')),
    'two calls side by side': named(
      messageStart,
      ...toolBlock(0, 'a', '{"path":"a"}'),
      ...toolBlock(1, 'b', '{"path":"b"}'),
      ...messageEnd('tool_use')
    ),
    'thinking, a call, thinking, a call': named(
      messageStart,
      ...thinkingBlock(0, 'first'),
      ...toolBlock(1, 'a', '{"path":"a"}'),
      ...thinkingBlock(2, 'second'),
      ...toolBlock(3, 'b', '{"path":"b"}'),
      ...messageEnd('tool_use')
    ),
    'an answer that was cut off': named(messageStart, ...textBlock(0, 'Hel'), ...messageEnd('max_tokens')),
    'an answer that was filtered': named(messageStart, ...textBlock(0, 'Hel'), ...messageEnd('refusal')),
    'an error in the middle': named(messageStart, ...textBlock(0, 'Hel'), [
      'error',
      { error: { type: 'overloaded_error', message: 'Overloaded' } }
    ]),
    'a call with broken arguments': named(messageStart, ...toolBlock(0, 'a', '{"path":'), ...messageEnd('tool_use')),
    'an end without a reason': named(messageStart, ...textBlock(0, 'Hel'))
  },
  compat_genai: {
    'a text': sse(candidate([{ text: 'Hel' }]), { ...candidate([{ text: 'lo' }], { finishReason: 'STOP' }), ...genaiUsage }),
    'thinking and a text': sse(candidate([{ text: 'hm', thought: true }]), {
      ...candidate([{ text: 'Hi' }], { finishReason: 'STOP' }),
      ...genaiUsage
    }),
    'two calls side by side': sse({
      ...candidate([genaiCall({ path: 'a' }, { thoughtSignature: 'sig' }), genaiCall({ path: 'b' })], { finishReason: 'STOP' }),
      ...genaiUsage
    }),
    'thinking, a call, thinking, a call': sse(candidate([{ text: 'first', thought: true }, genaiCall({ path: 'a' })]), {
      ...candidate([{ text: 'second', thought: true }, genaiCall({ path: 'b' })], { finishReason: 'STOP' }),
      ...genaiUsage
    }),
    'an answer that was cut off': sse({ ...candidate([{ text: 'Hel' }], { finishReason: 'MAX_TOKENS' }), ...genaiUsage }),
    'an answer that was filtered': sse({ ...candidate([{ text: 'Hel' }], { finishReason: 'SAFETY' }), ...genaiUsage }),
    'an error in the middle': sse(candidate([{ text: 'Hel' }]), {
      error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' }
    }),
    'an end without a reason': sse(candidate([{ text: 'Hel' }])),
    'a broken call after a text': sse(candidate([{ text: 'I call.' }]), {
      ...candidate([], { finishReason: 'MALFORMED_FUNCTION_CALL', finishMessage: 'Malformed function call' }),
      ...genaiUsage
    })
  }
}
