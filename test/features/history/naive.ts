/** What a journal says, computed the plain way: all records in an array, read from the beginning for every question. */
import { Conversation } from '../../../features/history/conversation.ts'
import type { HistoryMessage, HistoryRecord, WirePart } from '../../../features/history/index.ts'
import { messageId } from '../../../features/history/message.ts'
import { Projection } from '../../../features/history/project.ts'
import { eventsOf, session_id } from './world.ts'

/** What the model sees of these messages, oldest first. */
export const project = (messages: readonly HistoryMessage[]) => new Projection(messages).read().messages

/** From the first message of this number or a later one on. */
function behind(all: readonly Numbered[], from: number): readonly Numbered[] {
  const at = all.findIndex(({ number }) => number >= from)
  return at < 0 ? [] : all.slice(at)
}

interface Numbered {
  readonly number: number
  readonly message: HistoryMessage
}

// biome-ignore lint/suspicious/noExplicitAny: records of many kinds
type Fields = { readonly type: string; readonly time?: number; readonly [field: string]: any }

export class Naive {
  readonly records: readonly HistoryRecord[]

  constructor(records: readonly HistoryRecord[]) {
    this.records = records
  }

  /** All messages that were not taken back, oldest first. */
  messages(): HistoryMessage[] {
    return this.#fold(false).map(({ message }) => message)
  }

  context() {
    return project(this.#fold(true).map(({ message }) => message))
  }

  sum(): number {
    return this.records.reduce((total, record) => total + (typeof record.n === 'number' ? record.n : 0), 0)
  }

  /** Every event that must have been told, once. */
  events(): string[] {
    const before = new Conversation()
    return this.records.flatMap(record => {
      const events = eventsOf(record, before)
      before.apply(record)
      return events.map(({ type, payload }) => JSON.stringify({ type, payload: { ...payload } }))
    })
  }

  conversation(): Conversation {
    const all = new Conversation()
    for (const record of this.records) all.apply(record)
    return all
  }

  #fold(isContext: boolean): Numbered[] {
    let all: Numbered[] = []
    const prompts = new Map<string, readonly WirePart[]>()
    for (const given of this.records) {
      const record = given as Fields
      if (record.type === 'prompt.accepted') prompts.set(record.prompt_id, record.content)
      if (record.type === 'context.undone') all = all.slice(0, all.length - behind(all, record.from).length)
      const of = (fields: Partial<HistoryMessage>): Numbered => ({
        number: record.number,
        message: {
          ...fields,
          id: record.id ?? messageId(session_id, record.number),
          created_at: new Date(record.time ?? 0).toISOString(),
          content: fields.content ?? prompts.get(record.prompt_id) ?? []
        } as HistoryMessage
      })
      const { type, time: _, number: _n, synthetic: _s, ...fields } = record as Fields
      if (type === 'message') all.push(of(fields as Partial<HistoryMessage>))
      if (type === 'tool.result') all.push(of({ role: 'tool', ...fields } as Partial<HistoryMessage>))
      if (type === 'step.message') {
        const { turn_id, step, content, tool_calls } = record
        all.push(of({ role: 'assistant', turn_id, step, content, tool_calls }))
      }
      if (type === 'context.compacted') {
        const messages = record.messages as unknown as Partial<HistoryMessage>[]
        if (isContext) all = [...messages.map(of), ...(record.rest ? behind(all, record.rest.from) : [])]
        else all.push(of(messages.at(-1) ?? {}))
      }
    }
    return all
  }
}
