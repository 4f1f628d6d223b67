/** What the model sees of a history: a repaired view in which every tool call has exactly one result. */
import type { LlmCallPart, LlmContent, LlmMessage, LlmToolCall } from '../llm/index.ts'
import { asData } from './as-data.ts'
import { attachmentOf } from './attachments.ts'
import { isElsewhere } from './media.ts'
import type { Takes } from './service.ts'
import type { HistoryMessage, Origin, WirePart } from './types.ts'

/** Text of a result that was never recorded. */
export const interruptedResult =
  'The tool call was interrupted before its result was recorded. It may or may not have had an effect: do not assume that it succeeded.'

const emptyPrompt: readonly LlmContent[] = [{ type: 'text', text: '(The user sent an empty message.)' }]

/** Stands for a medium that lies in a file until its bytes are read. */
type KeptMedium = Extract<LlmContent, { type: 'image' }> & { readonly kept: WirePart }
const isKeptMedium = (part: LlmContent | LlmCallPart): part is KeptMedium => 'kept' in part

export interface Projected {
  readonly messages: LlmMessage[]
  /** Which of them have media in files: `inlined` gives them whole. */
  readonly kept: readonly number[]
}

/** The message with its media. `read`: the part as it is with its bytes, or what stands for it. */
export async function inlined(
  message: LlmMessage,
  takes: Takes,
  read: (part: WirePart) => Promise<readonly WirePart[]>
): Promise<LlmMessage> {
  const content: (LlmContent | LlmCallPart)[] = []
  for (const part of message.content) {
    if (isKeptMedium(part)) content.push(...(await read(part.kept)).flatMap(whole => asLlm(whole, takes) ?? []).map(withoutReference))
    else content.push(part)
  }
  return { ...message, content } as LlmMessage // each role keeps the kinds of parts that it has
}

/** What nobody could resolve becomes a placeholder. */
const withoutReference = (part: LlmContent): LlmContent => (isKeptMedium(part) ? { type: 'text', text: `[${part.kept.type}]` } : part)

/** The repaired view of messages that come one after the other: taking one in costs what it adds. */
export class Projection {
  readonly #out: LlmMessage[] = []
  /** Where the results of a call stand, by call id; made up until one comes. */
  readonly #calls = new Map<string, { readonly call: LlmToolCall; readonly at: number }[]>()
  /** The first result of each call that an earlier message made; orphans and second results are left out. */
  readonly #results = new Map<string, HistoryMessage>()
  /** The last message is a submission of the user. */
  #mergeable = false
  readonly #kept = new Set<number>()
  readonly #takes: Takes

  /** `takes`: models that do not take a kind of media get a notice. Default: images alone. */
  constructor(messages: readonly HistoryMessage[], takes: Takes = { images: true, videos: false }) {
    this.#takes = takes
    for (const message of messages) this.add(message)
  }

  /** Copies; the messages themselves never change. */
  read(): Projected {
    return { messages: this.#out.slice(), kept: [...this.#kept] }
  }

  add(message: HistoryMessage): void {
    if (message.role === 'tool') this.#addResult(message)
    else if (message.role === 'assistant') this.#addAnswer(message)
    else this.#addInput(message)
  }

  #addResult(message: HistoryMessage): void {
    const places = this.#calls.get(message.tool_call_id ?? '')
    if (!places || message.tool_call_id === undefined || this.#results.has(message.tool_call_id)) return
    this.#results.set(message.tool_call_id, message)
    for (const { call, at } of places) this.#put(at, this.#resultOf(call, message))
  }

  #addAnswer(message: HistoryMessage): void {
    const calls = message.tool_calls ?? []
    const content = this.#withCalls(message.content, calls)
    if (!content.some(part => part.type !== 'thinking')) return
    // An answer that the provider paused goes on in the next one.
    const last = this.#out.at(-1)
    if (last?.role === 'assistant') this.#put(this.#out.length - 1, { role: 'assistant', content: [...last.content, ...content] })
    else this.#put(this.#out.length, { role: 'assistant', content })
    for (const call of calls) {
      const places = this.#calls.get(call.id) ?? []
      this.#calls.set(call.id, [...places, { call, at: this.#out.length }])
      this.#put(this.#out.length, this.#resultOf(call, this.#results.get(call.id)))
    }
    this.#mergeable = false
  }

