/** Closes what a process that died left open: one batch of records, so that it happens exactly once. */
import { type CoreRecord, type History, interruptedResult } from '../history/index.ts'
import type { AgentEmit } from './contract.ts'

export interface Repair {
  readonly records: readonly CoreRecord[]
  /** Tells clients; runs when the records are on disk. `settled` settles the session's work, between the turn's end and the prompt's. */
  announce(emit: AgentEmit, at: Date, settled: () => void): void
}

/** undefined when the last turn ended properly. The turn counts as cancelled by the program (`aborted`). */
export function repairOf(history: History): Repair | undefined {
  const turn = history.turns().at(-1)
  const stray = history.prompts().filter(prompt => prompt.status === 'running')
  if ((!turn || turn.ended_at !== undefined) && stray.length === 0) return undefined
  const turnId = turn?.turn_id ?? 0
  const step = history.openStep()
  const calls = history.openCalls()
  const records: CoreRecord[] = calls.map(call => ({
    type: 'tool.result',
    turn_id: turnId,
    step: step?.step ?? turn?.steps ?? 0,
    tool_call_id: call.id,
    tool_name: call.name,
    content: [{ type: 'text', text: interruptedResult }],
    is_error: true,
    synthetic: true
  }))
  if (step) records.push({ type: 'step.end', turn_id: turnId, step: step.step, reason: 'interrupted' })
  const open = turn !== undefined && turn.ended_at === undefined
  if (open) records.push({ type: 'turn.ended', turn_id: turnId, reason: 'cancelled', interrupt_reason: 'aborted' })
  if (stray.length > 0) records.push({ type: 'prompt.settled', prompt_ids: stray.map(prompt => prompt.prompt_id), status: 'aborted' })
  return {
    records,
    announce(emit, at, settled) {
      for (const call of calls)
        emit('toolResult', { turnId, toolCallId: call.id, output: interruptedResult, isError: true, synthetic: true })
      if (step) emit('stepInterrupted', { turnId, step: step.step, stepId: step.step_id, reason: 'aborted' })
      if (open) emit('turnEnded', { turnId, reason: 'cancelled', interruptReason: 'aborted' })
      settled()
      // Prompts that were steered into the turn settle with it and have no event of their own.
      const own = stray.find(prompt => prompt.prompt_id === turn?.prompt_id) ?? stray[0]
      if (own) emit('promptAborted', { promptId: own.prompt_id, abortedAt: at.toISOString() })
    }
  }
}
