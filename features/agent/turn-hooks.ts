/**
 * The hooks of turns, made anew with every activation of the pack, and how they are called: one tap after the other. A tap that fails is
 * logged with the name of its pack and has no say; the turn goes on.
 */
import { AsyncSeriesBailHook, AsyncSeriesHook, AsyncSeriesWaterfallHook } from 'tapable'
import type { LlmError, LlmRequest } from '../llm/index.ts'
import type { TurnHooks, TurnInfo } from './service.ts'

export function createTurnHooks(): TurnHooks {
  return {
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

interface Call {
  readonly what: string
  readonly hook: Tapped
  /** Asked before every tap. */
  readonly args: () => readonly unknown[]
  readonly failed: CallbackFailed
  /** Gets what a tap answered; false: the others are not asked any more. Default: all are. */
  readonly answered?: (answer: unknown) => boolean
  /** A tap that takes longer is not waited for any more. Default: no limit. */
  readonly limitMs?: number
}

/** Calls the taps of a hook in order. */
async function each({ what, hook, args, failed, answered = () => true, limitMs }: Call): Promise<void> {
  for (const { name, type, fn } of [...hook.taps]) {
    try {
      if (type === 'async') throw new Error('taps of turn hooks answer with a promise or at once, not through a callback')
      const work = (fn as (...args: readonly unknown[]) => unknown)(...args())
      const answer = await (limitMs === undefined ? work : Promise.race([work, expiry(limitMs)]))
      if (!answered(answer)) return
    } catch (error) {
      failed(name, `tap of ${what}`, error)
    }
  }
}

/** Rejects after `ms`, unless nobody waits any more. */
function expiry(ms: number): Promise<never> {
  return new Promise((_, reject) => {
    setTimeout(() => reject(new Error(`took longer than ${ms} ms and is not waited for`)), ms).unref()
  })
}

/** The first answer that is none of undefined. */
async function firstOf<T>(call: Omit<Call, 'answered'>): Promise<T | undefined> {
  let first: T | undefined
  const answered = (answer: unknown) => {
    first = answer as T | undefined // the hook's own type says what its taps answer
    return first === undefined
  }
  await each({ ...call, answered })
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

  stepBegin(info: TurnInfo): Promise<'stop' | undefined> {
    return firstOf(this.#call('stepBegin', info))
  }

  async beforeStep(given: LlmRequest, info: TurnInfo): Promise<LlmRequest> {
    let request = given
    const answered = (answer: unknown) => {
      request = (answer as LlmRequest | undefined) ?? request
      return true
    }
    await each({ ...this.#call('beforeStep'), args: () => [request, info], answered })
    return request
  }

  modelError(error: LlmError, info: TurnInfo): Promise<'retry' | 'fail' | undefined> {
    return firstOf(this.#call('modelError', error, info))
  }

  shouldContinue(info: TurnInfo): Promise<Awaited<ReturnType<TurnHooks['shouldContinue']['promise']>> | undefined> {
    return firstOf(this.#call('shouldContinue', info))
  }

  afterStep(info: TurnInfo): Promise<void> {
    return each(this.#call('afterStep', info))
  }

  turnEnd(info: Parameters<TurnHooks['turnEnd']['promise']>[0], limitMs: number): Promise<void> {
    return each({ ...this.#call('turnEnd', info), limitMs })
  }

  #call(name: keyof TurnHooks, ...args: readonly unknown[]): Call {
    return { what: name, hook: this.#hooks[name], args: () => args, failed: this.#failed }
  }
}
