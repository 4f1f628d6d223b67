/** The profiles that agents can have: those of packs and of the session's files beside the built-in ones. */
import type { PackContext } from '../../kernel/index.ts'
import type { Session } from '../sessions/index.ts'
import { type AgentProfile, AgentProfileSources, AgentProfiles } from './extension-points.ts'
import { builtinProfiles } from './prompt/profile.ts'
import type { Agents } from './service.ts'

/** Of profiles with one name the first counts: one that says `override`, then the built-in one. */
export function profilesOf(ctx: Pick<PackContext, 'collect' | 'onAccountOf' | 'blame'>): Agents['profiles'] {
  const contributed = ctx.collect(AgentProfiles)
  const sources = ctx.collect(AgentProfileSources)
  const ofSession = (session: Session) =>
    sources.entries().flatMap(({ pack, item }) => {
      const what = `source of agent profiles ${item.name}`
      try {
        return ctx.onAccountOf(pack, what, () => item.profiles(session))
      } catch (err) {
        ctx.blame(pack, what, err)
        return []
      }
    })
  return session => {
    const others = [...contributed.items(), ...(session ? ofSession(session) : [])]
    const first = new Map<string, AgentProfile>()
    for (const profile of [...others.filter(({ override }) => override), ...builtinProfiles, ...others]) {
      if (!first.has(profile.name)) first.set(profile.name, profile)
    }
    return [...first.values()]
  }
}
