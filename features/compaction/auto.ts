/** Compaction inside turns: before a context is too large for the next step, and when the provider said that it is. */
import { type Agent, type Agents, errorInfo, TurnFailure, type TurnInfo } from '../agent/index.ts'
import { estimateText, type Histories, type History, type Tracked } from '../history/index.ts'
import type { LlmError, ResolvedModel } from '../llm/index.ts'
import { type CompactorPorts, compact } from './compactor.ts'
import { isFull, type Limits, observedWindow, windowOf, worthwhile } from './measure.ts'
import { type CompactionState, compactionState } from './records.ts'

/** Refusals in a row of one step that are answered by a compaction. */
const maxOverflows = 3

/** What is known of one agent's context, as long as it is loaded. */
export class ContextMemory {
  /** What the provider was seen to take, by model alias. */
  readonly #observed = new Map<string, number>()
  #overflows = { turn_id: -1, step: -1, count: 0 }
  /** Size right after the last compaction, with what the provider counts beside messages. */
  floor: number | undefined

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
  readonly agents: Agents
  readonly histories: Histories
  readonly limits: () => Limits
  readonly memory: (info: TurnInfo) => ContextMemory
}

interface Found {
  readonly agent: Agent
  readonly history: History
  readonly model: ResolvedModel
  readonly state: Tracked<CompactionState>
}

/** Undefined: no model, and the turn says so itself. */
async function find({ agents, histories }: AutoPorts, { agent: host }: TurnInfo): Promise<Found | undefined> {
  const agent = await agents.of(host)
  const history = await histories.of(host)
  const state = await history.track(compactionState)
  try {
    return { agent, history, state, model: agent.model() }
  } catch {
    return undefined // the request that follows fails for the same reason
  }
}

/** Tap of `stepBegin`: the step waits while a context that is too large is made smaller. Throws a TurnFailure when that fails. */
export async function beforeStep(ports: AutoPorts, info: TurnInfo): Promise<undefined> {
  const found = await find(ports, info)
  if (!found) return
  const { history, model, state } = found
  const memory = ports.memory(info)
  const used = history.contextSize().total
  const window = memory.window(model)
  if (!isFull(used, window, ports.limits()) || used < worthwhile(memory.floor ?? state.value.after, window)) return
  // What the user wrote stays anyway: without an answer there is nothing to summarise.
  if (!(await history.contextMessages()).some(({ role }) => role === 'assistant')) return
  await run(ports, found, info)
}

/** Tap of `modelError`: a context that the provider refused is made smaller, and the step is sent again. */
export async function onModelError(ports: AutoPorts, error: LlmError, info: TurnInfo): Promise<'retry' | undefined> {
  if (error.code !== 'context.overflow' && error.status !== 413) return undefined
  const found = await find(ports, info)
  if (!found) return undefined
  const memory = ports.memory(info)
  const { model, history } = found
  const { total } = history.contextSize()
  // A body that is too large may also be one of pictures.
  if (error.code !== 'context.overflow' && total < 0.5 * memory.window(model)) return undefined
  if (memory.overflowed(info, model, total) > maxOverflows) throw new TurnFailure({ ...errorInfo(error), code: 'context.overflow' })
  return (await run(ports, found, info)) === 'done' ? 'retry' : undefined
}

async function run(ports: AutoPorts, { agent, history }: Found, info: TurnInfo): Promise<'done' | 'aborted'> {
  const outcome = await compact(ports, { agent, history, turn_id: info.turn_id }, info.signal)
  if (typeof outcome === 'object') throw new TurnFailure(outcome)
  if (outcome === 'aborted') return outcome
  // The provider counts the system prompt and the tools, too.
  const { system, tools } = await agent.draft()
  ports.memory(info).floor = history.contextSize().total + estimateText(system) + estimateText(JSON.stringify(tools))
  return outcome
}
