/** What other packs can add to prompts: media that was uploaded before, and skills. */
import { errorSpec, serviceToken } from '../../kernel/index.ts'
import type { PromptInput } from '../agent/index.ts'
import type { WirePart } from '../history/index.ts'
import type { AgentHost, Session } from '../sessions/index.ts'

export const SkillMissing = errorSpec('skill_missing', 40415, 'skill not found')
export const SkillNotForUsers = errorSpec('skill_not_for_users', 40912, 'the skill cannot be activated by the user')

/** Uploads that prompts refer to by `file_id`, and images that models take in another form only. Without it, uploads answer 40407. */
export interface PromptMedia {
  /**
   * Looks at everything that could keep the content from being taken, before anything else is looked at. Throws FileMissing for an upload that is
   * missing or of the wrong kind, 40001 for an image that is too large and cannot be made smaller. `field`: where the
   * request has the content.
   */
  check(content: readonly WirePart[], field: string): Promise<void>
  /** Makes what the content refers to media of the agent (on disk when it resolves); returns the content to record. Throws FileMissing. */
  commit(agent: AgentHost, content: readonly WirePart[]): Promise<readonly WirePart[]>
}
export const PromptMedia = serviceToken<PromptMedia>('prompt-media')

/** Skills that ride along with a prompt. Without it `skills` answers 40415. */
export interface PromptSkills {
  /** Throws SkillMissing, SkillNotForUsers. */
  check(session: Session, skills: readonly { readonly name: string; readonly args?: string }[]): Promise<void>
  /** The prompt with its skills bundled. */
  bundle(agent: AgentHost, input: PromptInput, skills: readonly { readonly name: string; readonly args?: string }[]): Promise<PromptInput>
}
export const PromptSkills = serviceToken<PromptSkills>('prompt-skills')
