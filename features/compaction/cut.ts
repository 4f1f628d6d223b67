/** What stays of a context, and what the model is given of it to summarise. Pure. */
import { headOf, tailOf } from '../../kernel/index.ts'
import { estimateMessage, estimateText, type HistoryMessage, isUserInput, type Origin, type WirePart } from '../history/index.ts'
import { isMedium, type LlmMessage } from '../llm/index.ts'

export interface KeptMessage {
  readonly role: 'user'
  readonly content: readonly WirePart[]
  readonly origin?: Origin
}

export interface KeptInputs {
  readonly messages: readonly KeptMessage[]
  /** Of the user. */
  readonly count: number
  /** How many of them stand before the gap; undefined: there is none. */
  readonly head?: number
}

/** Tokens of what the user wrote that stay: at most 20000, and a quarter of a small window; a tenth of them from the beginning. */
const keptTokens = 20_000
const headShare = 0.1

/**
 * All that the user wrote; where that is too much, its beginning and its end with a note between them. Of a message that is cut only text
 * stays.
 */
export function keptInputs(context: readonly HistoryMessage[], window: number): KeptInputs {
  const inputs = context.filter(({ role, origin }) => role === 'user' && isUserInput(origin)).map(asKept)
  const limit = Math.min(keptTokens, Math.floor(window / 4))
  const total = inputs.reduce((sum, message) => sum + tokensOf(message), 0)
  if (total <= limit) return { messages: inputs, count: inputs.length }
  const headTokens = Math.floor(limit * headShare)
  const head = take(inputs, headTokens, textStart)
  const tail = take([...inputs].reverse(), limit - headTokens, textEnd).reverse()
  const left = total - [...head, ...tail].reduce((sum, message) => sum + tokensOf(message), 0)
  const text = `<system-reminder>\nAbout ${Math.max(1, Math.round(left))} tokens of what the user wrote are left out here.\n</system-reminder>`
  const gap: KeptMessage = { role: 'user', content: [{ type: 'text', text }], origin: { kind: 'injection', variant: 'compaction_elision' } }
  return { messages: [...head, gap, ...tail], count: head.length + tail.length, head: head.length }
}

const asKept = ({ content, origin }: HistoryMessage): KeptMessage => ({ role: 'user', content, ...(origin ? { origin } : {}) })
const tokensOf = (message: KeptMessage): number => estimateMessage(message)

/** The first messages that fit; of the one that does not, what `cut` leaves of its text. */
function take(messages: readonly KeptMessage[], limit: number, cut: (text: string, tokens: number) => string): KeptMessage[] {
  const taken: KeptMessage[] = []
  let left = limit
  for (const message of messages) {
    const tokens = tokensOf(message)
    if (tokens > left) {
      const text = cut(textOf(message.content), left - estimateText(message.role))
      if (text.trim() !== '') taken.push({ ...message, content: [{ type: 'text', text }] })
      return taken
    }
    taken.push(message)
    left -= tokens
  }
  return taken
}

const textOf = (content: readonly WirePart[]): string =>
  content.flatMap(part => (part.type === 'text' ? [String(part.text)] : [])).join('\n\n')

/** The longest beginning of a text that is estimated at no more than so many tokens; no half surrogate pair. */
export function textStart(text: string, tokens: number): string {
  let low = 0
  let high = Math.min(text.length, tokens * 4)
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (estimateText(text.slice(0, middle)) <= tokens) low = middle
    else high = middle - 1
  }
  return headOf(text, low)
}

/** The longest end, as `textStart`. */
export function textEnd(text: string, tokens: number): string {
  let low = Math.max(0, text.length - Math.max(0, tokens) * 4)
  let high = text.length
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    if (estimateText(text.slice(middle)) <= tokens) high = middle
    else low = middle + 1
  }
  return tailOf(text, text.length - low)
}

/** Estimated tokens of a message of a request. */
export function requestTokens({ role, content }: LlmMessage): number {
  let sum = estimateText(role)
  for (const part of content) {
    if (part.type === 'text' || part.type === 'thinking') sum += estimateText(part.text)
    else if (part.type === 'tool_call') sum += estimateText(part.name) + estimateText(part.arguments)
    else sum += 2000
  }
  return sum
}

export const sizeOf = (messages: readonly LlmMessage[]): number => messages.reduce((sum, message) => sum + requestTokens(message), 0)

/**
 * The most recent messages that take no more than this share of all tokens; never beginning with the result of a tool. A result that takes
 * more than half of that is cut, and where those of the last answer are too many together, each of them is.
 */
export function newest(messages: readonly LlmMessage[], share: number): readonly LlmMessage[] {
  const limit = share * sizeOf(messages)
  const cut = messages.map(message => withShortResult(message, limit / 2))
  const sizes = cut.map(requestTokens)
  let from = cut.length
  for (let used = 0; from > 0 && used + sizes[from - 1]! <= limit; ) used += sizes[--from]!
  const fitting = withoutOrphans(cut.slice(Math.min(from, cut.length - 1)))
  if (fitting.length > 0) return fitting
  const last = messages.slice(messages.findLastIndex(({ role }) => role === 'assistant'))
  const short = last.map(message => withShortResult(message, limit / last.length))
  return sizeOf(short) <= limit ? withoutOrphans(short) : []
}

/** What a message takes beside its text, with the mark of a cut. */
const cutMarkTokens = 10

/** The beginning of a tool's result, where it is longer than so many tokens. */
function withShortResult(message: LlmMessage, tokens: number): LlmMessage {
  if (message.role !== 'tool' || requestTokens(message) <= tokens) return message
  const texts = message.content.filter(({ type }) => type === 'text').length
  const most = Math.max(0, Math.floor(tokens / texts) - cutMarkTokens)
  const short = (text: string) => (estimateText(text) > most ? `${textStart(text, most)}\n[cut here]` : text)
  return { ...message, content: message.content.map(part => (part.type === 'text' ? { ...part, text: short(part.text) } : part)) }
}

/** Without the oldest message and the results of its calls. */
export const withoutOldest = (messages: readonly LlmMessage[]): readonly LlmMessage[] => withoutOrphans(messages.slice(1))

function withoutOrphans(messages: readonly LlmMessage[]): readonly LlmMessage[] {
  const first = messages.findIndex(({ role }) => role !== 'tool')
  return first < 0 ? [] : messages.slice(first)
}

/** Pictures and films become a line of text. */
export function withoutMedia(messages: readonly LlmMessage[]): readonly LlmMessage[] {
  const text = (part: LlmMessage['content'][number]) =>
    isMedium(part) ? { type: 'text' as const, text: part.type === 'video' ? '[video]' : '[image]' } : part
  return messages.map(message => ({ ...message, content: message.content.map(text) }) as LlmMessage) // each role keeps its kinds of parts
}
