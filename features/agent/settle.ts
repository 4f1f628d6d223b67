/** The end of a turn on disk: the turn, its prompts, and the reminder that a user's abort leaves for the model. */
import type { CoreRecord } from '../history/index.ts'
import { type ActiveTurn, reminder } from './active-turn.ts'
import type { TurnResult } from './turn.ts'

const interruption =
  'The user interrupted the previous turn. Its output above is incomplete. Do not pick it up again unless the user asks for it.'

/** `user_cancelled`, `aborted`, `max_steps`, `filtered`, `error`; undefined when the turn completed. */
export function interruptReason(turn: ActiveTurn, result: TurnResult): string | undefined {
  if (result.reason === 'cancelled') return turn.userAborted ? 'user_cancelled' : 'aborted'
  return result.interrupt_reason
}

export function endRecords(turn: ActiveTurn, result: TurnResult): CoreRecord[] {
  const { turn_id } = turn
  const { reason, error } = result
  const prompt_ids = [turn.prompt, ...turn.consumed].map(item => item.prompt_id)
  const interrupt_reason = interruptReason(turn, result)
  const records: CoreRecord[] = [
    {
      type: 'turn.ended',
      turn_id,
      reason,
      ...(interrupt_reason === undefined ? {} : { interrupt_reason }),
      ...(error ? { error: { code: error.code, message: error.message } } : {})
    },
    { type: 'prompt.settled', prompt_ids, status: reason === 'cancelled' ? 'aborted' : reason }
  ]
  if (reason === 'cancelled' && turn.userAborted) records.push(reminder(turn_id, 'interruption', interruption))
  return records
}
