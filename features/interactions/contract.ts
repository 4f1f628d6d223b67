/** Wire shapes, routes, events and errors of approvals (contract 2, Approval request, Approvals and questions). */
import { defineEvent, defineRoute, errorSpec, named, oneOf, type Static, Time, Type } from '../../kernel/index.ts'
import { SessionBusy, SessionMissing } from '../sessions/index.ts'

export const ApprovalMissing = errorSpec('approval_missing', 40404, 'approval not found')
/** What answers to a request that is over say. */
export const NotResolved = { data: Type.Object({ resolved: Type.Literal(false) }) }
export const AlreadyResolved = errorSpec('already_resolved', 40902, 'already resolved', 200, NotResolved)
export const ApprovalExpired = errorSpec('approval_expired', 41001, 'the approval timed out', 200, NotResolved)

/** What is about to happen; union on `kind`, the fields depend on it. */
const Display = named(
  'ToolInputDisplay',
  Type.Object(
    { kind: Type.String() },
    { additionalProperties: true, description: 'display union on `kind`', examples: [{ kind: 'command', command: 'ls' }] }
  )
)

/** A tool call that waits for the user. */
export const ApprovalRequest = named(
  'Approval',
  Type.Object({
    approval_id: Type.String({ description: 'approval_<uuid>', examples: ['approval_0d3b1a80-5f0e-4a3f-8a53-6b1f0f6f6c11'] }),
    session_id: Type.String({ examples: ['session_3f0c4a52-6a1e-4f0b-9d57-2f4f8f1c7a10'] }),
    turn_id: Type.Optional(Type.Integer({ minimum: 0, description: '0-based turn number' })),
    tool_call_id: Type.String({ examples: ['call_1'] }),
    tool_name: Type.String({ examples: ['Bash'] }),
    action: Type.String({ description: 'short phrase', examples: ['Running: ls'] }),
    tool_input_display: Display,
    created_at: Time,
    expires_at: Type.String({
      format: 'date-time',
      description: 'the request is withdrawn at this instant',
      examples: ['2026-02-01T09:30:00.000Z']
    })
  })
)

const Decision = named('ApprovalDecision', oneOf(['approved', 'rejected', 'cancelled']))

/** The answer to an approval; the body of its route, and what is on record. */
export const ApprovalAnswer = named(
  'ApprovalAnswer',
  Type.Object({
    decision: Decision,
    scope: Type.Optional(oneOf(['session'], { description: 'with approved: remember for the rest of the session; else ignored' })),
    feedback: Type.Optional(Type.String({ description: 'handed back to the agent' })),
    selected_label: Type.Optional(Type.String({ description: 'label of the chosen option when the request offers some' }))
  })
)
export type ApprovalAnswer = Static<typeof ApprovalAnswer>

const session = { session_id: Type.String({ minLength: 1 }) }

/** Open approvals of a session, oldest first. Loads a cold session. */
export const listApprovals = defineRoute({
  method: 'GET',
  path: '/api/v1/sessions/{session_id}/approvals',
  summary: 'List pending approvals',
  params: Type.Object(session),
  query: Type.Object({ status: oneOf(['pending']) }),
  data: Type.Object({ items: Type.Array(ApprovalRequest) }),
  errors: [SessionMissing]
})

/** Answers an approval; the waiting tool call goes on or not. */
export const resolveApproval = defineRoute({
  method: 'POST',
  operationId: 'resolveApproval',
  path: '/api/v1/sessions/{session_id}/approvals/{approval_id}',
  summary: 'Resolve an approval',
  params: Type.Object({ ...session, approval_id: Type.String({ minLength: 1 }) }),
  body: ApprovalAnswer,
  data: Type.Object({ resolved: Type.Literal(true), resolved_at: Time }),
  errors: [SessionMissing, SessionBusy, ApprovalMissing, AlreadyResolved, ApprovalExpired]
})

export const approvalRequested = defineEvent({
  type: 'event.approval.requested',
  scope: 'session',
  durable: true,
  payload: ApprovalRequest,
  summary: 'A tool call waits for the user; `event.session.work_changed` was sent before'
})

export const approvalResolved = defineEvent({
  type: 'event.approval.resolved',
  scope: 'session',
  durable: true,
  payload: Type.Composite([Type.Object({ approval_id: Type.String(), resolved_at: Time }), ApprovalAnswer]),
  summary: 'An approval was answered, withdrawn with its turn, or expired (both `cancelled`)'
})
