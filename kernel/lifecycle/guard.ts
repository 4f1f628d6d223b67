/** Calls what packs hand in (listeners, rules, taps, handlers, undos): caught, bounded in time, and put down to the pack that owns it. */
import { developerError } from '../errors.ts'
import type { Logger } from '../log/log.ts'
import { late, waitAtMost } from './wait.ts'

/** Faults of one pack since it was activated, shown in `meta.features`. */
export interface Faults {
  readonly count: number
  /** What failed last and how: `listener of event.config.changed: boom`. */
  readonly last: string
}

export class Guard {
  readonly #log: Logger
  readonly #faults = new Map<string, Faults>()

  constructor(log: Logger) {
    this.#log = log
  }

  /** Runs a synchronous callback; after a throw `fallback` stands for its answer. */
  call<T>(pack: string, what: string, run: () => T, fallback: T): T {
    try {
      return run()
    } catch (error) {
      this.report(pack, what, error)
      return fallback
    }
  }

  /** Runs a callback whose answer nobody reads. Should it answer with a promise all the same, a rejection is reported, too. */
  tell<A extends unknown[]>(pack: string, what: string, run: (...args: A) => unknown, ...args: A): void {
    try {
      const answer = run(...args)
      if (answer instanceof Promise) answer.catch((error: unknown) => this.report(pack, what, error))
    } catch (error) {
      this.report(pack, what, error)
    }
  }

  /** Runs a callback that may answer later. Never rejects: a failure, or no answer within `ms`, resolves to `fallback`. */
  async settle<T>(pack: string, what: string, run: () => T | Promise<T>, ms: number, fallback: T): Promise<T> {
    try {
      const answer = await waitAtMost(Promise.resolve(run()), ms)
      if (answer !== late) return answer
      this.report(pack, what, developerError('callback_late', ms))
    } catch (error) {
      this.report(pack, what, error)
    }
    return fallback
  }

  /** Logs a fault of a pack, with `facts` beside it, and counts it. */
  report(pack: string, what: string, error: unknown, facts: object = {}): void {
    const text = error instanceof Error ? error.message : String(error)
    const count = (this.#faults.get(pack)?.count ?? 0) + 1
    this.#faults.set(pack, { count, last: `${what}: ${text}` })
    this.#log.error({ pack, err: error, ...facts }, `${what} failed`)
  }

  /** Faults of a pack; undefined while there are none. */
  faults(pack: string): Faults | undefined {
    return this.#faults.get(pack)
  }

  /** A pack that is activated anew starts without faults. */
  forget(pack: string): void {
    this.#faults.delete(pack)
  }
}
