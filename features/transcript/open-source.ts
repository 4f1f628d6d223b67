/** Where the transcript of an agent is read from: the stream of a loaded session, else the journal on disk. */
import { join } from 'node:path'
import type { Histories } from '../history/index.ts'
import type { AgentHost, SessionState, Sessions } from '../sessions/index.ts'
import { indexState, TranscriptIndex } from './index-state.ts'
import { type Source, sourceOf } from './source.ts'
import type { AgentStream } from './stream.ts'

export interface SourcePorts {
  readonly sessions: Sessions
  readonly histories: Histories
  readonly streamOf: (agent: AgentHost) => Promise<AgentStream>
}

/** Loads no session, and makes no agent: one that is not there has an empty transcript. */
export function sourceOpener({ sessions, histories, streamOf }: SourcePorts): (state: SessionState, agent_id: string) => Promise<Source> {
  return async (state, agent_id) => {
    const host = sessions.loaded(state.id)?.agent(agent_id)
    if (host) return (await streamOf(host)).source()
    if (!state.agents[agent_id]) return sourceOf(new TranscriptIndex(), { end: 0, records: nothing })
    const stored = await histories.stored(join(sessions.dir(state), 'agents', agent_id), indexState)
    return sourceOf(stored.state, { end: stored.end, records: range => stored.records(range) })
  }
}

async function* nothing(): AsyncGenerator<never> {}
