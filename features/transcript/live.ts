/** Transcripts of loaded sessions: a stream for each agent, an audience for each session, what events add to both. */
import { type Connection, defineSlot, SessionMoved } from '../../kernel/index.ts'
import type { AgentHost, Session } from '../sessions/index.ts'
import { Audience, type AudiencePorts } from './audience.ts'
import type { Grade } from './contract.ts'
import { AgentStream, type StreamPorts } from './stream.ts'

interface LivePorts extends AudiencePorts, Omit<StreamPorts, 'dispatch' | 'renew' | 'failed' | 'agents'> {
  readonly agents: () => StreamPorts['agents']
  readonly log: (agent: AgentHost, error: unknown) => void
  /** False: it was closed. */
  readonly isLoaded: (session: Session) => boolean
}

export function liveTranscripts(ports: LivePorts) {
  const audiences = defineSlot<Audience, Session>('transcript-audience', session => new Audience(session, ports))
  const streams = defineSlot<AgentStream, AgentHost>(
    'transcript',
    agent =>
      new AgentStream(agent, {
        ...ports,
        agents: ports.agents(),
        dispatch: batch => agent.session.peek(audiences)?.dispatch(agent, batch),
        renew: () => renew(agent, true),
        failed(error) {
          if (agent.scope.closed) return
          ports.log(agent, error)
          void agent.drop(streams) // the next look tries again
        }
      })
  )

  /** The stream of an agent, ready. One that lost the journal is opened anew, for everybody. */
  async function streamOf(agent: AgentHost): Promise<AgentStream> {
    if (agent.peek(streams)?.stale) {
      await agent.drop(streams)
      await agent.get(streams).ready
      renew(agent, true)
    }
    return await agent.get(streams).ready
  }

  function renew(agent: AgentHost, anew: boolean): void {
    const stream = agent.peek(streams)
    if (stream) agent.session.peek(audiences)?.beginAll(agent, stream, anew)
  }

  return {
    slots: [audiences, streams],
    streamOf,
    /** Of an agent whose transcript somebody looks at, or looked at. */
    peek: (agent: AgentHost | undefined) => agent?.peek(streams),

    async follow(session: Session, connection: Connection, grades: ReadonlyMap<string, Grade>, since: ReadonlyMap<string, number>) {
      const audience = session.get(audiences)
      audience.set(connection, grades)
      const found = await connection.subscribe(session.id)
      // It was closed here meanwhile, or another server has it by now, and with it the audience.
      const moved = found && (!ports.isLoaded(session) || !connection.subscribed(session.id))
      if (moved || !found) audience.drop(connection)
      if (moved) throw new SessionMoved()
      if (!found) return false
      for (const agent of session.agents()) {
        if (audience.wants(agent.id)) audience.begin(connection, agent, await streamOf(agent), since.get(agent.id) ?? since.get('*'))
      }
      return true
    },
    leave(session: Session | undefined, connection: Connection, agents?: readonly string[]): void {
      session?.peek(audiences)?.drop(connection, agents)
    },
    /** The events of a connection were replayed from a cursor. */
    replayed(session: Session | undefined, connection: Connection): void {
      session?.peek(audiences)?.again(connection, agent => agent.peek(streams))
    },
    /** A new agent: everything that it does is in its operations. */
    created(agent: AgentHost): void {
      agent.get(streams).ready.then(
        () => renew(agent, false),
        () => undefined // it is logged
      )
    },
    /** Something happened to an agent. */
    heard(agent: AgentHost): void {
      if (agent.peek(streams)?.stale) streamOf(agent).catch(error => ports.log(agent, error))
    }
  }
}
