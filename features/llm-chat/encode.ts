/** From a model request to the body of `POST /chat/completions`. Pure. */
import {
  argumentsText,
  type CallIds,
  callsOf,
  GrowingWire,
  holdsThinking,
  isMedium,
  type LlmCallPart,
  type LlmContent,
  type LlmMessage,
  type LlmRequest,
  samplingOf,
  textOf,
  thinkingFrom,
  withoutRefused
} from '../llm/index.ts'
import type { Dialect } from './dialect.ts'
import { readExtra, readReplayData, unsigned } from './replay-data.ts'

type WireMessage = Record<string, unknown>
type AssistantMessage = Extract<LlmMessage, { role: 'assistant' }>
type ToolMessage = Extract<LlmMessage, { role: 'tool' }>

const OUTPUT_CEILING_TOKENS = 131_072

/** Thinking of an answer that has none, for servers that miss the field: some take no empty text either. */
const BLANK = ' '

/** The request body. `reasoning_key` is the field in which this upstream carries reasoning, when known. */
export function encode(request: LlmRequest, dialect: Dialect, reasoning_key: string | undefined): Record<string, unknown> {
  const { model } = request
  const limit = request.max_output_tokens ?? dialect.limit(request)
  const body = {
    model: model.name,
    messages: encodeMessages(request, dialect, reasoning_key),
    stream: true,
    stream_options: { include_usage: true },
    ...(request.tools.length > 0 && { tools: request.tools.map(dialect.tool) }),
    ...(request.cache_key !== '' && { prompt_cache_key: request.cache_key }),
    ...dialect.thinking(request),
    ...(limit !== undefined && { [limitKey(request, dialect)]: Math.max(1, Math.min(limit, OUTPUT_CEILING_TOKENS)) }),
    ...samplingOf(model, dialect.off(request))
  }
  return withoutRefused(body, request)
}

/** Servers know one of two names; one that refused the first is told the other. */
function limitKey({ model, left_out }: LlmRequest, dialect: Dialect): string {
  const key = dialect.limitKey(model.name)
  if (!left_out?.includes(key)) return key
  return key === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens'
}

/** The field in which this model carried reasoning earlier in the conversation. */
export function replayedKey({ model, messages }: LlmRequest): string | undefined {
  if (!holdsThinking(messages)) return undefined
  for (let at = messages.length - 1; at >= 0; at--) {
    for (const part of messages[at]?.content ?? []) {
      const replay = part.type === 'thinking' ? readReplayData(part.signature) : undefined
      if (replay?.model === model.name) return replay.key
    }
  }
  return undefined
}

const grown = new GrowingWire<WireMessage>()
/** By the first message of the conversation: as long as the text is the same, so is the object. */
const systems = new WeakMap<LlmMessage, WireMessage>()

function encodeMessages(request: LlmRequest, dialect: Dialect, reasoning_key: string | undefined): WireMessage[] {
  const { system, messages, model, replayed_thinking } = request
  const blank = request.blank_thinking || dialect.blank(request)
  const from = thinkingFrom(request)
  const form = { key: JSON.stringify([dialect.protocol, model.name, reasoning_key, replayed_thinking, blank]), marks: [from] }
  const wire = grown.of(messages, form, (share, first, ids) => {
    const out: WireMessage[] = []
    let images: LlmContent[] = []
    const flushImages = () => {
      if (images.length > 0)
        out.push({ role: 'user', content: userContent([{ type: 'text', text: 'Images of the tool results above:' }, ...images]) })
      images = []
    }
    for (const [index, message] of share.entries()) {
      const at = first + index
      if (message.role === 'tool') {
        out.push(toolMessage(message, ids))
        // Images cannot stand in a tool message, and nothing may stand between the results of one step.
        images.push(...message.content.filter(isMedium))
        continue
      }
      flushImages()
      const sent = { ids, dialect, model: model.name, reasoning_key, thinks: at >= from, blank }
      if (message.role === 'user') out.push({ role: 'user', content: userContent(message.content) })
      else out.push(assistantMessage(message, { ...sent, signs: replayed_thinking === undefined || at >= from }))
    }
    flushImages()
    return out
  })
  return system === '' ? wire : [systemMessage(system, messages[0]), ...wire]
}

