/** Requests to the human in the journal of the agent, the requests that are open by it, and the events that follow. */
import { oneOf, type Static, Type } from '../../kernel/index.ts'
import { defineRecord, type HistoryRecord, type RecordEvent, type StateSpec } from '../history/index.ts'
import { ApprovalRequest, approvalRequested, approvalResolved } from './contract.ts'

export const requestRecord = defineRecord('interaction.request', Type.Object({ kind: Type.Literal('approval'), request: ApprovalRequest }))
export const resolvedRecord = defineRecord(
  'interaction.resolved',
  Type.Object({
    kind: Type.Literal('approval'),
    id: Type.String(),
    decision: oneOf(['approved', 'rejected', 'cancelled']),
    scope: Type.Optional(Type.Literal('session')),
    feedback: Type.Optional(Type.String()),
    selected_label: Type.Optional(Type.String()),
    expired: Type.Optional(Type.Boolean()),
    withdrawn: Type.Optional(Type.Boolean({ description: 'before anybody was asked: nothing was told' }))
  })
)

/** Ids of the requests without an end. */
export const openRequests: StateSpec<string[]> = {
  name: 'interactions.open',
  version: 1,
  initial: () => [],
  reduce(open, record) {
    if (requestRecord.is(record)) return [...open, record.request.approval_id]
    return resolvedRecord.is(record) ? open.filter(id => id !== record.id) : open
  }
}

/** The events of these records. */
export function eventsOf(record: HistoryRecord): readonly RecordEvent[] {
  const at = new Date(record.time ?? 0)
  if (requestRecord.is(record)) return [{ type: approvalRequested.type, payload: record.request, at }]
  if (!resolvedRecord.is(record) || record.withdrawn) return []
  const { id: approval_id, decision, scope, feedback, selected_label } = record
  const payload: Static<typeof approvalResolved.payload> = {
    approval_id,
    decision,
    ...(scope === undefined ? {} : { scope }),
    ...(feedback === undefined ? {} : { feedback }),
    ...(selected_label === undefined ? {} : { selected_label }),
    resolved_at: at.toISOString()
  }
  return [{ type: approvalResolved.type, payload, at }]
}
