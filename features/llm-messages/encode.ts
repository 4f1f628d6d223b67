/** From a model request to the body of `POST /v1/messages`. Pure. */
import {
  argumentsObject,
  type CallIds,
  callName,
  GrowingWire,
  keptWith,
  type LlmCallPart,
  type LlmContent,
  type LlmMessage,
  type LlmRequest,
  type LlmTool,
  objectSchema,
  samplingOf,
  thinkingFrom,
  withoutRefused
} from '../llm/index.ts'
import { type Family, familyOf } from './names.ts'
import { thinkingOf } from './thinking.ts'

type Block = Record<string, unknown>
interface WireMessage {
  readonly role: 'user' | 'assistant'
  readonly content: Block[]
}

/** `betas`: names that the body needs in the header. */
export interface EncodedRequest {
  readonly body: Record<string, unknown>
  readonly betas: readonly string[]
}

/** In front of the data of a redacted thinking block, which travels as a signature without text. */
export const REDACTED_MARK = 'redacted:'

const breakpoint = { cache_control: { type: 'ephemeral' } }

/** Never throws: what the wire has no place for is left out. */
export function encode(request: LlmRequest): EncodedRequest {
  const { model, system, tools, cache_key } = request
  const family = familyOf(model.name)
  const max_tokens = limitOf(request, family)
  const thinking = thinkingOf(request, family, max_tokens)
  const { temperature, top_p } = samplingOf(model, !thinking.on)
  // Newer models take only one of the two.
  const sampling = temperature !== undefined ? { temperature } : top_p !== undefined ? { top_p } : {}
  const body = {
    model: model.name,
    max_tokens,
    ...(system !== '' && { system: [{ type: 'text', text: system, ...breakpoint }] }),
    messages: encodeMessages(request, family),
    ...(tools.length > 0 && {
      tools: tools.map((tool, at) => (at === tools.length - 1 ? { ...toolOf(tool), ...breakpoint } : toolOf(tool)))
    }),
    ...(cache_key !== '' && { metadata: { user_id: cache_key } }),
    ...thinking.fields,
    ...(!thinking.on && sampling),
    stream: true
  }
  return { body: withoutRefused(body, request), betas: thinking.betas }
}

/** The limit is mandatory on this wire: what the model record says, else what its family can, but no more than the window has left. */
function limitOf({ model, max_output_tokens, context_tokens = 0 }: LlmRequest, family: Family): number {
  const ceiling = model.max_output_size ?? family.output
  return Math.max(1, Math.min(max_output_tokens ?? ceiling, ceiling, model.max_context_size - context_tokens))
}

const toolOf = keptWith(({ name, description, parameters }: LlmTool) => ({
  name,
  description,
  input_schema: objectSchema(parameters)
}))

const grown = new GrowingWire<WireMessage>()

function encodeMessages(request: LlmRequest, family: Family): WireMessage[] {
  const from = thinkingFrom(request)
  const wire = grown.of(request.messages, { key: JSON.stringify(family), marks: [from] }, (share, first, ids) => {
    const out: WireMessage[] = []
    for (const [index, message] of share.entries()) {
      const content = blocksOf(message, ids, family, first + index >= from)
      if (content.length === 0) continue
      const role = message.role === 'assistant' ? 'assistant' : 'user'
      const last = out.at(-1)
      // Roles must alternate; the results of one step stand in one message.
      if (last?.role === role) last.content.push(...content)
      else out.push({ role, content })
    }
    return out
  })
  // Two of the four breakpoints that the wire allows: what ends here is written to the cache, what the last request ended with is read.
  for (const at of new Set([wire.slice(0, -1).findLastIndex(({ role }) => role === 'user'), wire.length - 1])) {
    const message = wire[at]
    const block = message?.content.findLastIndex(({ type }) => type !== 'thinking' && type !== 'redacted_thinking') ?? -1
    if (message && block >= 0) wire[at] = { ...message, content: message.content.with(block, { ...message.content[block], ...breakpoint }) }
  }
  return wire
}

function blocksOf(message: LlmMessage, ids: CallIds, family: Family, thinks: boolean): Block[] {
  const content = message.content.flatMap(part => {
    if (part.type === 'thinking') return thinkingBlocks(part, family, thinks)
    return part.type === 'tool_call' ? [toolUse(part, ids)] : plainBlocks(part)
  })
  if (message.role !== 'tool') return content
  const { tool_call_id, is_error } = message
  const result = { type: 'tool_result', tool_use_id: ids.of(tool_call_id), ...(content.length > 0 && { content }) }
  // A failure may hold nothing but text; the text of one with a picture says that it is one.
  return [{ ...result, ...(is_error && content.every(({ type }) => type === 'text') && { is_error: true }) }]
}

function toolUse({ id, name, arguments: text }: LlmCallPart, ids: CallIds): Block {
  return { type: 'tool_use', id: ids.of(id), name: callName(name), input: argumentsObject(text) }
}

/** Text, images and videos; the wire refuses empty texts. */
function plainBlocks(part: Exclude<LlmContent, { type: 'thinking' }>): Block[] {
  if (part.type === 'text') return part.text.trim() === '' ? [] : [{ type: 'text', text: part.text }]
  // Not in the protocol's own document; servers of models that take videos take them so.
  if (part.type === 'video') return [{ type: 'video', source: inline(part.media_type, part.data) }]
  return [{ type: 'image', source: part.type === 'image' ? inline(part.media_type, part.data) : sourceOf(part.url) }]
}

const inline = (media_type: string, data: string) => ({ type: 'base64', media_type, data })

/** The wire takes no data addresses. */
function sourceOf(url: string): Block {
  const data = /^data:([\w/+.-]+);base64,(.*)$/s.exec(url)
  return data ? inline(data[1] ?? '', data[2] ?? '') : { type: 'url', url }
}

/** Thinking goes back as it was signed. Without a signature only servers of others take it; signatures of other protocols nobody takes. */
function thinkingBlocks({ text, signature }: Extract<LlmContent, { type: 'thinking' }>, { known }: Family, thinks: boolean): Block[] {
  if (!thinks) return []
  if (signature?.startsWith(REDACTED_MARK)) return [{ type: 'redacted_thinking', data: signature.slice(REDACTED_MARK.length) }]
  if (signature === undefined) return known || text === '' ? [] : [{ type: 'thinking', thinking: text }]
  return /^[a-z]+:/.test(signature) ? [] : [{ type: 'thinking', thinking: text, signature }]
}