function systemMessage(content: string, first: LlmMessage | undefined): WireMessage {
  const known = first && systems.get(first)
  if (known?.content === content) return known
  const message = { role: 'system', content }
  if (first) systems.set(first, message)
  return message
}

type WirePart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image_url'; readonly image_url: { readonly url: string } }
  | { readonly type: 'video_url'; readonly video_url: { readonly url: string } }

/** A single text as string, else parts: some upstreams take no lists where there are no images. */
function userContent(parts: readonly LlmContent[]): string | WirePart[] {
  const wire: WirePart[] = []
  for (const part of parts) {
    if (part.type === 'text' && part.text !== '') wire.push({ type: 'text', text: part.text })
    if (part.type === 'image') wire.push({ type: 'image_url', image_url: { url: `data:${part.media_type};base64,${part.data}` } })
    // Not in the protocol's own document; servers of models that take videos take them so.
    if (part.type === 'video') wire.push({ type: 'video_url', video_url: { url: `data:${part.media_type};base64,${part.data}` } })
    if (part.type === 'image_url') wire.push({ type: 'image_url', image_url: { url: part.url } })
  }
  const only = wire[0]
  if (only === undefined) return ''
  return wire.length === 1 && only.type === 'text' ? only.text : wire
}

interface Sent {
  readonly ids: CallIds
  readonly dialect: Dialect
  /** Upstream name of the model that gets the message. */
  readonly model: string
  /** Field for its reasoning; undefined: it stays away. */
  readonly reasoning_key: string | undefined
  /** Its reasoning goes back. */
  readonly thinks: boolean
  /** The field is there without any, too. */
  readonly blank: boolean
  /** Thought signatures of its calls go back. */
  readonly signs: boolean
}

/** The wire has one place for each kind: texts are joined, and so is reasoning; within its kind everything keeps its order. */
function assistantMessage(message: AssistantMessage, sent: Sent): WireMessage {
  const { content } = message
  const text = textOf(content)
  const tool_calls = callsOf(message)
  return {
    role: 'assistant',
    // Without text and without calls there is nothing that null could stand for.
    content: text === '' && tool_calls.length > 0 ? null : text,
    ...reasoningFields(content, sent),
    ...(tool_calls.length > 0 && { tool_calls: tool_calls.map(call => toolCall(call, sent)) })
  }
}

function reasoningFields(content: AssistantMessage['content'], { model, reasoning_key, thinks, blank }: Sent): WireMessage {
  if (reasoning_key === undefined) return {}
  const parts = thinks ? content.filter(part => part.type === 'thinking') : []
  const text = parts.map(part => part.text).join('') || (blank ? BLANK : '')
  if (reasoning_key !== 'reasoning_details') return text === '' ? {} : { [reasoning_key]: text }
  const details = parts.flatMap(part => detail(part, model))
  return details.length === 0 ? {} : { reasoning_details: details }
}

/** An entry as it came, if it came from this model: what seals it means nothing to others. */
function detail({ text, signature }: Extract<LlmContent, { type: 'thinking' }>, model: string): WireMessage[] {
  const replay = readReplayData(signature)
  const { type = 'reasoning.text', ...entry } = (replay?.model === model && replay.entry) || {}
  if (text === '') return 'data' in entry || 'signature' in entry ? [{ type, ...entry }] : []
  return [{ type, [type === 'reasoning.summary' ? 'summary' : 'text']: text, ...entry }]
}

function toolCall({ id, name, arguments: text, extras }: LlmCallPart, { ids, dialect, model, signs }: Sent): WireMessage {
  const extra = readExtra(model, extras)
  const extra_content = signs ? extra : unsigned(extra)
  const call = { id: ids.of(id), type: 'function', function: { name: dialect.callName(name), arguments: argumentsText(text) } }
  return extra_content === undefined ? call : { ...call, extra_content }
}

function toolMessage({ tool_call_id, content }: ToolMessage, ids: CallIds): WireMessage {
  const text = textOf(content)
  const fallback = content.some(isMedium) ? '(the result is an image; it follows)' : ''
  return { role: 'tool', tool_call_id: ids.of(tool_call_id), content: text === '' ? fallback : text }
}
