/** How a turn begins and ends on disk: by itself (with the reminder that a user's abort leaves for the model), or closed after its process died. */
import { type CoreRecord, type History, interruptedResult } from '../history/index.ts'
import { type ActiveTurn, reminder, userMessage } from './active-turn.ts'
import type { QueuedPrompt } from './queue.ts'
import type { TurnResult } from './turn.ts'

const interruption =
  'The user interrupted the previous turn. Its output above is incomplete. Do not pick it up again unless the user asks for it.'

/** `user_cancelled`, `aborted`, `max_steps`, `filtered`, `error`; undefined when the turn completed. */
export function interruptReason(turn: ActiveTurn, result: TurnResult): string | undefined {
  if (result.reason === 'cancelled') return turn.userAborted ? 'user_cancelled' : 'aborted'
  return result.interrupt_reason
}

/** A turn and the message that opens it. */
export function startRecords(turn_id: number, { prompt_id, origin }: Pick<QueuedPrompt, 'prompt_id' | 'origin'>): CoreRecord[] {
  return [{ type: 'turn.started', turn_id, origin, prompt_id }, userMessage(turn_id, undefined, origin, prompt_id)]
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

/**
 * Closes what a process that died left open, in one batch, so that it happens exactly once: an open turn counts as cancelled by the
 * program (`aborted`). Empty when the last turn ended properly.
 */
export function repairOf(history: History): readonly CoreRecord[] {
  const turn = history.turns().at(-1)
  const stray = history.prompts().filter(prompt => prompt.status === 'running')
  if ((!turn || turn.ended_at !== undefined) && stray.length === 0) return []
  const turn_id = turn?.turn_id ?? 0
  const step = history.openStep()
  const records: CoreRecord[] = history.openCalls().map(call => ({
    type: 'tool.result',
    turn_id,
    step: step?.step ?? turn?.steps ?? 0,
    tool_call_id: call.id,
    tool_name: call.name,
    content: [{ type: 'text', text: interruptedResult }],
    is_error: true,
    synthetic: true
  }))
  if (step) records.push({ type: 'step.end', turn_id, step: step.step, reason: 'interrupted' })
  if (turn && turn.ended_at === undefined) records.push({ type: 'turn.ended', turn_id, reason: 'cancelled', interrupt_reason: 'aborted' })
  // The end of the turn may be on disk without that of its prompts.
  const reason = turn?.reason ?? 'cancelled'
  const status = reason === 'cancelled' ? 'aborted' : reason
  if (stray.length > 0) records.push({ type: 'prompt.settled', prompt_ids: stray.map(prompt => prompt.prompt_id), status })
  return records
}
