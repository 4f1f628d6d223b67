/**
 * The hooks of turns, made anew with every activation of the pack, and how they are called: one tap after the other. A tap that fails is
 * logged with the name of its pack and has no say; the turn goes on.
 */
import { AsyncSeriesBailHook, AsyncSeriesHook, AsyncSeriesWaterfallHook } from 'tapable'
import type { LlmError, LlmRequest } from '../llm/index.ts'
import { type PromptInfo, type PromptRefusal, TurnFailure, type TurnHooks, type TurnInfo } from './service.ts'

export function createTurnHooks(): TurnHooks {
  return {
    beforePrompt: new AsyncSeriesBailHook<[PromptInfo], PromptRefusal>(['prompt']),
    stepBegin: new AsyncSeriesBailHook<[TurnInfo], 'stop'>(['info']),
    beforeStep: new AsyncSeriesWaterfallHook<[LlmRequest, TurnInfo]>(['request', 'info']),
    modelError: new AsyncSeriesBailHook<[LlmError, TurnInfo], 'retry' | 'fail'>(['error', 'info']),
    shouldContinue: new AsyncSeriesBailHook(['info']),
    afterStep: new AsyncSeriesHook(['info']),
    turnEnd: new AsyncSeriesHook(['info'])
  }
}

/** Hears of a callback of another pack that failed. `pack`: who owns it. `what`: `tap of beforeStep`. */
export type CallbackFailed = (pack: string, what: string, error: unknown) => void

interface Tapped {
  readonly taps: readonly { readonly name: string; readonly type: string; readonly fn: unknown }[]
}

/** Rejects after `ms`, unless nobody waits any more. */
function expiry(ms: number): Promise<never> {
  return new Promise((_, reject) => {
    setTimeout(() => reject(new Error(`took longer than ${ms} ms and is not waited for`)), ms).unref()
  })
}

/** Calls turn hooks as their docstrings say. Rejects with a TurnFailure only. */
export class TurnHookCalls {
  readonly #hooks: TurnHooks
  readonly #failed: CallbackFailed

  constructor(hooks: TurnHooks, failed: CallbackFailed) {
    this.#hooks = hooks
    this.#failed = failed
  }

  nobodyHears(...names: readonly (keyof TurnHooks)[]): boolean {
    return names.every(name => (this.#hooks[name] as Tapped).taps.length === 0)
  }

  beforePrompt(info: PromptInfo, limitMs: number): Promise<PromptRefusal | undefined> {
    return this.#first('beforePrompt', [info], limitMs)
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
    return this.#each('turnEnd', [info], undefined, limitMs)
  }

  /** The first answer that is none of undefined. */
  async #first<T>(name: keyof TurnHooks, args: readonly unknown[], limitMs?: number): Promise<T | undefined> {
    let first: T | undefined
    await this.#each(
      name,
      args,
      answer => {
        first = answer as T | undefined // the hook's own type says what its taps answer
        return first === undefined
      },
      limitMs
    )
    return first
  }

  /**
   * Calls the taps of a hook in order. `answered` gets what a tap answered; false: the others are not asked any more. A tap that takes longer
   * than `limitMs` is not waited for.
   */
  async #each(name: keyof TurnHooks, args: readonly unknown[], answered?: (answer: unknown) => boolean, limitMs?: number): Promise<void> {
    const hook: Tapped = this.#hooks[name]
    for (const tap of [...hook.taps]) {
      try {
        if (tap.type === 'async') throw new Error('taps of turn hooks answer with a promise or at once, not through a callback')
        const work = (tap.fn as (...args: readonly unknown[]) => unknown)(...args)
        const answer = await (limitMs === undefined ? work : Promise.race([work, expiry(limitMs)]))
        if (answered?.(answer) === false) return
      } catch (error) {
        if (error instanceof TurnFailure && name !== 'turnEnd') throw error
        this.#failed(tap.name, `tap of ${name}`, error)
      }
    }
  }
}
