/** Closes what a process that died left open: one batch of records, so that it happens exactly once. */
import { type CoreRecord, type History, interruptedResult } from '../history/index.ts'

/** Empty when the last turn ended properly. An open turn counts as cancelled by the program (`aborted`). */
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
