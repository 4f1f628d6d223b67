/** What other packs get from compaction. */
import { extensionPoint, serviceToken } from '../../kernel/index.ts'
import type { AgentHost } from '../sessions/index.ts'

/** What a pack adds to a summary, because the model must not lose it: a list of what is left to do, a state that only messages told. */
export interface CompactionNote {
  /** Names it in the log. */
  readonly name: string
  /** Markdown; undefined: nothing now. What fails is logged and left out. */
  note(agent: AgentHost): string | undefined | Promise<string | undefined>
}
export const CompactionNotes = extensionPoint<CompactionNote>('compaction-notes', { note: 'promise' }, { name: 'string', note: 'function' })

/**
 * Makes the context of agents smaller. Packs that want to hear of it listen to `compaction.started` (before the model is asked) and
 * `compaction.completed`.
 */
export interface Compaction {
  /**
   * Starts on an idle agent and resolves when that is on record; events tell the rest. `instruction`: what the summary should mind. Throws
   * CompactionUnable (40910) while the agent is at work and when there is nothing to compact.
   */
  start(agent: AgentHost, options?: { readonly instruction?: string }): Promise<void>
}
export const Compaction = serviceToken<Compaction>('compaction')
