/** What the model is given of a conversation: the messages since the last compaction, without those that were taken back or blocked. */
import type { Conversation } from './conversation.ts'
import type { StateSpec } from './define.ts'
import { isBlocked, messageFacts, messageOf, numberOf } from './message.ts'
import { type Projected, Projection } from './project.ts'
import { coreRecord } from './records.ts'
import type { Takes } from './service.ts'
import type { HistoryMessage, WirePart } from './types.ts'

export class Context {
  readonly #messages: HistoryMessage[] = []
  /** Their numbers. */
  readonly #numbers: number[] = []
  /** Number of the next message. */
  next: number
  /** Contents of prompts whose message has not come. */
  readonly waiting = new Map<string, readonly WirePart[]>()
  /** Places of messages whose prompt was accepted before the context begins: it holds their content. */
  readonly #lacking = new Map<number, HistoryMessage>()
  /** By the kinds of media that models take; they grow with the messages, so that a step costs what it adds. */
  readonly #projections = new Map<string, Projection>()

  constructor(next: number) {
    this.next = next
  }

  add(message: HistoryMessage, number: number, isWhole: boolean): void {
    if (!isWhole) this.#lacking.set(this.#messages.length, message)
    this.#messages.push(message)
    this.#numbers.push(number)
    if (!isWhole) this.#projections.clear()
    for (const projection of this.#projections.values()) projection.add(message)
  }

  /** Takes back what has this number or a later one. */
  cut(from: number): void {
    const found = this.#numbers.findIndex(number => number >= from)
    if (found < 0) return
    this.#messages.length = found
    this.#numbers.length = found
    for (const at of this.#lacking.keys()) if (at >= found) this.#lacking.delete(at)
    this.#projections.clear()
  }

  /** What came before the message of number `from` gives way to these. */
  replace(from: number, messages: readonly HistoryMessage[], number: number): void {
    const found = this.#numbers.findIndex(each => each >= from)
    const stays = found < 0 ? this.#messages.length : found
    this.#messages.splice(0, stays, ...messages)
    this.#numbers.splice(0, stays, ...messages.map(() => number))
    const lacking = [...this.#lacking].flatMap(([at, message]) => (at < stays ? [] : ([[at - stays + messages.length, message]] as const)))
    this.#lacking.clear()
    for (const [at, message] of lacking) this.#lacking.set(at, message)
    this.#projections.clear()
  }

  /** A message whose content is still to be read. */
  lacking(): HistoryMessage | undefined {
    return this.#lacking.values().next().value
  }

  fill(lacking: HistoryMessage, content: readonly WirePart[]): void {
    for (const [at, message] of this.#lacking) {
      if (message !== lacking) continue
      this.#messages[at] = { ...message, content }
      this.#lacking.delete(at)
    }
  }

  /** As they are, oldest first. */
  messages(): readonly HistoryMessage[] {
    return this.#messages.slice()
  }

  project(takes: Takes): Projected {
    const key = `${takes.images} ${takes.videos}`
    const projection = this.#projections.get(key) ?? new Projection(this.#messages, takes)
    this.#projections.set(key, projection)
    return projection.read()
  }
}

/** Read from where the context begins; never saved, because it is large and only a turn needs it. */
export function contextState(conversation: () => Conversation, session_id: string): StateSpec<Context> {
  return {
    name: 'context',
    version: 1,
    initial: () => new Context(conversation().context.message),
    reduce(state, given) {
      const record = coreRecord(given)
      if (!record) return state
      if (record.type === 'prompt.accepted') state.waiting.set(record.prompt_id, record.content)
      if (record.type === 'context.undone') state.cut(record.from)
      const facts = messageFacts(record)
      if (!facts) return state
      const number = numberOf(record, state.next)
      state.next = number + 1
      if (record.type === 'context.compacted') {
        const messages = record.messages.map(each => messageOf(each, number, record, session_id, []))
        state.replace(record.rest?.from ?? number, messages, number)
        return state
      }
      const { prompt_id = '' } = facts
      const content = facts.content ?? state.waiting.get(prompt_id)
      state.waiting.delete(prompt_id)
      if (isBlocked(facts)) return state
      state.add(messageOf(facts, number, record, session_id, content ?? []), number, content !== undefined || prompt_id === '')
      return state
    }
  }
}
