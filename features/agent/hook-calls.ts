/** Calls the hooks of turns, one tap after the other. One that fails is logged with the name of its pack and has no say. */
import { packOfTap, silence } from '../../kernel/index.ts'
import type { LlmRequest } from '../llm/index.ts'
import { TurnFailure, type TurnHooks, type TurnInfo } from './hooks.ts'
import { type Patience, waited } from './waited.ts'

/** Hears of a callback of another pack that failed. `pack`: who owns it. `what`: `tap of beforeStep`. */
type CallbackFailed = (pack: string, what: string, error: unknown) => void

interface Tapped {
  readonly taps: readonly { readonly name: string; readonly type: string; readonly fn: unknown }[]
}

/** Hooks whose first answer counts. */
type Bail = 'beforePrompt' | 'stepBegin' | 'modelError' | 'shouldContinue'
type Answer<N extends Bail> = NonNullable<Awaited<ReturnType<TurnHooks[N]['promise']>>>
type Limit = Partial<Pick<Patience, 'limit_ms'>>

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

  async beforeStep(given: LlmRequest, info: TurnInfo): Promise<LlmRequest> {
    const args: [LlmRequest, TurnInfo] = [given, info]
    await this.each('beforeStep', args, {}, answer => {
      args[0] = (answer as LlmRequest | undefined) ?? args[0]
      return true
    })
    return args[0]
  }

  /** As for the hooks of a step. */
  wait<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
    return waited(work, { ...this.#patience, signal })
  }

  /** The first answer that is none of undefined. `limit_ms`: in place of that of the hooks of a step. */
  async first<N extends Bail>(name: N, args: Parameters<TurnHooks[N]['promise']>, limit: Limit = {}): Promise<Answer<N> | undefined> {
    let first: Answer<N> | undefined
    await this.each(name, args, limit, answer => {
      first = answer as Answer<N> | undefined // the hook's own type says what its taps answer
      return first === undefined
    })
    return first
  }

  /**
   * Calls the taps of a hook in order. `answered` gets what a tap answered; false: the others are not asked any more. A tap that takes too long,
   * or does not end with its turn, is not waited for. An agent that was closed in between has no more to ask.
   */
  async each<N extends keyof TurnHooks>(
    name: N,
    args: Parameters<TurnHooks[N]['promise']>,
    { limit_ms }: Limit = {},
    answered?: (answer: unknown) => boolean
  ): Promise<void> {
    const { agent, signal } = (args as readonly unknown[]).at(-1) as TurnInfo // what the taps of all hooks get last
    const patience: Patience = limit_ms === undefined ? { ...this.#patience, signal } : { limit_ms }
    const hook: Tapped = this.#hooks[name]
    for (const tap of [...hook.taps]) {
      try {
        if (tap.type === 'async') throw new Error('taps of turn hooks answer with a promise or at once, not through a callback')
        const work = (tap.fn as (...args: readonly unknown[]) => unknown)(...args)
        if (work === silence) continue
        const answer = work instanceof Promise ? await waited(work, patience) : work
        if (answered?.(answer) === false) return
      } catch (error) {
        if (error instanceof TurnFailure && name !== 'turnEnd') throw error
        if (agent.scope.closed) return
        this.#failed(packOfTap(tap), `tap of ${name}`, error)
      }
    }
  }
}
