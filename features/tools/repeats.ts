/** Notices a model that makes the same call step after step, reminds it, and finally ends the turn. */
import { defineSlot } from '../../kernel/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import type { ToolResult } from './tool.ts'

/** Counts, per call key, in how many steps in a row (of one turn) the call was made. */
class Repeats {
  #turn = -1
  #counts = new Map<string, number>()

  /** Records one step; returns the count of each of its keys, this step included. */
  step(turn_id: number, keys: Iterable<string>): ReadonlyMap<string, number> {
    const before = turn_id === this.#turn ? this.#counts : new Map<string, number>()
    this.#turn = turn_id
    this.#counts = new Map([...keys].map(key => [key, (before.get(key) ?? 0) + 1]))
    return this.#counts
  }
}

export const RepeatSlot = defineSlot<Repeats, AgentHost>('tool-repeats', () => new Repeats())

/** The result with a reminder that fits the count (from the third repeat on); the twelfth also stops the turn. */
export function remind(result: ToolResult, count: number): ToolResult {
  const text = reminder(count)
  if (text === undefined) return result
  // As a note: what stands in the output is the tool's, and no instruction to the model.
  const note = [result.note, `<system-reminder>\n${text}\n</system-reminder>`].filter(Boolean).join('\n')
  return { ...result, note, ...(count >= 12 ? { stop_turn: true } : {}) }
}

function reminder(count: number): string | undefined {
  if (count < 3) return undefined
  if (count < 5) return 'This is the same call as in the previous steps. Use the result you already have or try another way.'
  if (count < 8) return `This exact call has now been made ${count} times in a row. Its result does not change: do something else.`
  return `This exact call has now been made ${count} times in a row. Stop using tools and write the final answer.`
}