  #addInput(message: HistoryMessage): void {
    const { role, origin = { kind: 'user' } } = message
    const content = withSayer(message.content, origin).flatMap(part => (part.type === 'thinking' ? [] : (asLlm(part, this.#takes) ?? [])))
    const plain = role === 'user' && origin.kind === 'user'
    const last = this.#out.at(-1)
    // A request that ends with an answer of the model is none.
    if (content.length === 0 && plain && (last === undefined || last.role === 'assistant')) content.push(...emptyPrompt)
    if (content.length === 0) return
    const merges = plain && this.#mergeable && last?.role === 'user'
    if (merges) this.#put(this.#out.length - 1, { role: 'user', content: merge(last.content, content) })
    else this.#put(this.#out.length, { role: 'user', content })
    this.#mergeable = plain
  }

  #put(at: number, message: LlmMessage): void {
    this.#out[at] = message
    if (message.content.some(isKeptMedium)) this.#kept.add(at)
  }

  /** Content and calls of an answer in the order in which they came. */
  #withCalls(content: readonly WirePart[], calls: readonly LlmToolCall[]): (LlmContent | LlmCallPart)[] {
    const placed = (at: number) => calls.filter(({ after = content.length }) => Math.min(after, content.length) === at).map(callPart)
    return [...content.flatMap((part, at) => [...placed(at), ...[asLlm(part, this.#takes) ?? []].flat()]), ...placed(content.length)]
  }

  #resultOf(call: LlmToolCall, result: HistoryMessage | undefined): LlmMessage {
    const is_error = result === undefined || result.is_error === true
    const content: LlmContent[] = result
      ? result.content
          .flatMap(part => asLlm(part, this.#takes) ?? [])
          .map(part => (part.type === 'text' ? { type: 'text', text: asData(part.text) } : part))
      : [{ type: 'text', text: interruptedResult }]
    if (content.length === 0) content.push({ type: 'text', text: '<system>The tool gave no output.</system>' })
    if (is_error) prependText(content, '<system>The tool call failed.</system>\n')
    if (result?.note !== undefined && result.note !== '') content.push({ type: 'text', text: result.note })
    return { role: 'tool', tool_call_id: call.id, name: call.name, content: joinTexts(content, '\n'), is_error }
  }
}

/** Origins whose words stand alone, and are not what the user wrote. */
const sayers = new Set(['hook_result', 'cron_job'])

/** With the origin around the first text, where the words do not say whose they are. */
function withSayer(parts: readonly WirePart[], { kind, ...facts }: Origin): readonly WirePart[] {
  if (!sayers.has(kind)) return parts
  const first = parts.findIndex(({ type }) => type === 'text')
  const attributes = Object.entries(facts).map(([name, value]) => ` ${name}="${value}"`)
  return parts.map((part, at) =>
    at === first && part.type === 'text' ? { ...part, text: `<${kind}${attributes.join('')}>\n${part.text}\n</${kind}>` } : part
  )
}

function callPart({ after: _, ...call }: LlmToolCall): LlmCallPart {
  return { type: 'tool_call', ...call }
}

function prependText(content: LlmContent[], text: string): void {
  const first = content[0]
  if (first?.type === 'text') content[0] = { type: 'text', text: text + first.text }
  else content.unshift({ type: 'text', text: text.trimEnd() })
}

/** Neighbouring texts become one part. */
function joinTexts(content: readonly LlmContent[], separator: string): LlmContent[] {
  const out: LlmContent[] = []
  for (const part of content) {
    const last = out.at(-1)
    if (part.type === 'text' && last?.type === 'text') out[out.length - 1] = { type: 'text', text: `${last.text}${separator}${part.text}` }
    else out.push(part)
  }
  return out
}

/** Two submissions in a row: texts joined by a blank line, then the media. */
function merge(a: readonly LlmContent[], b: readonly LlmContent[]): LlmContent[] {
  const all = [...a, ...b]
  return [
    ...joinTexts(
      all.filter(part => part.type === 'text'),
      '\n\n'
    ),
    ...all.filter(part => part.type !== 'text')
  ]
}

/** A wire part as the model gets it; undefined for empty text. References that nobody resolved become a placeholder. */
function asLlm(part: WirePart, takes: Takes): LlmContent | undefined {
  switch (part.type) {
    case 'text':
      if (String(part.text).trim() === '') return undefined
      return { type: 'text', text: String(part.text), ...signature(part) }
    case 'thinking':
      return { type: 'thinking', text: String(part.thinking ?? ''), ...signature(part) }
    case 'image':
    case 'video':
      return mediumAsLlm(part, takes)
    case 'file':
      return isElsewhere(part) ? kept(part) : { type: 'text', text: `[file ${String(part.name ?? part.file_id ?? '')}]` }
    default:
      return undefined
  }
}

/** What stands for media that the model does not take; it is told where uploads lie. */
function mediumAsLlm(part: WirePart, { images, videos }: Takes): LlmContent {
  const isImage = part.type === 'image'
  if (attachmentOf(part) !== undefined) return kept(part)
  if (!(isImage ? images : videos)) return { type: 'text', text: `[${part.type}: this model cannot see ${part.type}s]` }
  if (isElsewhere(part)) return kept(part)
  const source = (part.source ?? {}) as Readonly<Record<string, unknown>>
  if (source.kind === 'base64') {
    return { type: isImage ? 'image' : 'video', media_type: String(source.media_type), data: String(source.data) }
  }
  if (isImage && source.kind === 'url') return { type: 'image_url', url: String(source.url) }
  return { type: 'text', text: source.kind === 'url' ? `[${part.type} at ${String(source.url)}]` : `[${part.type}]` }
}

const kept = (part: WirePart): KeptMedium => ({ type: 'image', media_type: '', data: '', kept: part })

const signature = (part: WirePart) => (typeof part.signature === 'string' ? { signature: part.signature } : {})
