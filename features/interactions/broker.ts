/** The open requests of one session, of all kinds: announced, waited for, ended once. */
import { randomUUID } from 'node:crypto'
import { AppError, invalid, type Logger } from '../../kernel/index.ts'
import type { HistoryRecord, Written } from '../history/index.ts'
import type { AgentHost, Session } from '../sessions/index.ts'
import { Attendance } from './attendance.ts'
import { AlreadyResolved } from './contract.ts'
import type { AnyInteractionKind, InteractionAsk, InteractionEnd, InteractionSource, Unanswered } from './kind.ts'
import { endRecord, requestRecord } from './records.ts'
import { Remembered } from './remembered.ts'

export interface BrokerPorts {
  /** Writes the record; its events are told by who wrote it. Rejects when the disk refuses. */
  readonly record: (agent: AgentHost, record: HistoryRecord) => Promise<Written>
  readonly log: Logger
  readonly now: () => Date
  /** Unique id without prefix. */
  readonly newId: () => string
  /** What becomes of requests while nobody is there; undefined: they wait. */
  readonly unattended?: { readonly fail: boolean; readonly grace_ms: number; here(session: Session): boolean }
}

/** Clients that left are noticed at most so much later, ms. */
const lookMs = 1000

/** The id of a request, without its prefix. */
export const newRequestId = (): string => randomUUID()

interface Open {
  readonly id: string
  readonly kind: AnyInteractionKind
  readonly agent: AgentHost
  readonly ask: InteractionAsk
  readonly request: unknown
  readonly settle: (end: InteractionEnd<unknown>) => void
  readonly release: () => void
  /** An answer is being recorded. */
  answering: boolean
  /** What would have ended it meanwhile. */
  missed?: Unanswered
}

/** One per session (slot). Closing withdraws what is open. */
export class Broker {
  readonly #session: Session
  readonly #ports: BrokerPorts
  readonly #open = new Map<string, Open>()
  readonly #ended: Remembered
  readonly #attendance: Attendance | undefined
  #look: NodeJS.Timeout | undefined
  /** Requests on their way to the disk. */
  readonly #recording = new Set<Promise<unknown>>()
  #closed = false

  constructor(session: Session, ports: BrokerPorts) {
    this.#session = session
    this.#ports = ports
    this.#ended = new Remembered(() => ports.now().getTime())
    const { unattended } = ports
    this.#attendance =
      unattended &&
      new Attendance({ here: () => unattended.here(session), now: () => ports.now().getTime(), grace_ms: unattended.grace_ms })
  }

