/** The journal of one agent: appended records, folded at once, acknowledged when on disk. */
import { AppError, type LogStore } from '../../kernel/index.ts'
import type { LlmMessage, LlmToolCall, TokenUsage } from '../llm/index.ts'
import { SessionBusy } from '../sessions/index.ts'
import { protocolVersion } from './contract.ts'
import { Fold } from './fold.ts'
import { project } from './project.ts'
import type { CoreRecord, History, HistoryMessage, HistoryRecord, OpenStep, PromptRecord, TurnRecord } from './service.ts'
import { estimateMessage } from './tokens.ts'

const logId = 'wire'

export interface HistoryPorts {
  readonly log: LogStore<{ type: string; time?: number }>
  readonly now: () => Date
  readonly session_id: string
  /** False: appends throw SessionBusy. */
  readonly writable: boolean
}

export class AgentHistory implements History {
  readonly #ports: HistoryPorts
  #fold: Fold
  #started = false
  readonly #writes = new Set<Promise<unknown>>()
  /** A write failed and the state has not been read back since. */
  #doubtful = false
  #rereading: Promise<void> | undefined

  constructor(ports: HistoryPorts) {
    this.#ports = ports
    this.#fold = new Fold(ports.session_id)
  }

  /** Reads the journal. */
  async open(): Promise<this> {
    const fold = new Fold(this.#ports.session_id)
    const records = await this.#ports.log.read(logId)
    for (const record of records) fold.apply(record)
    this.#fold = fold
    this.#started = records.length > 0
    return this
  }

  messages(): readonly HistoryMessage[] {
    return this.#fold.messages
  }

  turns(): readonly TurnRecord[] {
    return this.#fold.turns
  }

  prompts(): readonly PromptRecord[] {
    return [...this.#fold.prompts.values()]
  }

  prompt(prompt_id: string): PromptRecord | undefined {
    return this.#fold.prompts.get(prompt_id)
  }

  usage(): TokenUsage {
    return this.#fold.usage
  }

  usageByModel(): Readonly<Record<string, TokenUsage>> {
    return this.#fold.usageByModel
  }

  contextTokens(): number {
    const { messages, anchor } = this.#fold
    let tokens = anchor.tokens
    for (let at = anchor.length; at < messages.length; at++) tokens += estimateMessage(messages[at] as HistoryMessage)
    return tokens
  }

  hasToolCall(id: string): boolean {
    return this.#fold.callIds.has(id)
  }

  openStep(): OpenStep | undefined {
    return this.#fold.openStep
  }

  openCalls(): readonly LlmToolCall[] {
    return [...this.#fold.openCalls.values()]
  }

  records(type: string): readonly HistoryRecord[] {
    return this.#fold.others.get(type) ?? []
  }

  project(): LlmMessage[] {
    return project(this.#fold.messages)
  }

  /**
   * When the disk refuses, the state is read back from it once every write under way has ended: memory never promises what the disk does
   * not hold, and never misses what it does.
   */
  async append(...records: (CoreRecord | HistoryRecord)[]): Promise<void> {
    if (!this.#ports.writable) throw new AppError(SessionBusy, { message: 'session is open in another server process' })
    while (this.#doubtful) await this.#reread()
    const time = this.#ports.now().getTime()
    const stamped = records.map(record => ({ time, ...record }) as HistoryRecord)
    const first = this.#started ? [] : [{ type: 'metadata', protocol_version: protocolVersion, created_at: time }]
    this.#started = true
    for (const record of stamped) this.#fold.apply(record)
    const write = this.#ports.log.append(logId, ...(first as HistoryRecord[]), ...stamped)
    this.#writes.add(write)
    try {
      await write
    } catch (error) {
      this.#doubtful = true
      await this.#reread()
      throw error
    } finally {
      this.#writes.delete(write)
    }
    await this.#rereading?.catch(() => undefined) // this record is on disk; the next append reads again
  }

  /** Throws while the disk cannot be read: then the next append tries again. */
  #reread(): Promise<void> {
    this.#rereading ??= this.#readBack().finally(() => {
      this.#rereading = undefined
    })
    return this.#rereading
  }

  async #readBack(): Promise<void> {
    await Promise.allSettled(this.#writes)
    await this.open()
    this.#doubtful = false
  }

  async close(): Promise<void> {
    await this.#ports.log.release(logId)
  }
}
