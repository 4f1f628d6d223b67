/** Compaction inside turns: before a context is too large for the next step, and when the provider said that it is. */
import { AppError, underFirstAbort } from '../../kernel/index.ts'
import { type Agent, errorInfo, TurnFailure, type TurnInfo } from '../agent/index.ts'
import { estimateText, type History, type Tracked } from '../history/index.ts'
import { type LlmError, type ResolvedModel, windowOf } from '../llm/index.ts'
import { Beside } from './beside.ts'
import { type CompactorPorts, compact } from './compactor.ts'
import { isFull, isPressing, type Limits, observedWindow, worthwhile } from './measure.ts'
import { blocked, type CompactionState } from './records.ts'

/** Refusals in a row of one step that are answered by a compaction. */
const maxOverflows = 3

/** One agent's context, and what is known of it, as long as it is loaded. */
export class ContextMemory {
  readonly agent: Agent
  readonly history: History
  readonly state: Tracked<CompactionState>
  /** What the provider was seen to take, by model alias. */
  readonly #observed = new Map<string, number>()
  /** Models whose provider refused a context that had just been made smaller: what stays must fit what it was seen to take. */
  readonly #narrow = new Set<string>()
  #overflows = { turn_id: -1, step: -1, count: 0 }
  /** Size right after the last compaction, with what the provider counts beside messages. */
  floor: number | undefined
  /** What goes on beside steps. */
  beside: Beside | undefined
  readonly #closing = new AbortController()
  /** The turn in which the last one failed: its steps go on until the context is full. */
  #failedIn = -1

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

