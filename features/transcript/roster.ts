/** The agents of a session, the main one first. */
import type { SessionState } from '../sessions/index.ts'
import type { RosterEntry } from './shapes.ts'

export function rosterOf({ agents, archived_at }: Pick<SessionState, 'agents' | 'archived_at'>): RosterEntry[] {
  const others = Object.keys(agents)
    .filter(id => id !== 'main')
    .sort((a, b) => numberOf(a) - numberOf(b) || (a < b ? -1 : 1))
  return ['main', ...others].map(agentId => {
    const record = agents[agentId]
    const label = record?.labels?.profile ?? record?.labels?.side
    return {
      agentId,
      type: record?.type ?? 'main',
      ...(record?.parent_agent_id === undefined ? {} : { parentAgentId: record.parent_agent_id }),
      ...(label === undefined ? {} : { label }),
      ...(archived_at === undefined ? {} : { disposedAt: archived_at })
    }
  })
}

const numberOf = (id: string): number => Number(/\d+$/.exec(id)?.[0] ?? 0)
