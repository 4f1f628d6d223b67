/** The open approvals of one session: announced, waited for, answered once. */
import { randomUUID } from 'node:crypto'
import { AppError, type Emit, type Logger, type Static } from '../../kernel/index.ts'
import type { Session } from '../sessions/index.ts'
import {
  AlreadyResolved,
  ApprovalExpired,
  ApprovalMissing,
  type ApprovalRequest,
  type approvalRequested,
  type approvalResolved
} from './contract.ts'
import { Remembered } from './remembered.ts'
import type { ApprovalAnswer, ApprovalAsk } from './service.ts'

type Request = Static<typeof ApprovalRequest>

export interface ApprovalPorts {
  readonly emitRequested: Emit<typeof approvalRequested>
  readonly emitResolved: Emit<typeof approvalResolved>
  /** Notes the fact in the agent's history. Never rejects. */
  readonly record: (
    ask: ApprovalAsk,
    type: 'interaction.request' | 'interaction.resolved',
    fields: Readonly<Record<string, unknown>>
  ) => Promise<void>
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
  readonly settle: (answer: ApprovalAnswer) => void
  readonly release: () => void
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

  /** Announces the request and resolves with its answer; `cancelled` on abort or expiry. Never rejects. */
  async ask(ask: ApprovalAsk, signal: AbortSignal): Promise<ApprovalAnswer> {
    if (signal.aborted) return { decision: 'cancelled' }
    const request = this.#request(ask)
    await this.#ports.record(ask, 'interaction.request', { kind: 'approval', request })
    if (signal.aborted || this.#session.scope.closed) return { decision: 'cancelled' }
    return new Promise(resolve => {
      const id = request.approval_id
      const withdraw = () => void this.#withdraw(id)
      const timer = setTimeout(() => void this.#expire(id), this.#ports.ttlMs)
      timer.unref()
      signal.addEventListener('abort', withdraw, { once: true })
      const release = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', withdraw)
      }
      this.#open.set(id, { ask, request, settle: resolve, release })
      this.#session.work.pending('approval', 1)
      this.#ports.emitRequested(request, { session_id: this.#session.id, subject: ask.agent.id })
    })
  }

  /** The user's answer. Throws ApprovalMissing (40404), AlreadyResolved (40902), ApprovalExpired (41001). Returns the instant. */
  async resolve(id: string, answer: ApprovalAnswer): Promise<string> {
    const open = this.#take(id, false)
    if (!open) {
      const known = this.#resolved.get(id)
      if (known === undefined) throw new AppError(ApprovalMissing)
      throw new AppError(known === 'expired' ? ApprovalExpired : AlreadyResolved, { data: { resolved: false } })
    }
    const resolved_at = this.#ports.now().toISOString()
    await this.#ports.record(open.ask, 'interaction.resolved', { kind: 'approval', id, ...answer })
    try {
      this.#session.work.pending('approval', -1)
      this.#announce(open, answer, resolved_at)
    } finally {
      open.settle(answer)
    }
    return resolved_at
  }

  /** Withdraws everything that is open. */
  async close(): Promise<void> {
    await Promise.all([...this.#open.keys()].map(id => this.#withdraw(id)))
  }

  async #withdraw(id: string): Promise<void> {
    await this.#cancel(id, { decision: 'cancelled' })
  }

  async #expire(id: string): Promise<void> {
    await this.#cancel(id, { decision: 'cancelled', expired: true })
  }

  /** The events come at once and in one go: nobody may see a request whose turn is over. */
  async #cancel(id: string, answer: ApprovalAnswer): Promise<void> {
    const open = this.#take(id, answer.expired === true)
    if (!open) return
    try {
      this.#announce(open, answer, this.#ports.now().toISOString())
      this.#session.work.pending('approval', -1)
    } catch (error) {
      this.#ports.log.error({ err: error }, 'a withdrawn approval could not be announced')
    }
    open.settle(answer)
    await this.#ports.record(open.ask, 'interaction.resolved', { kind: 'approval', id, ...answer })
  }

  #take(id: string, expired: boolean): Open | undefined {
    const open = this.#open.get(id)
    if (!open) return undefined
    this.#open.delete(id)
    open.release()
    this.#resolved.add(id, expired ? 'expired' : 'resolved')
    return open
  }

  #announce(open: Open, answer: ApprovalAnswer, resolved_at: string): void {
    const { decision, scope, feedback, selected_label } = answer
    this.#ports.emitResolved(
      {
        approval_id: open.request.approval_id,
        decision,
        ...(scope === undefined ? {} : { scope }),
        ...(feedback === undefined ? {} : { feedback }),
        ...(selected_label === undefined ? {} : { selected_label }),
        resolved_at
      },
      { session_id: this.#session.id, subject: open.ask.agent.id }
    )
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
