/** Profiles of agents that the files of a project and of the user offer: read when a session is opened, and again after each prompt. */
import { defineSlot, type PackContext, Type } from '../../kernel/index.ts'
import { type AgentProfile, AgentProfileSources, promptCompleted } from '../agent/index.ts'
import { type Config, ConfigSections } from '../config/index.ts'
import type { Session, Sessions } from '../sessions/index.ts'
import { profileDirs, readProfiles } from './profile-files.ts'

/** Directories with agent profiles, beside those of the project and of the user. */
const extraAgentDirsSection = { name: 'extra_agent_dirs', schema: Type.Array(Type.String()), default: [] as string[] }

/** Answers what reads those of a session that was just loaded. */
export function offerProfiles(ctx: PackContext, sessions: Sessions, config: () => Config | undefined): (session: Session) => Promise<void> {
  ctx.contribute(ConfigSections, extraAgentDirsSection)
  /** Sessions of one directory that are opened together read once. */
  const reading = new Map<string, Promise<readonly AgentProfile[]>>()
  const profilesOf = (cwd: string) => {
    const read = async () => readProfiles(await profileDirs(cwd, ctx.home, config()?.get(extraAgentDirsSection) ?? []), ctx.log)
    const found = reading.get(cwd) ?? read().finally(() => reading.delete(cwd))
    reading.set(cwd, found)
    return found
  }
  const slot = defineSlot('agent-profile-files', (session: Session) => {
    const files = { list: [] as readonly AgentProfile[], read: async () => {} }
    files.read = async () => {
      files.list = await profilesOf(session.cwd)
    }
    return files
  })
  ctx.slot(slot)
  ctx.contribute(AgentProfileSources, { name: 'files', profiles: session => session.peek(slot)?.list ?? [] })
  // Files that came since count from the next prompt on.
  ctx.on(promptCompleted, ({ session_id }) => {
    const files = sessions.loaded(session_id ?? '')?.peek(slot)
    if (files) ctx.background(files.read)
  })
  return session => session.get(slot).read()
}
