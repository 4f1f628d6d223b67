/** From a model request to the body of `POST /responses`. Pure. */
import {
  argumentsObject,
  type CallIds,
  callName,
  GrowingWire,
  isMedium,
  keptWith,
  type LlmContent,
  type LlmMessage,
  type LlmRequest,
  type LlmTool,
  objectSchema,
  samplingOf,
  textOf,
  thinkingFrom,
  videoNotice,
  withoutRefused
} from '../llm/index.ts'
import { readPhase, readPlain, readReplayData } from './replay-data.ts'

type Item = Record<string, unknown>
type AssistantMessage = Extract<LlmMessage, { role: 'assistant' }>

/** The wire refuses smaller limits. */
const SMALLEST_LIMIT_TOKENS = 16

/** Never throws: what the wire has no place for is left out. */
export function encode(request: LlmRequest): Record<string, unknown> {
  const { model, system, tools, cache_key } = request
  const limit = request.max_output_tokens ?? model.max_output_size
  const body = {
    model: model.name,
    ...(system !== '' && { instructions: system }),
    input: encodeInput(request),
    ...(tools.length > 0 && {
      tools: tools.map(toolOf)
    }),
    ...reasoningOf(request),
    ...(limit !== undefined && { max_output_tokens: Math.max(SMALLEST_LIMIT_TOKENS, limit) }),
    ...samplingOf(model, request.effort === 'off' && model.off_effort !== undefined),
    ...(cache_key !== '' && { prompt_cache_key: cache_key }),
    store: false,
    stream: true
  }
  return withoutRefused(body, request)
}

/** Not strict: that mode takes only schemas in which every property is required. */
const toolOf = keptWith(({ name, description, parameters }: LlmTool) => ({
  type: 'function',
  name,
  description,
  parameters: objectSchema(parameters),
  strict: false
}))

/** Nothing is stored at the provider, so reasoning has to come along encrypted to survive the step. */
function reasoningOf({ effort, model }: LlmRequest): Item {
  const level = effort === 'off' || effort === '' ? model.off_effort : effort
  if (level === undefined) return {}
  const reasoning = { ...(level !== 'on' && { effort: level }), summary: 'auto' }
  return { reasoning, include: ['reasoning.encrypted_content'] }
}

const grown = new GrowingWire<Item>()

function encodeInput(request: LlmRequest): Item[] {
  const from = thinkingFrom(request)
  const { name } = request.model
  return grown.of(request.messages, { key: name, marks: [from] }, (share, first, ids) =>
    share.flatMap((message, index): Item[] => {
      if (message.role === 'user') {
        const content = parts(message.content)
        return content.length > 0 ? [{ type: 'message', role: 'user', content }] : []
      }
      if (message.role === 'assistant')
        return assistantItems(message, { ids, at: first + index, model: name, thinks: first + index >= from })
      const output = message.content.some(isMedium) ? parts(message.content) : textOf(message.content)
      return [{ type: 'function_call_output', call_id: ids.of(message.tool_call_id), output }]
    })
  )
}

interface Sent {
  readonly ids: CallIds
  /** Number of the message in the conversation. */
  readonly at: number
  /** Upstream name of the model that gets the message. */
  readonly model: string
  /** Its reasoning goes back. */
  readonly thinks: boolean
}

function assistantItems({ content }: AssistantMessage, { ids, at, model, thinks }: Sent): Item[] {
  const items = content.flatMap((part, place): Item[] => {
    switch (part.type) {
      case 'thinking':
        return thinks ? reasoningItem(part, model) : []
      case 'tool_call':
        return [
          {
            type: 'function_call',
            call_id: ids.of(part.id),
            name: callName(part.name),
            arguments: JSON.stringify(argumentsObject(part.arguments))
          }
        ]
      case 'text':
        return part.text === '' ? [] : [messageItem(part, `msg_${at}_${place}`)]
      default:
        return [] // the model gives no pictures
    }
  })
  // Reasoning must be followed by what came of it.
  return items.slice(0, items.findLastIndex(({ type }) => type !== 'reasoning') + 1)
}

/**
 * With all fields that the protocol demands of an answer: strict servers refuse one without. The id is not the one that the provider gave,
 * which binds a message to reasoning that may stay away. Models that answer in phases lose the thread when a message comes back without its
 * own.
 */
function messageItem({ text, signature }: Extract<LlmContent, { type: 'text' }>, id: string): Item {
  const phase = readPhase(signature)
  return {
    type: 'message',
    id,
    role: 'assistant',
    status: 'completed',
    ...(phase !== undefined && { phase }),
    content: [{ type: 'output_text', text, annotations: [] }]
  }
}

/** Reasoning of this protocol: encrypted, or the plain text of the same model, which some servers demand back with its calls. */
function reasoningItem({ text, signature }: Extract<LlmContent, { type: 'thinking' }>, model: string): Item[] {
  const plain = readPlain(signature)
  if (plain) {
    if (plain.model !== model || text === '') return []
    return [{ type: 'reasoning', ...(plain.id && { id: plain.id }), summary: [], content: [{ type: 'reasoning_text', text }] }]
  }
  const replay = readReplayData(signature)
  if (!replay) return []
  const { id, encrypted_content } = replay
  return [{ type: 'reasoning', ...(id && { id }), summary: text === '' ? [] : [{ type: 'summary_text', text }], encrypted_content }]
}

function parts(content: readonly LlmContent[]): Item[] {
  return content.flatMap((part): Item[] => {
    if (part.type === 'text') return part.text === '' ? [] : [{ type: 'input_text', text: part.text }]
    if (part.type === 'video') return [{ type: 'input_text', text: videoNotice }]
    if (part.type === 'image') return [{ type: 'input_image', image_url: `data:${part.media_type};base64,${part.data}` }]
    return part.type === 'image_url' ? [{ type: 'input_image', image_url: part.url }] : []
  })
}
