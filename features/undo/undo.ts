/** Takes the newest turns of an agent back. */
import { AppError, type Static } from '../../kernel/index.ts'
import { type Agent, inputText } from '../agent/index.ts'
import { contextUndone, type History, type Undoable } from '../history/index.ts'
import { type UndoRefusal, UndoUnavailable } from './contract.ts'

const reasons: Readonly<Record<Undoable['end'], Static<typeof UndoRefusal>['reason']>> = {
  beginning: 'insufficient',
  compaction: 'compaction_boundary',
  lost: 'checkpoint_lost'
}

/** Why so many turns cannot be taken back. */
export function refusal(requestedCount: number, { turns, end }: Undoable): AppError {
  const reason = turns.length === 0 && end === 'beginning' ? 'empty' : reasons[end]
  const data: Static<typeof UndoRefusal> = { reason, requestedCount, undoableCount: turns.length }
  return new AppError(UndoUnavailable, { data })
}

/**
 * Resolves when it is on record, and what the turns began and goes on is over (`ended`). Throws SessionBusy (40901) while the agent is at
 * work, UndoUnavailable (40911).
 */
export function undo(agent: Agent, history: History, count: number, ended: (from: number) => Promise<void>): Promise<void> {
  const work = async () => {
    const undoable = history.undoable()
    const first = undoable.turns.at(-count)
    if (!first) throw refusal(count, undoable)
    const { from, tokens: context_tokens, prompt_id } = first
    const prompt = prompt_id === undefined ? undefined : await history.messages.find(prompt_id)
    const left = prompt && { last_prompt: inputText(prompt.content, prompt.origin) }
    await history.append(contextUndone.of({ from, context_tokens, turns: count, ...left }))
    agent.announce()
    await ended(from)
  }
  return agent.exclusive(work, { brief: true })
}
