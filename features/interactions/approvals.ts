/** Approvals of tool calls: the first kind of request to the human. */
import type { Static } from '../../kernel/index.ts'
import type { ToolDisplay } from '../tools/index.ts'
import { ApprovalAnswer, ApprovalExpired, ApprovalMissing, ApprovalRequest, approvalRequested, approvalResolved } from './contract.ts'
import { defineInteraction, type InteractionAsk } from './kind.ts'

export interface ApprovalAsk extends InteractionAsk {
  readonly tool_call_id: string
  readonly tool_name: string
  /** Short phrase: `Running: ls`. */
  readonly action: string
  readonly display: ToolDisplay
  /** Labels that clients offer, by the decision that they stand for: an answer names none, or one of its decision. Absent: any is noted. */
  readonly labels?: { readonly approved: readonly string[]; readonly rejected: readonly string[] }
}

export const approvals = defineInteraction({
  name: 'approval',
  pending: 'approval',
  request: ApprovalRequest,
  answer: ApprovalAnswer,
  missing: ApprovalMissing,
  expired: ApprovalExpired,
  describe: (
    { turn_id, tool_call_id, tool_name, action, display }: ApprovalAsk,
    { id, session_id, created_at, expires_at = created_at }
  ) => ({
    approval_id: id,
    session_id,
    ...(turn_id === undefined ? {} : { turn_id }),
    tool_call_id,
    tool_name,
    action,
    tool_input_display: { ...display },
    created_at,
    expires_at
  }),
  faults({ labels }, { decision, selected_label: label }) {
    if (!labels || label === undefined) return []
    const offered = decision === 'cancelled' ? [] : labels[decision]
    if (offered.includes(label)) return []
    const which = offered.length > 0 ? `one of ${offered.map(each => `'${each}'`).join(', ')}` : 'absent'
    return [{ path: 'selected_label', message: `with '${decision}' must be ${which}` }]
  },
  asked: request => ({ type: approvalRequested.type, payload: request }),
  ended(approval_id, end, at) {
    const answer = end.how === 'answered' ? end.answer : { decision: 'cancelled' as const }
    const payload: Static<typeof approvalResolved.payload> = { approval_id, ...answer, resolved_at: at.toISOString() }
    return { type: approvalResolved.type, payload }
  }
})
