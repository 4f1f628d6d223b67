/** What emits the events of an agent. */
import type { EventTarget, PackContext } from '../../kernel/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import { type AgentEmit, type AgentEventName, agentEvents } from './contract.ts'

/** Every event of the table has this shape; the name decides which payload fits, and AgentEmit checks that at the call. */
type AnyEmit = (payload: unknown, target: EventTarget) => void

/** Registers the events. */
export function agentEmits(ctx: Pick<PackContext, 'event' | 'now'>): (agent: AgentHost) => AgentEmit {
  const emitters = new Map<AgentEventName, AnyEmit>()
  for (const [name, spec] of Object.entries(agentEvents)) emitters.set(name as AgentEventName, ctx.event(spec) as AnyEmit)
  return agent =>
    (name, payload, { offset, only, at = ctx.now() } = {}) => {
      const more = { ...(offset === undefined || agent.id !== 'main' ? {} : { offset }), ...(only ? { only } : {}) }
      emitters.get(name)?.(payload, { session_id: agent.session.id, subject: agent.id, time: at, ...more })
    }
}
