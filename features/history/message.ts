/** Records that are messages, and the message that each of them is. Pure. */
import type { CoreRecord } from './records.ts'
import type { HistoryMessage, WirePart } from './types.ts'

/** A message without what its place gives it: the id of those that have none, and content that its prompt holds. */
export type MessageFacts = Omit<HistoryMessage, 'id' | 'created_at' | 'content'> & {
  readonly id?: string
  /** Absent: that of the accepted prompt `prompt_id`. */
  readonly content?: readonly WirePart[]
}

/** The message that a record is; undefined for other records. The type of a record alone decides. */
export function messageFacts(record: CoreRecord): MessageFacts | undefined {
  switch (record.type) {
    case 'message': {
      const { type: _type, time: _time, number: _number, ...facts } = record
      return facts
    }
    case 'step.message': {
      const { turn_id, step, content, tool_calls, cut } = record
      return { role: 'assistant', turn_id, step, content, tool_calls, ...(cut ? { cut } : {}) }
    }
    case 'tool.result': {
      const { type: _type, time: _time, number: _number, synthetic: _synthetic, ...facts } = record
      return { role: 'tool', ...facts }
    }
    case 'context.compacted': {
      const summary = record.messages.at(-1)
      return { role: summary?.role ?? 'user', content: summary?.content ?? [], ...(summary?.origin ? { origin: summary.origin } : {}) }
    }
    default:
      return undefined
  }
}

/** A prompt that a hook blocked, or what was said in its place. Older journals mark only the second. */
export const isBlocked = ({ blocked, role, origin }: MessageFacts): boolean =>
  blocked === true || (role === 'assistant' && origin?.kind === 'hook_result')

export const messageTypes: ReadonlySet<string> = new Set(['message', 'step.message', 'tool.result', 'context.compacted'])

/** Whether records of this type are messages. */
export const isMessage = (record: { readonly type: string }): boolean => messageTypes.has(record.type)

/** The number that a record was given as a message; undefined: it is none, or one of an older journal. */
export const givenNumber = (record: { readonly type: string; readonly number?: unknown }): number | undefined =>
  isMessage(record) && typeof record.number === 'number' ? record.number : undefined

const widestGap = 1_000_000

/** The number of a message. `next`: the one after the last; records of older journals have none of their own. */
export function numberOf(record: CoreRecord, next: number): number {
  const number = ('number' in record ? record.number : undefined) ?? next
  return number > next && number < next + widestGap ? number : next
}

/** As `numberOf`, reading backwards. `next`: the number behind it. */
export function numberBefore(record: CoreRecord, next: number): number {
  const number = ('number' in record ? record.number : undefined) ?? next
  return number < next ? number : next - 1
}

/** `number`: how many messages were ever made before it; names those without an id of their own. */
export function messageOf(
  facts: MessageFacts,
  number: number,
  record: { readonly time?: number },
  session_id: string,
  promptContent: readonly WirePart[]
): HistoryMessage {
  return {
    ...facts,
    id: facts.id ?? messageId(session_id, number),
    created_at: new Date(record.time ?? 0).toISOString(),
    content: facts.content ?? promptContent
  }
}

/** `msg_<session>_<number, at least 6 digits>`. */
export const messageId = (session_id: string, number: number): string => `msg_${session_id}_${String(number).padStart(6, '0')}`

/** The number in an id that `messageId` made. */
export function numberIn(id: string, session_id: string): number | undefined {
  const prefix = `msg_${session_id}_`
  const digits = id.startsWith(prefix) ? id.slice(prefix.length) : ''
  return /^\d{6,15}$/.test(digits) ? Number(digits) : undefined
}
