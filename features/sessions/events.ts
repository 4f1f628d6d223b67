/** What clients are told of sessions (contract 3, Session events). */
import type { PackContext, Streams } from '../../kernel/index.ts'
import { agentCreated, agentDisposed, sessionArchived, sessionCreated, sessionMetaUpdated, statusChanged, workChanged } from './contract.ts'
import type { LiveSessionPorts } from './live.ts'
import type { Session } from './service.ts'
import { sessionObject } from './view.ts'

type Told = Pick<LiveSessionPorts, 'workChanged' | 'statusChanged' | 'metaUpdated' | 'agentCreated'>

export function sessionEvents(ctx: Pick<PackContext, 'event' | 'streams'>) {
  const emitCreated = ctx.event(sessionCreated)
  const emitArchived = ctx.event(sessionArchived)
  const emitMeta = ctx.event(sessionMetaUpdated)
  const emitWork = ctx.event(workChanged)
  const emitStatus = ctx.event(statusChanged)
  const emitAgentCreated = ctx.event(agentCreated)
  const emitAgentDisposed = ctx.event(agentDisposed)
  const live: Told = {
    workChanged({ id }, { last_turn_reason, ...work }) {
      emitWork({ ...work, ...(last_turn_reason === undefined ? {} : { last_turn_reason }) }, id)
    },
    statusChanged({ id }, { prompt_id, ...change }) {
      emitStatus({ ...change, ...(prompt_id === undefined ? {} : { current_prompt_id: prompt_id }) }, id)
    },
    metaUpdated: (id, payload) => emitMeta(payload, id),
    agentCreated: (session_id, agent_id) => emitAgentCreated({}, { session_id, subject: agent_id })
  }
  return {
    /** Of loaded sessions. */
    live,
    /** A session was made; answers what it is then. */
    created(session: Session) {
      const object = sessionObject(session.state, session.work)
      emitCreated({ session: object }, session.id)
      return object
    },
    /** The loaded session of these agents was archived; resolves when that was told. */
    async disposed(session: Session) {
      for (const { id: subject } of session.agents()) emitAgentDisposed({}, { session_id: session.id, subject })
      await ctx.streams.flushed(session.id)
    },
    /** It was archived, or deleted. */
    archived: (workspace_id: string, sessionId: string) => emitArchived({ workspace_id, sessionId })
  }
}

/** Whether clients of a session heard of its main agent. */
export async function mainHeard(streams: Pick<Streams, 'backwards'>, id: string): Promise<boolean> {
  for await (const { type, payload } of streams.backwards(id)) if (type === agentCreated.type && payload.agentId === 'main') return true
  return false
}
