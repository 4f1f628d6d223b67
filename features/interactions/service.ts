/** Requests to the human: open until answered over REST, withdrawn with the turn. Approvals now; questions use the same broker. */
import { type Static, serviceToken } from '../../kernel/index.ts'
import type { AgentHost, Session } from '../sessions/index.ts'
import type { ToolDisplay } from '../tools/index.ts'
import type { ApprovalRequest } from './contract.ts'

export interface ApprovalAsk {
  readonly agent: AgentHost
  readonly turn_id?: number
  readonly tool_call_id: string
  readonly tool_name: string
  /** Short phrase: `Running: ls`. */
  readonly action: string
  readonly display: ToolDisplay
}

export interface ApprovalAnswer {
  readonly decision: 'approved' | 'rejected' | 'cancelled'
  /** Only with approved: remember for the rest of the session. */
  readonly scope?: 'session'
  readonly feedback?: string
  readonly selected_label?: string
  /** Set when nobody answered in time. */
  readonly expired?: boolean
}

export interface Interactions {
  /**
   * Announces the request (work_changed first) and waits for the answer. Resolves with `cancelled` when the signal aborts or
   * the request expires; never rejects.
   */
  approve(ask: ApprovalAsk, signal: AbortSignal): Promise<ApprovalAnswer>
  /**
   * Ends the requests that a dead process left open as `cancelled`. Called while the agent is opened, before its turn is closed. Never
   * rejects.
   */
  recover(agent: AgentHost): Promise<void>
  /** Open approvals of all agents of a session in wire form, oldest first; for the snapshot. */
  pendingApprovals(session: Session): readonly Static<typeof ApprovalRequest>[]
}

export const Interactions = serviceToken<Interactions>('interactions')
