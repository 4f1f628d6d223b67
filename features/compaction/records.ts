/** What compaction puts on record, what follows from it for clients, and what is open after a crash. */
import { oneOf, Type } from '../../kernel/index.ts'
import { contextCompacted, defineRecord, type HistoryRecord, type RecordEvent, recordTypes, type StateSpec } from '../history/index.ts'
import { compactionBlocked, compactionCancelled, compactionCompleted, compactionStarted } from './contract.ts'

/** `turn_id`: the turn that waits for it from the beginning. */
export const begun = defineRecord(
  'compaction.begin',
  Type.Object({
    trigger: oneOf(['manual', 'auto']),
    instruction: Type.Optional(Type.String()),
    turn_id: Type.Optional(Type.Integer({ minimum: 0 }))
  })
)
export const cancelled = defineRecord('compaction.cancel', Type.Object({}))
/** A turn waits for one that began beside its steps. */
export const blocked = defineRecord('compaction.blocked', Type.Object({ turn_id: Type.Integer({ minimum: 0 }) }))

export interface CompactionState {
  readonly running: boolean
  /** Tokens of the context right after the last one. */
  readonly after?: number
}

export const compactionState: StateSpec<CompactionState> = {
  name: 'compaction',
  version: 1,
  records: recordTypes(begun, cancelled, contextCompacted),
  initial: () => ({ running: false }),
  reduce(state, record) {
    if (begun.is(record)) return { ...state, running: true }
    if (cancelled.is(record)) return { ...state, running: false }
    if (!contextCompacted.is(record)) return state
    return { running: false, ...(record.result ? { after: record.result.tokens_after } : {}) }
  }
}

/** The events of a record. */
export function eventsOf(record: HistoryRecord): readonly RecordEvent[] {
  const at = new Date(record.time ?? 0)
  if (begun.is(record)) {
    const { trigger, instruction, turn_id: turnId } = record
    const started = { type: compactionStarted.type, payload: { trigger, ...(instruction === undefined ? {} : { instruction }) }, at }
    return turnId === undefined ? [started] : [started, { type: compactionBlocked.type, payload: { turnId }, at }]
  }
  if (blocked.is(record)) return [{ type: compactionBlocked.type, payload: { turnId: record.turn_id }, at }]
  if (cancelled.is(record)) return [{ type: compactionCancelled.type, payload: {}, at }]
  if (!contextCompacted.is(record) || !record.result) return []
  const { kept_head_user_message_count: head, dropped_count: dropped, ...told } = record.result
  const result = {
    summary: told.summary,
    compactedCount: told.compacted_count,
    tokensBefore: told.tokens_before,
    tokensAfter: told.tokens_after,
    keptUserMessageCount: told.kept_user_message_count,
    ...(head === undefined ? {} : { keptHeadUserMessageCount: head }),
    ...(dropped === undefined ? {} : { droppedCount: dropped })
  }
  return [{ type: compactionCompleted.type, payload: { result }, at }]
}
