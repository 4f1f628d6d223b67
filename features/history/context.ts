/** What the model is given of a conversation: the messages since the last compaction, without those that were taken back. */
import type { Conversation } from './conversation.ts'
import type { StateSpec } from './define.ts'
import { messageFacts, messageOf } from './message.ts'
import { coreRecord } from './records.ts'
import type { HistoryMessage, WirePart } from './types.ts'

export interface Context {
  readonly messages: HistoryMessage[]
  /** Their numbers. */
  readonly numbers: number[]
  /** Number of the next message. */
  next: number
  /** Contents of prompts whose message has not come. */
  readonly waiting: Map<string, readonly WirePart[]>
}

/** Read from where the context begins; never saved, because it is large and only a turn needs it. */
export function contextState(conversation: () => Conversation, session_id: string): StateSpec<Context> {
  return {
    name: 'context',
    version: 1,
    initial: () => ({ messages: [], numbers: [], next: conversation().context.message, waiting: new Map() }),
    reduce(state, given) {
      const record = coreRecord(given)
      if (!record) return state
      if (record.type === 'prompt.accepted') state.waiting.set(record.prompt_id, record.content)
      if (record.type === 'context.undone') cut(state, record.from)
      const facts = messageFacts(record)
      if (!facts) return state
      const number = state.next++
      const add = (message: HistoryMessage) => {
        state.messages.push(message)
        state.numbers.push(number)
      }
      if (record.type === 'context.compacted') {
        cut(state, 0)
        for (const each of record.messages) add(messageOf(each, number, record, session_id, []))
        return state
      }
      const { prompt_id = '' } = facts
      add(messageOf(facts, number, record, session_id, state.waiting.get(prompt_id) ?? []))
      state.waiting.delete(prompt_id)
      return state
    }
  }
}

function cut(state: Context, from: number): void {
  const at = state.numbers.findIndex(number => number >= from)
  if (at < 0) return
  state.messages.length = at
  state.numbers.length = at
}
