/** What goes with turns that are taken back, beside messages and states: work that they began and that still goes on. */
import { extensionPoint } from '../../kernel/index.ts'
import type { AgentHost } from '../sessions/index.ts'

/** A pack whose work outlives the turn that began it. */
export interface UndoFollower {
  readonly name: string
  /**
   * Ends what the agent began behind the message before number `from` (0: whatever it ever began) and waits until it is over; the agent is not
   * told. Called when `context.undone` is on disk, while the agent is idle and takes nothing in. What it throws is logged; the undo stands.
   */
  undone(agent: AgentHost, from: number): Promise<void>
}
export const UndoFollowers = extensionPoint<UndoFollower>('undo-followers')