  /** Oldest first. */
  open(): readonly Pick<Open, 'id' | 'kind' | 'request'>[] {
    return [...this.#open.values()]
  }

  isOpen(id: string): boolean {
    return this.#open.has(id)
  }

  /** Announces the request and resolves with its end. Rejects when the disk refuses. */
  async ask({ kind, ttl_ms }: InteractionSource, ask: InteractionAsk, signal: AbortSignal): Promise<InteractionEnd<unknown>> {
    if (signal.aborted || this.#closed) return { how: 'withdrawn' }
    const { agent } = ask
    const id = `${kind.name}_${this.#ports.newId()}`
    const request: unknown = kind.describe(ask, this.#base(id, ttl_ms))
    const recording = this.#ports.record(agent, requestRecord.of({ kind: kind.name, id, agent_id: agent.id, request }))
    this.#recording.add(recording)
    let written: Written
    try {
      written = await recording // whoever waits for it, too, finds the request open
    } finally {
      this.#recording.delete(recording)
    }
    return new Promise(settle => {
      const withdraw = () => void this.#end(id, { how: 'withdrawn' })
      const timer = ttl_ms === undefined ? undefined : setTimeout(() => void this.#end(id, { how: 'expired' }), ttl_ms)
      timer?.unref()
      signal.addEventListener('abort', withdraw, { once: true })
      const release = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', withdraw)
      }
      this.#open.set(id, { id, kind, agent, ask, request, settle, release, answering: false })
      this.#session.work.pending(kind.pending, 1)
      written.tell()
      // What is on record is told, also when nobody waits for the answer any more.
      if (signal.aborted) withdraw()
      else this.#watch()
    })
  }

  /** The request that waits for an answer. Throws what the kind says of an id that is unknown or expired, AlreadyResolved (40902). */
  find(kind: AnyInteractionKind, id: string): Open {
    const open = this.#open.get(id)
    if (open?.kind === kind && !open.answering) return open
    const known = open?.kind === kind ? 'resolved' : this.#ended.get(id)
    if (known === undefined) throw new AppError(kind.missing)
    throw new AppError(known === 'expired' ? kind.expired : AlreadyResolved, { data: { resolved: false } })
  }

  /** The user's answer. Throws as `find`, and 40001 for one that the kind does not take. Returns the instant. */
  async answer(kind: AnyInteractionKind, id: string, answer: unknown): Promise<string> {
    const open = this.find(kind, id)
    const faults = kind.faults?.(open.ask, answer) ?? []
    if (faults.length > 0) throw invalid(faults)
    open.answering = true
    let written: Written
    const at = this.#ports.now()
    try {
      const record = endRecord.of({ kind: kind.name, id, how: 'answered', answer })
      written = await this.#ports.record(open.agent, { ...record, time: at.getTime() })
    } catch (error) {
      open.answering = false // another answer may come through, unless nobody waits any more
      if (open.missed) await this.#end(id, open.missed)
      throw error
    }
    this.#close(open, 'resolved')
    this.#session.work.pending(kind.pending, -1)
    written.tell()
    open.settle({ how: 'answered', answer })
    return at.toISOString()
  }

  /** Somebody came, or looked at what is open. */
  seen(): void {
    this.#attendance?.seen()
  }

  /** As long as something is open, looks whether somebody is there to answer. */
  #watch(): void {
    const { unattended } = this.#ports
    if (!unattended || !this.#attendance || this.#look || this.#open.size === 0) return
    this.#look = setTimeout(
      () => {
        this.#look = undefined
        if (this.#attendance?.left() === 0) {
          this.#ports.log.warn({ session_id: this.#session.id }, 'nobody is there to answer what an agent asks')
          for (const { id } of this.open()) void this.#end(id, { how: 'unattended', fail: unattended.fail })
        }
        this.#watch()
      },
      Math.min(this.#attendance.left(), lookMs)
    ).unref()
  }

  /** Withdraws what is open, of the kinds that fit; also what is about to be. */
  async withdraw(fits: (kind: AnyInteractionKind) => boolean): Promise<void> {
    while (this.#recording.size > 0) await Promise.allSettled(this.#recording)
    const gone = [...this.#open.values()].filter(({ kind }) => fits(kind))
    await Promise.all(gone.map(({ id }) => this.#end(id, { how: 'withdrawn' })))
  }

  close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#look)
    return this.withdraw(() => true)
  }

  /** Nobody waits for the answer any more; what the disk does not take now, the next load makes up for. */
  async #end(id: string, end: Unanswered): Promise<void> {
    const open = this.#open.get(id)
    if (open?.answering) open.missed = end
    if (!open || open.answering) return
    const { kind, agent } = open
    this.#close(open, end.how === 'withdrawn' ? 'resolved' : 'expired')
    try {
      ;(await this.#ports.record(agent, endRecord.of({ kind: kind.name, id, how: end.how }))).tell()
    } catch (error) {
      this.#ports.log.error({ err: error, kind: kind.name }, 'the end of a request to the user could not be recorded')
    }
    this.#session.work.pending(kind.pending, -1)
    open.settle(end) // what follows from the end is told after it
  }

  #close(open: Open, how: 'resolved' | 'expired'): void {
    this.#open.delete(open.id)
    open.release()
    this.#ended.add(open.id, how)
  }

  #base(id: string, ttl_ms: number | undefined) {
    const created = this.#ports.now()
    return {
      id,
      session_id: this.#session.id,
      created_at: created.toISOString(),
      ...(ttl_ms === undefined ? {} : { expires_at: new Date(created.getTime() + ttl_ms).toISOString() })
    }
  }
}
