/** How a turn begins and ends on disk: by itself (with the reminder that a user's abort leaves for the model), or closed after its process died. */
import { type CoreRecord, type History, interruptedResult } from '../history/index.ts'
import { argumentsOf } from './events.ts'
import type { PromptRefusal } from './hooks.ts'
import type { TurnResult } from './loop.ts'
import type { Notice } from './notices.ts'
import type { QueuedPrompt } from './queue.ts'
import { hookResult, noticeMessage, reminder, userMessage } from './user-message.ts'

const interruption =
  'The user interrupted the previous turn. Its output above is incomplete. Do not pick it up again unless the user asks for it.'

/** A turn and the message that opens it. `waited`: its prompt was accepted earlier. */
export function startRecords(
  turn_id: number,
  head: Pick<QueuedPrompt, 'prompt_id' | 'origin'> | Pick<Notice, 'notice_id' | 'origin' | 'content'>,
  { waited = false } = {}
): CoreRecord[] {
  const { origin } = head
  if ('notice_id' in head) return [{ type: 'turn.started', turn_id, origin }, noticeMessage(turn_id, head)]
  const { prompt_id } = head
  const started = { type: 'turn.started', turn_id, origin, prompt_id, ...(waited ? { waited } : {}) } as const
  return [started, userMessage(turn_id, undefined, origin, prompt_id)]
}

/** A prompt that gets no turn: its message, why, and its end. */
export function blockedRecords(
  { prompt_id, origin }: Pick<QueuedPrompt, 'prompt_id' | 'origin'>,
  { event, reason }: PromptRefusal
): CoreRecord[] {
  return [
    { type: 'message', role: 'user', origin, id: prompt_id, prompt_id, blocked: true },
    hookResult(event, reason, { blocked: true }),
    { type: 'prompt.settled', prompt_ids: [prompt_id], status: 'blocked' }
  ]
}

interface TurnEnd {
  readonly turn_id: number
  readonly result: TurnResult
  /** The prompt of the turn, if it has one, then those that were steered into it. */
  readonly prompt_ids: readonly string[]
  readonly user_aborted: boolean
  readonly duration_ms: number
}

/** `user_cancelled`, `aborted`, `max_steps`, `filtered`, `error`; none when the turn completed. */
export function interruptReason({ reason, interrupt_reason }: TurnResult, user_aborted: boolean): string | undefined {
  return reason === 'cancelled' ? (user_aborted ? 'user_cancelled' : 'aborted') : interrupt_reason
}

/** The end of the turn first, then that of its prompts. */
export function endRecords({ turn_id, result, prompt_ids, user_aborted, duration_ms }: TurnEnd): CoreRecord[] {
  const { reason, error, steps, asked } = result
  const interrupt_reason = interruptReason(result, user_aborted)
  const records: CoreRecord[] = [
    {
      type: 'turn.ended',
      turn_id,
      reason,
      duration_ms,
      steps,
      ...(interrupt_reason === undefined ? {} : { interrupt_reason }),
      ...(error ? { ...asked, error: { ...error } } : {})
    },
    { type: 'prompt.settled', prompt_ids, status: reason === 'cancelled' ? 'aborted' : reason, turn_id }
  ]
  if (reason === 'cancelled' && user_aborted) records.push(reminder(turn_id, 'interruption', interruption))
  return records
}

/** Result of a call that was still being decided about, or stood beside one. */
const neverBegun = 'The tool call was interrupted before it began: it had no effect.'

/**
 * Begins and results of calls whose results are not on record: nobody knows what became of them. `none_ran`: of which that is known; `notes`:
 * for the model, by call.
 */
export function openCallRecords(
  history: Pick<History, 'openCalls'>,
  at: { readonly turn_id: number; readonly step: number },
  { none_ran = false, notes = new Map() }: { readonly none_ran?: boolean; readonly notes?: ReadonlyMap<string, string> } = {}
): CoreRecord[] {
  const open_calls = history.openCalls()
  // Clients close a message with its first result: no call may come after that.
  const begins = open_calls.flatMap(({ call, begun }): CoreRecord[] =>
    begun ? [] : [{ type: 'tool.begin', ...at, tool_call_id: call.id, tool_name: call.name, args: argumentsOf(call.arguments) }]
  )
  const results = open_calls.map(
    ({ call }): CoreRecord => ({
      type: 'tool.result',
      ...at,
      tool_call_id: call.id,
      tool_name: call.name,
      content: [{ type: 'text', text: none_ran ? neverBegun : interruptedResult }],
      is_error: true,
      ...(notes.has(call.id) ? { note: notes.get(call.id) } : {}),
      synthetic: true
    })
  )
  return [...begins, ...results]
}

/**
 * Closes what a process that died left open, in one batch, so that it happens exactly once: an open turn counts as cancelled by the
 * program (`aborted`). `notes`: for the model, by call; `waited`: calls that waited for an answer. Empty when the last turn ended properly.
 */
export function repairOf(
  history: Pick<History, 'lastTurn' | 'prompts' | 'openStep' | 'openCalls'>,
  notes: ReadonlyMap<string, string> = new Map(),
  waited: readonly string[] = []
): readonly CoreRecord[] {
  const turn = history.lastTurn()
  const open = turn && turn.ended_at === undefined ? turn : undefined
  const stray = history.prompts().filter(prompt => prompt.status === 'running')
  if (!open && stray.length === 0) return []
  const turn_id = turn?.turn_id ?? 0
  const step = history.openStep()
  const at = { turn_id, step: step?.step ?? turn?.steps ?? 0 }
  // All calls of an answer are decided about before the first of them runs.
  const none_ran = history.openCalls().some(({ call, begun }) => !begun && waited.includes(call.id))
  const records = openCallRecords(history, at, { none_ran, notes })
  if (step) {
    const { step_id, answered, waits } = step
    const lost = answered || waits ? {} : { lost: true }
    records.push({ type: 'step.end', turn_id, step: step.step, step_id, reason: 'interrupted', interrupted: 'aborted', ...lost })
  }
  if (open) records.push({ type: 'turn.ended', turn_id, reason: 'cancelled', interrupt_reason: 'aborted', steps: open.steps })
  // The end of the turn may be on disk without that of its prompts.
  const reason = turn?.reason ?? 'cancelled'
  const status = reason === 'cancelled' ? 'aborted' : reason
  const ids = stray.map(prompt => prompt.prompt_id)
  const first = turn?.prompt_id
  const prompt_ids = first !== undefined && ids.includes(first) ? [first, ...ids.filter(id => id !== first)] : ids
  if (open || prompt_ids.length > 0) records.push({ type: 'prompt.settled', prompt_ids, status, turn_id })
  return records
}
