/** How the work of an agent ended last, by its records: what the session says of its main agent. */
import { coreRecord, recordTypes, type StateSpec } from '../history/index.ts'
import type { TurnReason } from '../sessions/index.ts'

interface LastEnd {
  /** A turn runs. */
  readonly open?: true
  /** Of the newest turn that is over, or of a prompt after it that got none; ms. */
  readonly last?: { readonly at: number; readonly reason: TurnReason }
}

/** `reason` of a turn as a session tells it. */
const turnReason = (reason: string): TurnReason =>
  reason === 'completed' ? reason : reason === 'failed' || reason === 'blocked' ? 'failed' : 'cancelled'

export const lastEndState: StateSpec<LastEnd> = {
  name: 'agent.last_end',
  version: 1,
  records: recordTypes('turn.started', 'turn.ended', 'prompt.settled'),
  initial: () => ({}),
  reduce(state, given) {
    const record = coreRecord(given)
    if (record?.type === 'turn.started') return { ...state, open: true }
    const at = record?.time ?? 0
    if (record?.type === 'turn.ended') return { last: { at, reason: turnReason(record.reason) } }
    // One that was to be steered leaves the turn at work.
    if (record?.type !== 'prompt.settled' || record.status !== 'blocked' || record.turn_id !== undefined || state.open) return state
    return { last: { at, reason: turnReason('blocked') } }
  }
}
