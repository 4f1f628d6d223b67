/** The messages of an agent as clients page them: from disk, newest first, in memory that does not grow with the history. */
import type { LogEntry } from '../../kernel/index.ts'
import { type Conversation, indexStep } from './conversation.ts'
import type { HistoryRecord } from './define.ts'
import { messageFacts, messageOf, numberBefore, numberIn, numberOf } from './message.ts'
import { type CoreRecord, coreRecord } from './records.ts'
import type { MessagePage, MessageQuery, Messages } from './service.ts'
import type { HistoryMessage, WirePart } from './types.ts'

interface MessageLogPorts {
  readonly session_id: string
  readonly conversation: () => Conversation
  /** Where the records on disk end. */
  readonly end: () => number
  /** Resolves when what is being appended is on disk, or refused. */
  readonly settled: () => Promise<unknown>
  readonly scan: (range: { from?: number; to?: number; reverse?: boolean }) => AsyncIterable<LogEntry<HistoryRecord>>
}

/** Messages that are looked for from the end of the file; others from the next known position before them. */
const nearEnd = 2 * indexStep

export class MessageLog implements Messages {
  readonly #ports: MessageLogPorts

  constructor(ports: MessageLogPorts) {
    this.#ports = ports
  }

  count(): number {
    const { messages, hidden } = this.#ports.conversation()
    return hidden.reduce((count, [from, to]) => count - (to - from), messages)
  }

  next(): number {
    return this.#ports.conversation().messages
  }

  async page({ before, after, size }: MessageQuery): Promise<MessagePage> {
    const conversation = this.#ports.conversation()
    const end = conversation.messages
    const pivot = this.#numberOf(before ?? after)
    const [from, to] = pivot === undefined ? [0, end] : before !== undefined ? [0, pivot] : [pivot + 1, end]
    const numbers: number[] = []
    for (let number = to - 1; number >= from && numbers.length <= size; number--) if (!conversation.isHidden(number)) numbers.push(number)
    const has_more = numbers.length > size
    const wanted = numbers.slice(0, size).reverse()
    return { messages: await this.#read(wanted), has_more }
  }

  async find(id: string): Promise<HistoryMessage | undefined> {
    const number = this.#numberOf(id)
    return number === undefined ? undefined : (await this.#read([number]))[0]
  }

  /** Number of a message that can be seen. */
  #numberOf(id: string | undefined): number | undefined {
    if (id === undefined) return undefined
    const conversation = this.#ports.conversation()
    const number = conversation.named.get(id) ?? numberIn(id, this.#ports.session_id)
    return number === undefined || number >= conversation.messages || conversation.isHidden(number) ? undefined : number
  }

  /** Rising numbers; what cannot be read (a damaged line) is left out. */
  async #read(numbers: readonly number[]): Promise<HistoryMessage[]> {
    const first = numbers[0]
    const last = numbers.at(-1)
    if (first === undefined || last === undefined) return []
    if (last >= this.#ports.conversation().located) await this.#ports.settled()
    const found = new Map<number, HistoryMessage>()
    const wanted = new Set(numbers)
    const contents = new Map<string, readonly WirePart[]>()
    const lacking: number[] = []
    /** The number of a message, which is `known` in journals that do not say it; undefined for other records. */
    const take = (given: HistoryRecord, known: (record: CoreRecord) => number) => {
      const record = coreRecord(given)
      if (record?.type === 'prompt.accepted') contents.set(record.prompt_id, record.content)
      const facts = record && messageFacts(record)
      if (!record || !facts) return undefined
      const number = known(record)
      if (!wanted.has(number)) return number
      if (facts.content === undefined) lacking.push(number)
      found.set(number, messageOf(facts, number, record, this.#ports.session_id, []))
      return number
    }
    // One tick from here to the first read: the end of the file and the number of the last message in it agree.
    const { located, index } = this.#ports.conversation()
    if (last >= located - nearEnd) {
      let next = located
      for await (const { value } of this.#ports.scan({ to: this.#ports.end(), reverse: true })) {
        next = take(value, record => numberBefore(record, next)) ?? next
        if (next <= first && !lacking.some(each => !contents.has(found.get(each)?.prompt_id ?? ''))) break
        if (next < first) break
      }
    } else {
      const at = Math.min(Math.floor(first / indexStep), index.length - 1)
      let next = at * indexStep
      for await (const { value } of this.#ports.scan({ from: index[at] ?? 0, to: this.#ports.end() })) {
        const number = take(value, record => numberOf(record, next))
        if (number !== undefined) next = number + 1
        if (next > last) break
      }
    }
    for (const number of lacking) {
      const message = found.get(number)
      if (!message?.prompt_id) continue
      found.set(number, { ...message, content: contents.get(message.prompt_id) ?? (await this.#accepted(message.prompt_id)) })
    }
    return numbers.flatMap(number => found.get(number) ?? [])
  }

  /** Content of a prompt, from its own record. */
  async #accepted(prompt_id: string): Promise<readonly WirePart[]> {
    const prompt = this.#ports.conversation().prompts.get(prompt_id)
    if (!prompt || prompt.content.length > 0 || prompt.at === undefined) return prompt?.content ?? []
    for await (const { value } of this.#ports.scan({ from: prompt.at, to: this.#ports.end() })) {
      const record = coreRecord(value)
      return record?.type === 'prompt.accepted' ? record.content : []
    }
    return []
  }
}
