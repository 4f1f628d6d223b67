/** Notices for the model (of tasks, goals, schedules, hooks) that wait for a step: on record until their message is, or until they are void. */
import { oneOf, Type } from '../../kernel/index.ts'
import { coreRecord, defineRecord, type Origin, recordTypes, type StateSpec, sessionForked, type WirePart } from '../history/index.ts'
import type { Admission } from './service.ts'

/** A notice that was accepted and whose message did not come at once. */
export const noticeAccepted = defineRecord(
  'notice.accepted',
  Type.Object({
    notice_id: Type.String({ description: 'id of its message' }),
    content: Type.Unsafe<readonly WirePart[]>(Type.Array(Type.Object({ type: Type.String() }, { additionalProperties: true }))),
    origin: Type.Unsafe<Origin>(Type.Object({ kind: Type.String() }, { additionalProperties: true })),
    admission: oneOf(['newTurn', 'activeOrNewTurn', 'activeOrNextTurn', 'activeTurnOnly']),
    mergeable: Type.Boolean({ description: 'may share a step with another one' }),
    turn_scoped: Type.Boolean({ description: 'void when a turn ends that did not take it' }),
    turn_id: Type.Optional(Type.Integer({ description: 'the turn that alone may take it' }))
  })
)
/** They never become messages. */
export const noticeDropped = defineRecord(
  'notice.dropped',
  Type.Object({ notice_ids: Type.Unsafe<readonly string[]>(Type.Array(Type.String())) })
)

export interface Notice {
  readonly notice_id: string
  readonly content: readonly WirePart[]
  readonly origin: Origin
  readonly admission: Admission
  readonly mergeable: boolean
  readonly turn_scoped: boolean
  readonly turn_id?: number
}

/** Those that wait, in the order in which they were accepted. */
export const noticeState: StateSpec<readonly Notice[]> = {
  name: 'agent.notices',
  version: 1,
  records: recordTypes(noticeAccepted, noticeDropped, sessionForked, 'message', 'turn.ended'),
  initial: () => [],
  reduce(state, record) {
    if (noticeAccepted.is(record)) {
      const { type: _type, time: _time, ...notice } = record
      return [...state, notice]
    }
    if (state.length === 0) return state
    if (noticeDropped.is(record)) return state.filter(notice => !record.notice_ids.includes(notice.notice_id))
    // What they would have begun goes on in the session that was copied.
    if (sessionForked.is(record)) return state.filter(notice => !startsTurn(notice))
    const core = coreRecord(record)
    if (core?.type === 'message') return state.filter(notice => notice.notice_id !== core.id)
    if (core?.type === 'turn.ended') return state.filter(notice => !notice.turn_scoped)
    return state
  }
}

/** Whether a turn begins for it when none runs. */
export const startsTurn = ({ admission }: { readonly admission: Admission }): boolean =>
  admission === 'newTurn' || admission === 'activeOrNewTurn'

/** Those that the next step of a turn takes: all that can share one, and at most one that cannot. */
export function forStep(waiting: readonly Notice[], turn_id: number): readonly Notice[] {
  let alone = 0
  return waiting.filter(notice => {
    if (notice.admission === 'newTurn' || (notice.turn_id ?? turn_id) !== turn_id) return false
    return notice.mergeable || alone++ === 0
  })
}
