/** Compaction inside turns: before a context is too large for the next step, and when the provider said that it is. */
import { type Agent, errorInfo, TurnFailure, type TurnInfo } from '../agent/index.ts'
import { estimateText, type History, type Tracked } from '../history/index.ts'
import type { LlmError, ResolvedModel } from '../llm/index.ts'
import { type CompactorPorts, compact } from './compactor.ts'
import { isFull, type Limits, observedWindow, windowOf, worthwhile } from './measure.ts'
import type { CompactionState } from './records.ts'

/** Refusals in a row of one step that are answered by a compaction. */
const maxOverflows = 3

/** One agent's context, and what is known of it, as long as it is loaded. */
export class ContextMemory {
  readonly agent: Agent
  readonly history: History
  readonly state: Tracked<CompactionState>
  /** What the provider was seen to take, by model alias. */
  readonly #observed = new Map<string, number>()
  #overflows = { turn_id: -1, step: -1, count: 0 }
  /** Size right after the last compaction, with what the provider counts beside messages. */
  floor: number | undefined

  constructor(agent: Agent, history: History, state: Tracked<CompactionState>) {
    this.agent = agent
    this.history = history
    this.state = state
  }

  /** Undefined: there is none, and the request that follows fails for the same reason. */
  model(): ResolvedModel | undefined {
    try {
      return this.agent.model()
    } catch {
      return undefined
    }
  }

  window(model: ResolvedModel): number {
    return Math.min(windowOf(model), this.#observed.get(model.alias) ?? Number.POSITIVE_INFINITY)
  }

  /** The provider refused so many tokens. Answers how often in a row. */
  overflowed({ turn_id, step }: TurnInfo, model: ResolvedModel, tokens: number): number {
    const last = this.#overflows
    const count = last.turn_id === turn_id && last.step === step ? last.count + 1 : 1
    this.#overflows = { turn_id, step, count }
    if (tokens > 0) this.#observed.set(model.alias, Math.min(this.window(model), observedWindow(tokens)))
    return count
  }
}

export interface AutoPorts extends CompactorPorts {
  readonly limits: () => Limits
}

/**
 * Tap of `stepBegin`: the step waits while a context that is too large is made smaller; mostly it is not, which is said at once. Throws a
 * TurnFailure when that fails.
 */
export function beforeStep(ports: AutoPorts, memory: ContextMemory, info: TurnInfo): Promise<undefined> | undefined {
  const model = memory.model()
  if (!model) return undefined
  const used = memory.history.contextSize().total
  const window = memory.window(model)
  if (!isFull(used, window, ports.limits()) || used < worthwhile(memory.floor ?? memory.state.value.after, window)) return undefined
  return makeSmaller(ports, memory, info)
}

async function makeSmaller(ports: AutoPorts, memory: ContextMemory, info: TurnInfo): Promise<undefined> {
  // What the user wrote stays anyway: without an answer there is nothing to summarise.
  if (!(await memory.history.contextMessages()).some(({ role }) => role === 'assistant')) return
  await run(ports, memory, info)
}

/** Tap of `modelError`: a context that the provider refused is made smaller, and the step is sent again. */
export async function onModelError(ports: AutoPorts, memory: ContextMemory, error: LlmError, info: TurnInfo): Promise<'retry' | undefined> {
  const model = memory.model()
  if (!model) return undefined
  const { total } = memory.history.contextSize()
  // A body that is too large may also be one of pictures.
  if (error.code !== 'context.overflow' && total < 0.5 * memory.window(model)) return undefined
  if (memory.overflowed(info, model, total) > maxOverflows) throw new TurnFailure({ ...errorInfo(error), code: 'context.overflow' })
  return (await run(ports, memory, info)) === 'done' ? 'retry' : undefined
}

/** Refusals that a smaller context may answer. */
export const isTooLarge = ({ code, status }: LlmError): boolean => code === 'context.overflow' || status === 413

async function run(ports: AutoPorts, memory: ContextMemory, info: TurnInfo): Promise<'done' | 'aborted'> {
  const { agent, history } = memory
  const outcome = await compact(ports, { agent, history, turn_id: info.turn_id }, info.signal)
  if (typeof outcome === 'object') throw new TurnFailure(outcome)
  if (outcome === 'aborted') return outcome
  // The provider counts the system prompt and the tools, too.
  const { system, tools } = await agent.draft()
  memory.floor = history.contextSize().total + estimateText(system) + estimateText(JSON.stringify(tools))
  return outcome
}
