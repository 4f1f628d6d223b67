/** From a model request to the body of `POST /chat/completions`. Pure. */
import { CallIds, isImage, type LlmContent, type LlmMessage, type LlmRequest, type LlmToolCall, textOf } from '../llm/index.ts'
import type { Dialect } from './dialect.ts'

type WireMessage = Record<string, unknown>
type AssistantMessage = Extract<LlmMessage, { role: 'assistant' }>
type ToolMessage = Extract<LlmMessage, { role: 'tool' }>

const OUTPUT_CEILING_TOKENS = 131_072

/** The request body. `reasoning_key` is the field in which this upstream carries reasoning, when known. */
export function encode(request: LlmRequest, dialect: Dialect, reasoning_key: string | undefined): Record<string, unknown> {
  const { model } = request
  const limit = request.max_output_tokens ?? model.max_output_size
  return {
    model: model.name,
    messages: encodeMessages(request, model.thinking_keep === 'off' ? undefined : reasoning_key),
    stream: true,
    stream_options: { include_usage: true },
    ...(request.tools.length > 0 && { tools: request.tools.map(dialect.tool) }),
    ...(request.cache_key !== '' && { prompt_cache_key: request.cache_key }),
    ...dialect.thinking(request),
    ...(limit !== undefined && { [dialect.limitKey(model.name)]: Math.max(1, Math.min(limit, OUTPUT_CEILING_TOKENS)) }),
    ...(model.temperature !== undefined && { temperature: model.temperature }),
    ...(model.top_p !== undefined && { top_p: model.top_p })
  }
}

function encodeMessages({ system, messages }: LlmRequest, reasoning_key: string | undefined): WireMessage[] {
  const ids = new CallIds()
  const wire: WireMessage[] = system === '' ? [] : [{ role: 'system', content: system }]
  let images: LlmContent[] = []
  const flushImages = () => {
    if (images.length > 0)
      wire.push({ role: 'user', content: userContent([{ type: 'text', text: 'Images of the tool results above:' }, ...images]) })
    images = []
  }
  for (const message of messages) {
    if (message.role === 'tool') {
      wire.push(toolMessage(message, ids))
      // Images cannot stand in a tool message, and nothing may stand between the results of one step.
      images.push(...message.content.filter(isImage))
      continue
    }
    flushImages()
    if (message.role === 'user') wire.push({ role: 'user', content: userContent(message.content) })
    else wire.push(assistantMessage(message, ids, reasoning_key))
  }
  flushImages()
  return wire
}

type WirePart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image_url'; readonly image_url: { readonly url: string } }

/** A single text as string, else parts: some upstreams take no lists where there are no images. */
function userContent(parts: readonly LlmContent[]): string | WirePart[] {
  const wire: WirePart[] = []
  for (const part of parts) {
    if (part.type === 'text' && part.text !== '') wire.push({ type: 'text', text: part.text })
    if (part.type === 'image') wire.push({ type: 'image_url', image_url: { url: `data:${part.media_type};base64,${part.data}` } })
    if (part.type === 'image_url') wire.push({ type: 'image_url', image_url: { url: part.url } })
  }
  const only = wire[0]
  if (only === undefined) return ''
  return wire.length === 1 && only.type === 'text' ? only.text : wire
}

function assistantMessage({ content, tool_calls }: AssistantMessage, ids: CallIds, reasoning_key: string | undefined): WireMessage {
  const text = textOf(content)
  const thinking = content.map(part => (part.type === 'thinking' ? part.text : '')).join('')
  return {
    role: 'assistant',
    // Without text and without calls there is nothing that null could stand for.
    content: text === '' && tool_calls.length > 0 ? null : text,
    ...(thinking !== '' && reasoning_key !== undefined && { [reasoning_key]: reasoningValue(reasoning_key, thinking) }),
    ...(tool_calls.length > 0 && { tool_calls: tool_calls.map(call => toolCall(call, ids)) })
  }
}

function reasoningValue(key: string, text: string): unknown {
  return key === 'reasoning_details' ? [{ type: 'reasoning.text', text }] : text
}

function toolCall({ id, name, arguments: text }: LlmToolCall, ids: CallIds): WireMessage {
  // Upstreams parse the arguments of earlier calls; one broken call must not spoil the rest of the session.
  return { id: ids.of(id), type: 'function', function: { name, arguments: isJson(text) ? text : '{}' } }
}

function toolMessage({ tool_call_id, content }: ToolMessage, ids: CallIds): WireMessage {
  const text = textOf(content)
  const fallback = content.some(isImage) ? '(the result is an image; it follows)' : ''
  return { role: 'tool', tool_call_id: ids.of(tool_call_id), content: text === '' ? fallback : text }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false // the question was whether it parses
  }
}
