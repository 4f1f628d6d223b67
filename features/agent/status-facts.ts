/** What packs say of an agent beside what the engine knows: whether it plans, works in a swarm, follows a goal. */
import { type Accounts, type Contribution, camelCase, extensionPoint } from '../../kernel/index.ts'
import type { AgentHost, Session } from '../sessions/index.ts'

/** `status`: the rollup of `GET status`. `event`: `agent.status.updated`. `snapshot`: the top level of the snapshot. */
export type StatusPlace = 'status' | 'event' | 'snapshot'

/** One field of an agent's status. The pack that owns it calls `Agent.announce()` when it changed. */
export interface StatusFact {
  /**
   * snake_case, as in `status` and `snapshot`; events tell it in camelCase. Of two facts of one name the first counts, fields of the engine
   * before all.
   */
  readonly field: string
  /** Default: `status` and `event`. */
  readonly places?: readonly StatusPlace[]
  /** Now; JSON. undefined: the field is left out, or has its built-in value. Called often, so it does no I/O. */
  value(agent: AgentHost): unknown
  /** The same for the main agent of a session that has none yet. */
  initial?(session: Session): unknown
}
export const StatusFacts = extensionPoint<StatusFact>('status-facts', undefined, { field: 'string', value: 'function' })

/** Built-in values of fields that the contract demands; packs give others. */
const defaults: Readonly<Record<StatusPlace, Readonly<Record<string, unknown>>>> = {
  status: { plan_mode: false, swarm_mode: false },
  event: {},
  snapshot: { subagents: [] }
}

/**
 * The facts for one place, of an agent, or of a session that has none yet. A fact that fails is left out, and reported unless its agent was
 * closed.
 */
export function factsOf(
  facts: readonly Contribution<StatusFact>[],
  of: AgentHost | Session,
  place: StatusPlace,
  accounts: Accounts
): Record<string, unknown> {
  const found: Record<string, unknown> = {}
  const tell = 'session' in of ? (fact: StatusFact) => fact.value(of) : (fact: StatusFact) => fact.initial?.(of)
  for (const { pack, item } of facts) {
    const { field, places = ['status', 'event'] } = item
    const name = place === 'event' ? camelCase(field) : field
    if (!places.includes(place) || name in found) continue
    const what = `status fact ${field}`
    try {
      const value = accounts.onAccountOf(pack, what, () => tell(item))
      if (value !== undefined) found[name] = value
    } catch (error) {
      if (!of.scope.closed) accounts.blame(pack, what, error)
    }
  }
  return { ...defaults[place], ...found }
}
