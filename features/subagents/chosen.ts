/** What the tools that start agents have in common: whom a call means, with which profile and for how long. */
import { firstAbort, longestMs } from '../../kernel/index.ts'
import type { AgentProfile } from '../agent/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import { overtimeText, TaskStopped } from '../tasks/index.ts'
import { ToolRefusal } from '../tools/index.ts'

/** An agent that is to be made, or one that goes on with the profile that it has. */
export interface Chosen {
  readonly profile: AgentProfile
  readonly resume?: AgentHost
}

export function named(profiles: readonly AgentProfile[], name = 'coder'): Chosen {
  const profile = profiles.find(candidate => candidate.name === name)
  if (profile) return { profile }
  throw new ToolRefusal(`There is no profile ${name} to start; known are ${profiles.map(known => known.name).join(', ')}.`)
}

/** One that the caller started before; a side conversation of the user is none. */
export function resumed(profiles: readonly AgentProfile[], id: string, caller: AgentHost): Chosen {
  const agent = caller.session.agent(id)
  const name = agent?.record.labels?.profile
  if (agent?.record.type !== 'sub' || agent.record.parent_agent_id !== caller.id || !name)
    throw new ToolRefusal(`You have started no agent ${id}.`)
  return { ...named(profiles, name), resume: agent }
}

/** Aborts with `signal`, and when the time is over (ms; 0: never). `release` when the work has ended. */
export function limited(signal: AbortSignal, ms: number): { signal: AbortSignal; release(): void } {
  if (ms <= 0) return { signal, release() {} }
  const time = new AbortController()
  const timer = setTimeout(() => time.abort(new TaskStopped('timeout', overtimeText(ms), 0)), Math.min(ms, longestMs))
  timer.unref()
  const first = firstAbort(signal, time.signal)
  return {
    signal: first.signal,
    release() {
      clearTimeout(timer)
      first.end()
    }
  }
}
