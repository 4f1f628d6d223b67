/** Where the transcript of an agent is read from: the stream of a loaded session, else the journal on disk. */
import { join } from 'node:path'
import type { Histories, StoredHistory } from '../history/index.ts'
import type { AgentHost, SessionState, Sessions } from '../sessions/index.ts'
import { indexState, TranscriptIndex } from './index-state.ts'
import { type Source, sourceOf } from './source.ts'
import type { AgentStream } from './stream.ts'

interface SourcePorts {
  readonly sessions: Sessions
  readonly histories: Histories
  readonly streamOf: (agent: AgentHost) => Promise<AgentStream>
  /** Resolves when what an earlier process left open in the agent is closed. */
  readonly opened: (agent: AgentHost) => Promise<unknown>
}

type Stored = StoredHistory<TranscriptIndex>

/** Indexes of journals on disk that were looked at lately. */
const kept = 16

/** Loads no session but one that a server left open, and makes no agent: one that is not there has an empty transcript. */
export function sourceOpener({
  sessions,
  histories,
  streamOf,
  opened
}: SourcePorts): (state: SessionState, agent_id: string) => Promise<Source> {
  const read = new Map<string, Promise<Stored>>()
  /** The index of a journal on disk. One look after the other: what is known is brought up to date. */
  const stored = (dir: string): Promise<Stored> => {
    const before = read.get(dir)?.catch(() => undefined) ?? Promise.resolve(undefined)
    const reading = before.then(known => histories.stored(dir, indexState, known))
    read.delete(dir)
    read.set(dir, reading)
    reading.catch(() => read.delete(dir))
    for (const oldest of read.keys()) {
      if (read.size <= kept) break
      read.delete(oldest)
    }
    return reading
  }
  return async (state, agent_id) => {
    const host = sessions.loaded(state.id)?.agent(agent_id)
    if (host) return (await streamOf(host)).source()
    // The state need not name the main agent yet: its directory says that it is there.
    if (agent_id !== 'main' && !state.agents[agent_id]) return sourceOf(new TranscriptIndex(), { end: 0, records: nothing })
    const { state: index, end, records } = await stored(join(sessions.dir(state), 'agents', agent_id))
    if (index.isOpen) {
      // A server died in it: what it left open is closed when the session is loaded, and then shown.
      const left = (await sessions.load(state.id)).agent(agent_id)
      if (left) await opened(left)
      if (left) return (await streamOf(left)).source()
    }
    return sourceOf(index, { end, records })
  }
}

async function* nothing(): AsyncGenerator<never> {}
