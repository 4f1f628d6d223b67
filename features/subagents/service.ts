/** Agents that work for others: started, waited for, taken up again. */
import { extensionPoint, serviceToken } from '../../kernel/index.ts'
import type { AgentProfile } from '../agent/index.ts'
import type { Origin } from '../history/index.ts'
import type { TokenUsage } from '../llm/index.ts'
import type { AgentHost } from '../sessions/index.ts'

/** A model and an effort; without an effort the model's own. */
export interface ChildModel {
  readonly alias?: string
  readonly thinking?: string
}

export interface ChildSpec {
  readonly caller: AgentHost
  readonly profile: AgentProfile
  readonly description: string
  readonly tool_call_id: string
  readonly background: boolean
  readonly swarm_index?: number
  readonly model: ChildModel
  /** Taken up again: its profile and model stay. */
  readonly resume?: AgentHost
}

/** How an agent ended that worked for another one. */
export interface ChildEnd {
  readonly status: 'completed' | 'failed' | 'cancelled'
  /** Its answer; empty when it did not complete. */
  readonly text: string
  /** Why it did not complete. */
  readonly error?: string
  /** Engine error of its turn: `provider.rate_limit`. */
  readonly code?: string
  readonly usage?: TokenUsage
}

/** An agent that is about to work. */
export interface Child {
  readonly host: AgentHost
  readonly spec: ChildSpec
  readonly model: ChildModel
  /** It will not work. */
  abandon(): void
  /** Puts it on record that it was started, with the task that it runs as. */
  announce(task_id?: string): Promise<void>
  /** Lets it work until it answers; what becomes of it is on record then. `quiet`: what it fails with is not its end yet. */
  work(
    prompt: string,
    signal: AbortSignal,
    options?: { readonly origin?: Origin; readonly quiet?: (end: ChildEnd) => boolean }
  ): Promise<ChildEnd>
  /** Puts on record that it does not go on after such an end: the signal has ended it. */
  stop(signal: AbortSignal): Promise<void>
}

export interface Subagents {
  /** Profiles that an agent may start, by its own profile. */
  profilesFor(caller: AgentHost): readonly AgentProfile[]
  /** Makes the agent, or takes it up again. Throws SubagentRefused. */
  child(spec: ChildSpec): Promise<Child>
}
export const Subagents = serviceToken<Subagents>('subagents')

/** Hears of agents what is on record, and no event for clients: that they were stopped, and what they begin with. */
export interface StoppedSubagentListener {
  readonly name: string
  stopped(agent: AgentHost): void
  /** It is at work on this, for the first time or again. */
  begun?(agent: AgentHost, prompt: string): void
}
export const StoppedSubagents = extensionPoint<StoppedSubagentListener>(
  'stopped-subagents',
  { stopped: 'notify', begun: 'notify' },
  { name: 'string', stopped: 'function' },
  { stopped: () => undefined, begun: () => undefined }
)

/** The message is for the model. */
export class SubagentRefused extends Error {}
