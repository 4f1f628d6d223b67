/**
 * What an agent does, as its records say. That an answer streams is on no record: the event `agent.status.updated` tells it, and here the agent
 * runs (some clients refuse a transcript with a phase of kind `streaming`). Pure.
 */
import { coreRecord, type HistoryRecord } from '../history/index.ts'
import { interactionEnded, interactionRequested } from '../interactions/index.ts'
import type { Meta } from './shapes.ts'

type Phase = NonNullable<NonNullable<Meta['agent']>['phase']>

/** The phase after a record; undefined: it stays. */
export function phaseAfter(record: HistoryRecord, now: Phase | undefined, turn: number | undefined): Phase | undefined {
  const since = record.time ?? 0
  if (record.type === interactionRequested.type && interactionRequested.is(record) && record.kind === 'approval') {
    const { tool_call_id: toolCallId } = (record.request ?? {}) as { readonly tool_call_id?: string }
    const approval = { approvalId: record.id, ...(toolCallId === undefined ? {} : { toolCallId }) }
    return { kind: 'awaiting_approval', turnId: turn ?? 0, approval, since }
  }
  if (record.type === interactionEnded.type && now?.kind === 'awaiting_approval' && interactionEnded.is(record)) {
    const { approvalId } = now.approval as { readonly approvalId: string }
    return approvalId === record.id ? { kind: 'running', turnId: now.turnId, step: 0, stepId: '', since } : undefined
  }
  const core = coreRecord(record)
  switch (core?.type) {
    case 'turn.started':
      return { kind: 'running', turnId: core.turn_id, step: 0, stepId: '', since }
    case 'step.begin':
      return { kind: 'running', turnId: core.turn_id, step: core.step, stepId: core.step_id, since }
    case 'tool.begin':
      return { kind: 'tool_call', turnId: core.turn_id, step: core.step, toolCallId: core.tool_call_id, name: core.tool_name, since }
    case 'step.end': {
      const at = { turnId: core.turn_id, step: core.step }
      if (core.interrupted) {
        return {
          kind: 'interrupted',
          ...at,
          reason: core.interrupted,
          ...(core.message === undefined ? {} : { message: core.message }),
          at: since
        }
      }
      if (!core.retry) return undefined
      const { failed_attempt, max_attempts, delay_ms, error_name, status } = core.retry
      const times = { failedAttempt: failed_attempt, nextAttempt: failed_attempt + 1, maxAttempts: max_attempts, delayMs: delay_ms }
      const why = { errorName: error_name, ...(status === undefined ? {} : { statusCode: status }) }
      return { kind: 'retrying', ...at, stepId: core.step_id ?? '', ...times, ...why, since }
    }
    case 'turn.ended': {
      const duration = core.duration_ms === undefined ? {} : { durationMs: core.duration_ms }
      return { kind: 'ended', turnId: core.turn_id, reason: core.reason, ...duration, at: since }
    }
    default:
      return undefined
  }
}