  /** What the model takes, as far as that was seen. */
  seen(model: ResolvedModel): number {
    return Math.min(windowOf(model), this.#observed.get(model.alias) ?? Number.POSITIVE_INFINITY)
  }

  /** By which it is decided how much of what the user wrote stays. */
  window(model: ResolvedModel): number {
    return this.#narrow.has(model.alias) ? this.seen(model) : windowOf(model)
  }

  /** Begins one beside the steps of this turn, unless there is one or it has failed. */
  async begin(ports: AutoPorts, { turn_id }: TurnInfo): Promise<undefined> {
    if (this.beside || this.#failedIn === turn_id) return
    // Without a request there is nothing to summarise: the step fails for the same reason, and says so.
    const beside = await Beside.start(ports, this).catch((err: unknown) => void ports.log.debug({ err }, 'no compaction could be begun'))
    if (!beside) return
    if (this.#closing.signal.aborted) return void (await beside.end()) // it was closed meanwhile: nobody would
    this.beside = beside
    void beside.summarised.then(async () => {
      if (this.beside !== beside) return
      if (beside.isReady) return await this.#whileIdle(ports)
      this.beside = undefined
      this.#failedIn = turn_id
    })
  }

  /** The summary that is ready takes its place. False: the context is as it was. */
  async putInPlace(ports: AutoPorts): Promise<boolean> {
    const { beside } = this
    this.beside = undefined
    if (!(await beside?.putInPlace())) return false
    await this.measureFloor().catch((err: unknown) => ports.log.debug({ err }, 'what is left of a context could not be measured'))
    return true
  }

  /** Where a turn runs, its next step or its end puts the summary in place. */
  async #whileIdle(ports: AutoPorts): Promise<void> {
    const work = async () => void (this.beside?.isReady && (await this.putInPlace(ports)))
    await this.agent.exclusive(work, { brief: true }).catch((error: unknown) => {
      if (!AppError.is(error)) ports.log.error({ err: error }, 'a summary could not be put in place')
    })
  }

  /** The provider counts the system prompt and the tools, too. */
  async measureFloor(): Promise<void> {
    const { system, tools } = await this.agent.draft()
    this.floor = this.history.contextSize().total + estimateText(system) + estimateText(JSON.stringify(tools))
  }

  /** What goes on beside steps ends, without a change. */
  async drop(): Promise<void> {
    const { beside } = this
    this.beside = undefined
    await beside?.end()
  }

  /** Under a signal that also aborts when this is closed: nobody waits for a compaction whose pack goes. */
  whileOpen<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return underFirstAbort([signal, this.#closing.signal], work)
  }

  close(): Promise<void> {
    this.#closing.abort()
    return this.drop()
  }

  /** The provider refused so many tokens. Answers how often in a row. */
  overflowed({ turn_id, step }: TurnInfo, model: ResolvedModel, tokens: number): number {
    const last = this.#overflows
    const count = last.turn_id === turn_id && last.step === step ? last.count + 1 : 1
    this.#overflows = { turn_id, step, count }
    if (tokens > 0) this.#observed.set(model.alias, Math.min(this.seen(model), observedWindow(tokens)))
    if (count > 1) this.#narrow.add(model.alias)
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
  if (memory.beside?.isReady) return memory.putInPlace(ports).then(() => beforeStep(ports, memory, info))
  const used = memory.history.contextSize().total
  const window = memory.seen(model)
  const limits = ports.limits()
  if (!isFull(used, window, limits) || used < worthwhile(memory.floor ?? memory.state.value.after, window)) return undefined
  return makeSmaller(ports, memory, info, isPressing(used, window, limits))
}

/** Tap of `turnEnd`: what came too late for the last step. */
export function afterTurn(ports: AutoPorts, memory: ContextMemory): Promise<void> | undefined {
  return memory.beside?.isReady ? memory.putInPlace(ports).then(() => undefined) : undefined
}

async function makeSmaller(ports: AutoPorts, memory: ContextMemory, info: TurnInfo, waits: boolean): Promise<undefined> {
  // What the user wrote stays anyway: without an answer there is nothing to summarise.
  if (!(await memory.history.contextMessages()).some(({ role }) => role === 'assistant')) return
  if (!waits) return await memory.begin(ports, info)
  if (!(await caughtUp(ports, memory, info)) && !info.signal.aborted) await run(ports, memory, info)
}

/** Waits for one that goes on beside the steps. True: the context is smaller. */
async function caughtUp(ports: AutoPorts, memory: ContextMemory, { turn_id, signal }: TurnInfo): Promise<boolean> {
  const { beside, history } = memory
  if (!beside) return false
  await history.append(blocked.of({ turn_id }))
  const stop = () => void memory.drop()
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  await beside.summarised
  signal.removeEventListener('abort', stop)
  return memory.beside === beside && beside.isReady && (await memory.putInPlace(ports))
}

/** Tap of `modelError`: a context that the provider refused is made smaller, and the step is sent again. */
export async function onModelError(ports: AutoPorts, memory: ContextMemory, error: LlmError, info: TurnInfo): Promise<'retry' | undefined> {
  const model = memory.model()
  if (!model) return undefined
  const { total } = memory.history.contextSize()
  // A body that is too large may also be one of pictures.
  if (error.code !== 'context.overflow' && total < 0.5 * memory.seen(model)) return undefined
  if (memory.overflowed(info, model, total) > maxOverflows) throw new TurnFailure({ ...errorInfo(error), code: 'context.overflow' })
  return (await run(ports, memory, info)) === 'done' ? 'retry' : undefined
}

/** Refusals that a smaller context may answer. */
export const isTooLarge = ({ code, status }: LlmError): boolean => code === 'context.overflow' || status === 413

async function run(ports: AutoPorts, memory: ContextMemory, info: TurnInfo): Promise<'done' | 'aborted'> {
  const { agent, history } = memory
  await memory.drop()
  const input = { agent, history, window: memory.window.bind(memory), turn_id: info.turn_id }
  const outcome = await memory.whileOpen(info.signal, signal => compact(ports, input, signal))
  if (typeof outcome === 'object') throw new TurnFailure(outcome)
  if (outcome === 'aborted') return outcome
  await memory.measureFloor()
  return outcome
}
