/** What an agent's engine needs from outside. */
import type { Accounts, Collection, Logger, Operator } from '../../kernel/index.ts'
import type { History } from '../history/index.ts'
import type { Llm } from '../llm/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import type { ToolRunner } from '../tools/index.ts'
import type { AgentEmit } from './contract.ts'
import type { AgentRecordEvent } from './events.ts'
import type { AgentRepair, StepInjector } from './extension-points.ts'
import type { TurnHookCalls } from './hook-calls.ts'
import type { PromptPorts } from './prompt/profile.ts'
import type { Agents } from './service.ts'

export interface AgentDeps {
  readonly llm: Llm
  readonly hooks: TurnHookCalls
  readonly log: Logger
  /** Puts time and faults down to the packs that take part. */
  readonly accounts: Accounts
  readonly operator: Operator
  readonly emit: (agent: AgentHost) => AgentEmit
  /** Engines that are at work announce themselves here: events of records, and who takes a prompt, find those of a session. */
  readonly engines: WeakMap<AgentHost, { tell(event: AgentRecordEvent): void; readonly prompt: History['prompt'] }>
  /** Whether the next turn of an agent that is being opened begins at once. */
  readonly goesOn: WeakMap<AgentHost, () => boolean>
  /** Withdraws the requests to the human that a dead process left open; answers the calls that waited for them. */
  readonly endRequests: (agent: AgentHost) => Promise<readonly string[]>
  /** What packs put on record where their work was left open. */
  readonly repairs: Collection<AgentRepair>
  readonly runner: () => ToolRunner | undefined
  readonly injectors: Collection<StepInjector>
  readonly facts: Agents['facts']
  readonly profiles: Agents['profiles']
  /** What system prompts are made of. */
  readonly prompt: PromptPorts
  /** Limits of the user's configuration; 0 steps: no limit. */
  readonly loop: () => { readonly max_steps: number; readonly max_attempts: number }
  /** How the size of a context is told (`token_counting.strategy`). */
  readonly tokenStrategy: () => 'measured+estimated' | 'measured' | 'estimated'
  /** What the offsets of text deltas count over. */
  readonly deltaOffset: 'turn' | 'step'
  /** How long a tap of `beforePrompt` may hold up a prompt, ms. */
  readonly beforePromptMs: number
  /** How long a tap of `turnEnd` may hold up the next turn, ms. */
  readonly turnEndMs: number
  /** First retry delay, ms. */
  readonly retryBaseMs: number
  readonly now: () => Date
  readonly newId: () => string
}
