/**
 * The hooks of turns, made anew with every activation of the pack, and how they are called: one tap after the other. A tap that fails is
 * logged with the name of its pack and has no say; the turn goes on.
 */
import { AsyncSeriesBailHook, AsyncSeriesHook, AsyncSeriesWaterfallHook } from 'tapable'
import { packOfTap, silence } from '../../kernel/index.ts'
import type { LlmError, LlmRequest } from '../llm/index.ts'
import { type PromptInfo, type PromptRefusal, TurnFailure, type TurnHooks, type TurnInfo } from './service.ts'
import { type Patience, waited } from './waited.ts'

export function createTurnHooks(): TurnHooks {
  return {
    beforePrompt: new AsyncSeriesBailHook<[PromptInfo], PromptRefusal>(['prompt'], 'beforePrompt'),
    stepBegin: new AsyncSeriesBailHook<[TurnInfo], 'stop'>(['info'], 'stepBegin'),
    beforeStep: new AsyncSeriesWaterfallHook<[LlmRequest, TurnInfo]>(['request', 'info'], 'beforeStep'),
    modelError: new AsyncSeriesBailHook<[LlmError, TurnInfo], 'retry' | 'fail'>(['error', 'info'], 'modelError'),
    shouldContinue: new AsyncSeriesBailHook(['info'], 'shouldContinue'),
    afterStep: new AsyncSeriesHook(['info'], 'afterStep'),
    turnEnd: new AsyncSeriesHook(['info'], 'turnEnd')
  }
}

/** Hears of a callback of another pack that failed. `pack`: who owns it. `what`: `tap of beforeStep`. */
type CallbackFailed = (pack: string, what: string, error: unknown) => void

interface Tapped {
  readonly taps: readonly { readonly name: string; readonly type: string; readonly fn: unknown }[]
}

/** Calls turn hooks as their docstrings say. Rejects with a TurnFailure only. */
export class TurnHookCalls {
  readonly #hooks: TurnHooks
  readonly #failed: CallbackFailed
  readonly #patience: Patience

  /** `patience`: for the hooks of a step. */
  constructor(hooks: TurnHooks, failed: CallbackFailed, patience: Patience) {
    this.#hooks = hooks
    this.#failed = failed
    this.#patience = patience
  }

  nobodyHears(...names: readonly (keyof TurnHooks)[]): boolean {
    return names.every(name => (this.#hooks[name] as Tapped).taps.length === 0)
  }

  beforePrompt(info: PromptInfo, limitMs: number): Promise<PromptRefusal | undefined> {
    return this.#first('beforePrompt', [info], { limit_ms: limitMs })
  }

  stepBegin(info: TurnInfo): Promise<'stop' | undefined> {
    return this.#first('stepBegin', [info])
  }

  async beforeStep(given: LlmRequest, info: TurnInfo): Promise<LlmRequest> {
    const args: [LlmRequest, TurnInfo] = [given, info]
    await this.#each('beforeStep', args, answer => {
      args[0] = (answer as LlmRequest | undefined) ?? args[0]
      return true
    })
    return args[0]
  }

  modelError(error: LlmError, info: TurnInfo): Promise<'retry' | 'fail' | undefined> {
    return this.#first('modelError', [error, info])
  }

  shouldContinue(info: TurnInfo): Promise<Awaited<ReturnType<TurnHooks['shouldContinue']['promise']>> | undefined> {
    return this.#first('shouldContinue', [info])
  }

  afterStep(info: TurnInfo): Promise<void> {
    return this.#each('afterStep', [info])
  }

  turnEnd(info: Parameters<TurnHooks['turnEnd']['promise']>[0], limitMs: number): Promise<void> {
    return this.#each('turnEnd', [info], undefined, { limit_ms: limitMs })
  }

  /** As for the hooks of a step. */
  wait<T>(work: T | Promise<T>, signal: AbortSignal): Promise<T> {
    return waited(work, { ...this.#patience, signal })
  }

  /** The first answer that is none of undefined. */
  async #first<T>(name: keyof TurnHooks, args: readonly unknown[], patience?: Patience): Promise<T | undefined> {
    let first: T | undefined
    await this.#each(
      name,
      args,
      answer => {
        first = answer as T | undefined // the hook's own type says what its taps answer
        return first === undefined
      },
      patience
    )
    return first
  }

  /**
   * Calls the taps of a hook in order. `answered` gets what a tap answered; false: the others are not asked any more. A tap that takes too long,
   * or does not end with its turn, is not waited for. An agent that was closed in between has no more to ask.
   */
  async #each(
    name: keyof TurnHooks,
    args: readonly unknown[],
    answered?: (answer: unknown) => boolean,
    patience: Patience = { ...this.#patience, signal: lastOf(args).signal }
  ): Promise<void> {
    const hook: Tapped = this.#hooks[name]
    const { agent } = lastOf(args)
    for (const tap of [...hook.taps]) {
      try {
        if (tap.type === 'async') throw new Error('taps of turn hooks answer with a promise or at once, not through a callback')
        const work = (tap.fn as (...args: readonly unknown[]) => unknown)(...args)
        if (work === silence) continue
        const answer = await waited(work, patience)
        if (answered?.(answer) === false) return
      } catch (error) {
        if (error instanceof TurnFailure && name !== 'turnEnd') throw error
        if (agent.scope.closed) return
        this.#failed(packOfTap(tap), `tap of ${name}`, error)
      }
    }
  }
}

/** What the taps of all hooks get last. */
const lastOf = (args: readonly unknown[]) => args.at(-1) as TurnInfo
