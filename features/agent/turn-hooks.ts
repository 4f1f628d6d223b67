/**
 * The hooks of turns, made anew with every activation of the pack, and how they are called: one tap after the other. A tap that fails is
 * logged with the name of its pack and has no say; the turn goes on.
 */
import { AsyncSeriesBailHook, AsyncSeriesHook, AsyncSeriesWaterfallHook } from 'tapable'
import type { LlmError, LlmRequest } from '../llm/index.ts'
import type { TurnHooks, TurnInfo } from './service.ts'

export function createTurnHooks(): TurnHooks {
  return {
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

/** Calls every tap of a hook in order. `answered` gets what each of them answered and says whether the next one is still asked. */
async function each(
  what: string,
  hook: Tapped,
  args: () => readonly unknown[],
  failed: CallbackFailed,
  answered: (answer: unknown) => boolean = () => true
): Promise<void> {
  for (const { name, type, fn } of [...hook.taps]) {
    try {
      if (type === 'async') throw new Error('taps of turn hooks answer with a promise or at once, not through a callback')
      const answer = await (fn as (...args: readonly unknown[]) => unknown)(...args())
      if (!answered(answer)) return
    } catch (error) {
      failed(name, `tap of ${what}`, error)
    }
  }
}

/** The first answer that is none of undefined. */
async function firstOf<T>(what: string, hook: Tapped, args: readonly unknown[], failed: CallbackFailed): Promise<T | undefined> {
  let first: T | undefined
  await each(
    what,
    hook,
    () => args,
    failed,
    answer => {
      first = answer as T | undefined // the hook's own type says what its taps answer
      return first === undefined
    }
  )
  return first
}

/** Calls turn hooks as their docstrings say. Never rejects. */
export class TurnHookCalls {
  readonly #hooks: TurnHooks
  readonly #failed: CallbackFailed

  constructor(hooks: TurnHooks, failed: CallbackFailed) {
    this.#hooks = hooks
    this.#failed = failed
  }

  async beforeStep(given: LlmRequest, info: TurnInfo): Promise<LlmRequest> {
    let request = given
    const changed = (answer: unknown) => {
      request = (answer as LlmRequest | undefined) ?? request
      return true
    }
    await each('beforeStep', this.#hooks.beforeStep, () => [request, info], this.#failed, changed)
    return request
  }

  modelError(error: LlmError, info: TurnInfo): Promise<'retry' | 'fail' | undefined> {
    return firstOf('modelError', this.#hooks.modelError, [error, info], this.#failed)
  }

  shouldContinue(info: TurnInfo): Promise<Awaited<ReturnType<TurnHooks['shouldContinue']['promise']>> | undefined> {
    return firstOf('shouldContinue', this.#hooks.shouldContinue, [info], this.#failed)
  }

  afterStep(info: TurnInfo): Promise<void> {
    return each('afterStep', this.#hooks.afterStep, () => [info], this.#failed)
  }

  turnEnd(info: Parameters<TurnHooks['turnEnd']['promise']>[0]): Promise<void> {
    return each('turnEnd', this.#hooks.turnEnd, () => [info], this.#failed)
  }
}
