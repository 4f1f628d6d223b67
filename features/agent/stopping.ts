/** What a stop of the server cuts, in words. */
import type { AgentHost } from '../sessions/index.ts'

/** An agent as the stop finds it. */
export interface AtStop {
  readonly host: AgentHost
  /** A turn runs. */
  readonly works: boolean
  /** Prompts that wait; they begin with the next start. */
  readonly waiting: number
}

const shown = 5

/** Undefined: nothing is cut, nothing waits. */
export function cutLine(agents: readonly AtStop[]): string | undefined {
  const cut = agents
    .filter(agent => agent.works)
    .map(({ host }) => (host.id === 'main' ? host.session.id : `${host.session.id} (${host.id})`))
  const waiting = agents.reduce((sum, agent) => sum + agent.waiting, 0)
  const more = cut.length > shown ? ` and ${cut.length - shown} more` : ''
  const parts = [
    ...(cut.length > 0 ? [`cutting ${count(cut.length, 'running turn')}: ${cut.slice(0, shown).join(', ')}${more}`] : []),
    ...(waiting > 0 ? [`${count(waiting, 'prompt')} that ${waiting === 1 ? 'waits begins' : 'wait begin'} with the next start`] : [])
  ]
  return parts.length > 0 ? parts.join('; ') : undefined
}

const count = (n: number, what: string): string => `${n} ${what}${n === 1 ? '' : 's'}`
