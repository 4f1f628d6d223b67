/** Requests to the human in the journal of the agent, the requests that are open by it, and the events that follow. */
import { checker, oneOf, type TSchema, Type } from '../../kernel/index.ts'
import { defineRecord, type HistoryRecord, type RecordEvent, recordTypes, type StateSpec } from '../history/index.ts'
import type { AnyInteractionKind, InteractionEnd } from './kind.ts'

const whose = { kind: Type.String(), id: Type.String() }
export const requestRecord = defineRecord(
  'interaction.request',
  Type.Object({
    ...whose,
    agent_id: Type.Optional(Type.String({ description: 'who asks' })),
    request: Type.Unknown({ description: 'as its kind says' })
  })
)
export const endRecord = defineRecord(
  'interaction.resolved',
  Type.Object({
    ...whose,
    how: oneOf(['answered', 'withdrawn', 'expired', 'unattended']),
    answer: Type.Optional(Type.Unknown({ description: 'as its kind says' }))
  })
)

export interface OpenRequest {
  readonly kind: string
  readonly id: string
  /** That waits for it. */
  readonly call?: string
}

/** Of a request that is on record; approvals of older journals have it inside only. */
function idOf(record: HistoryRecord): OpenRequest | undefined {
  const { approval_id, tool_call_id } = (record.request ?? {}) as { readonly approval_id?: unknown; readonly tool_call_id?: unknown }
  const call = typeof tool_call_id === 'string' ? { call: tool_call_id } : {}
  if (requestRecord.is(record)) return { kind: record.kind, id: record.id, ...call }
  const isOlder = record.type === requestRecord.type && record.kind === 'approval' && typeof approval_id === 'string'
  return isOlder ? { kind: record.kind as string, id: approval_id, ...call } : undefined
}

/** Requests without an end. */
export const openRequests: StateSpec<OpenRequest[]> = {
  name: 'interactions.open',
  version: 2,
  records: recordTypes(requestRecord, endRecord),
  initial: () => [],
  reduce(open, record) {
    const asked = idOf(record)
    if (asked) return [...open, asked]
    return record.type === endRecord.type ? open.filter(({ id }) => id !== record.id) : open
  }
}

export interface EventOfRequest<S> extends RecordEvent {
  readonly from: S
  /** Of the request. */
  readonly id: string
  /** Undefined: it begins. */
  readonly end: InteractionEnd<unknown> | undefined
}

/** The events of these records, with who can tell them; none for a kind whose pack is not there. */
export function eventsOf<S extends { readonly kind: AnyInteractionKind }>(
  record: HistoryRecord,
  sources: readonly S[]
): readonly EventOfRequest<S>[] {
  const from = sources.find(({ kind }) => kind.name === record.kind)
  if (!from) return []
  const at = new Date(record.time ?? 0)
  const { kind } = from
  if (requestRecord.is(record)) {
    const { id, request } = record
    return fits(kind.request, request) ? [{ ...kind.asked(request), at, from, id, end: undefined }] : []
  }
  if (!endRecord.is(record)) return []
  const end = endOf(record, kind)
  return end ? [{ ...kind.ended(record.id, end, at), at, from, id: record.id, end }] : []
}

function endOf(record: { readonly how: string; readonly answer?: unknown }, kind: AnyInteractionKind): InteractionEnd<unknown> | undefined {
  if (record.how === 'withdrawn' || record.how === 'expired') return { how: record.how }
  if (record.how === 'unattended') return { how: record.how, fail: false }
  return record.how === 'answered' && fits(kind.answer, record.answer) ? { how: 'answered', answer: record.answer } : undefined
}

const checkers = new WeakMap<TSchema, (value: unknown) => boolean>()
/** Whether a value of a journal has the shape. */
function fits(schema: TSchema, value: unknown): boolean {
  let check = checkers.get(schema)
  if (!check) {
    const compiled = checker(schema)
    check = given => compiled.Check(given)
    checkers.set(schema, check)
  }
  return check(value)
}
