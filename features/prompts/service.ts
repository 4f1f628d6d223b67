/** What other packs can add to prompts: media that was uploaded before, and skills. */
import { errorSpec, serviceToken } from '../../kernel/index.ts'
import type { PromptInput } from '../agent/index.ts'
import type { WirePart } from '../history/index.ts'
import type { AgentHost, Session } from '../sessions/index.ts'

export const SkillMissing = errorSpec('skill_missing', 40415, 'skill not found')
export const SkillNotForUsers = errorSpec('skill_not_for_users', 40912, 'the skill cannot be activated by the user')

/** Uploads and committed media that prompts refer to by `file_id`. Without it such references answer 40407. */
export interface PromptMedia {
  /** Checks uploads before anything else is looked at. Throws FileMissing for a missing one or one of the wrong kind. */
  checkUploads(content: readonly WirePart[]): Promise<void>
  /** Checks `session_media` references of a session. Throws FileMissing. */
  checkCommitted(session: Session, content: readonly WirePart[]): Promise<void>
  /** Moves uploads into the session; returns the content to record. */
  commit(session: Session, content: readonly WirePart[]): Promise<readonly WirePart[]>
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
