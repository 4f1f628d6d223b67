/** The open approvals of one session: announced, waited for, answered once. */
import { randomUUID } from 'node:crypto'
import { AppError, type Logger, type Static } from '../../kernel/index.ts'
import type { HistoryRecord, Written } from '../history/index.ts'
import type { AgentHost, Session } from '../sessions/index.ts'
import { AlreadyResolved, ApprovalExpired, ApprovalMissing, type ApprovalRequest } from './contract.ts'
import { requestRecord, resolvedRecord } from './records.ts'
import { Remembered } from './remembered.ts'
import type { ApprovalAnswer, ApprovalAsk } from './service.ts'

type Request = Static<typeof ApprovalRequest>

export interface ApprovalPorts {
  /** Writes the record; its event is told by who wrote it. Rejects when the disk refuses. */
  readonly record: (agent: AgentHost, record: HistoryRecord) => Promise<Written>
  readonly log: Logger
  readonly now: () => Date
  /** Unique id without prefix. */
  readonly newId: () => string
  readonly ttlMs: number
}

/** The id of an approval, without its prefix. */
export const newApprovalId = (): string => randomUUID()

interface Open {
  readonly ask: ApprovalAsk
  readonly request: Request
  readonly signal: AbortSignal
  readonly settle: (answer: ApprovalAnswer) => void
  readonly release: () => void
  /** An answer is being recorded. */
  answering: boolean
}

/** One per session (slot). Closing withdraws what is open. */
export class SessionApprovals {
  readonly #session: Session
  readonly #ports: ApprovalPorts
  readonly #open = new Map<string, Open>()
  readonly #resolved: Remembered

  constructor(session: Session, ports: ApprovalPorts) {
    this.#session = session
    this.#ports = ports
    this.#resolved = new Remembered(() => ports.now().getTime())
  }

  /** Oldest first. */
  pending(): Request[] {
    return [...this.#open.values()].map(open => open.request)
  }

  /** Announces the request and resolves with its answer; `cancelled` on abort or expiry. Rejects when the disk refuses. */
  async ask(ask: ApprovalAsk, signal: AbortSignal): Promise<ApprovalAnswer> {
    if (signal.aborted) return { decision: 'cancelled' }
    const request = this.#request(ask)
    const id = request.approval_id
    const written = await this.#ports.record(ask.agent, requestRecord.of({ kind: 'approval', request }))
    if (signal.aborted || this.#session.scope.closed) {
      // Nobody may see a request whose turn is over.
      written.drop()
      const end = await this.#ports.record(ask.agent, resolvedRecord.of({ kind: 'approval', id, decision: 'cancelled', withdrawn: true }))
      end.tell()
      return { decision: 'cancelled' }
    }
    return new Promise(resolve => {
      const withdraw = () => void this.#cancel(id, { decision: 'cancelled' })
      const timer = setTimeout(() => void this.#cancel(id, { decision: 'cancelled', expired: true }), this.#ports.ttlMs)
      timer.unref()
      signal.addEventListener('abort', withdraw, { once: true })
      const release = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', withdraw)
      }
      this.#open.set(id, { ask, request, signal, settle: resolve, release, answering: false })
      this.#session.work.pending('approval', 1)
      written.tell()
    })
  }

  /** The user's answer. Throws ApprovalMissing (40404), AlreadyResolved (40902), ApprovalExpired (41001). Returns the instant. */
  async resolve(id: string, answer: ApprovalAnswer): Promise<string> {
    const open = this.#open.get(id)
    if (!open || open.answering) {
      const known = open ? 'resolved' : this.#resolved.get(id)
      if (known === undefined) throw new AppError(ApprovalMissing)
      throw new AppError(known === 'expired' ? ApprovalExpired : AlreadyResolved, { data: { resolved: false } })
    }
    open.answering = true
    let written: Written
    try {
      written = await this.#ports.record(open.ask.agent, resolvedRecord.of({ kind: 'approval', id, ...answer }))
    } catch (error) {
      open.answering = false // another answer may come through, unless nobody waits any more
      if (open.signal.aborted) await this.#cancel(id, { decision: 'cancelled' })
      throw error
    }
    this.#close(open, false)
    this.#session.work.pending('approval', -1)
    written.tell()
    open.settle(answer)
    return this.#ports.now().toISOString()
  }

  /** Withdraws everything that is open. */
  async close(): Promise<void> {
    await Promise.all([...this.#open.keys()].map(id => this.#cancel(id, { decision: 'cancelled' })))
  }

  /** Nobody waits for the answer any more; what the disk does not take now, the next load makes up for. */
  async #cancel(id: string, answer: ApprovalAnswer): Promise<void> {
    const open = this.#open.get(id)
    if (!open || open.answering) return
    this.#close(open, answer.expired === true)
    const record = this.#ports.record(open.ask.agent, resolvedRecord.of({ kind: 'approval', id, ...answer }))
    open.settle(answer)
    try {
      ;(await record).tell()
    } catch (error) {
      this.#ports.log.error({ err: error }, 'the end of an approval could not be recorded')
    }
    this.#session.work.pending('approval', -1)
  }

  #close(open: Open, expired: boolean): void {
    const id = open.request.approval_id
    this.#open.delete(id)
    open.release()
    this.#resolved.add(id, expired ? 'expired' : 'resolved')
  }

  #request(ask: ApprovalAsk): Request {
    const created = this.#ports.now()
    return {
      approval_id: `approval_${this.#ports.newId()}`,
      session_id: this.#session.id,
      ...(ask.turn_id === undefined ? {} : { turn_id: ask.turn_id }),
      tool_call_id: ask.tool_call_id,
      tool_name: ask.tool_name,
      action: ask.action,
      tool_input_display: { ...ask.display },
      created_at: created.toISOString(),
      expires_at: new Date(created.getTime() + this.#ports.ttlMs).toISOString()
    }
  }
}
