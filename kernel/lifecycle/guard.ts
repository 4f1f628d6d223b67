/** Calls what packs hand in (listeners, rules, taps, handlers, undos): caught, bounded in time, and put down to the pack that owns it. */
import { developerError } from '../errors.ts'
import type { Logger } from '../log/log.ts'
import { refusedByDisk } from '../storage/refusals.ts'
import { isPromise, late, waitAtMost } from './wait.ts'

/** Faults of one pack since it was activated, shown in `meta.features`. */
export interface Faults {
  readonly count: number
  /** What failed last and how: `listener of event.config.changed: boom`. */
  readonly last: string
}

/** Time that a pack had the event loop in calls of the server: setup, handlers, taps, listeners, what it contributed; up to their first wait. */
export interface LoopTime {
  /** Whole milliseconds. */
  readonly ms: number
  readonly calls: number
  /** Calls that nothing else could run beside for longer than `loopLimitMs`, and the last of them: `route GET /api/v1/x: 812 ms`. */
  readonly slow?: { readonly count: number; readonly last: string }
}

/** See `KernelOptions`. */
interface GuardLimits {
  readonly loopLimitMs: number
  readonly faultLimit?: { readonly count: number; readonly within_ms: number } | undefined
}

interface Account {
  faults: Faults | undefined
  /** When the last ones were, at most as many as the limit. */
  recent: number[]
  ms: number
  calls: number
  slow: LoopTime['slow']
}

export class Guard {
  readonly #log: Logger
  readonly #limits: GuardLimits
  readonly #accounts = new Map<string, Account>()
  /** Errors that were put down to a pack. */
  readonly #known = new WeakSet<Error>()
  #tooMany: (pack: string, error: Error) => void = () => undefined
  /** Time of the calls that ran within the one that runs, ms. */
  #within = 0

  constructor(log: Logger, limits: GuardLimits) {
    this.#log = log
    this.#limits = limits
  }

  /** Who hears of a pack that reached the limit of faults, once per activation. */
  onLimit(tooMany: (pack: string, error: Error) => void): void {
    this.#tooMany = tooMany
  }

  /**
   * Runs a callback and counts how long it holds the event loop: to its end, or to its first wait, without the calls of others within it.
   * Answers and throws what it does. `calls`: 0 for what is still a part of the call before.
   */
  run<T>(pack: string, what: string, work: () => T, calls = 1): T {
    const before = this.#within
    this.#within = 0
    const began = performance.now()
    try {
      return work()
    } finally {
      const ms = performance.now() - began
      this.#count(pack, what, ms - this.#within, calls)
      this.#within = before + ms
    }
  }

  /** Runs a synchronous callback; after a throw `fallback` stands for its answer. */
  call<T>(pack: string, what: string, run: () => T, fallback: T): T {
    try {
      return this.run(pack, what, run)
    } catch (error) {
      this.report(pack, what, error)
      return fallback
    }
  }

  /** Runs a callback whose answer nobody reads. Should it answer with a promise all the same, a rejection is reported, too. */
  tell<A extends unknown[]>(pack: string, what: string, run: (...args: A) => unknown, ...args: A): void {
    try {
      const answer = this.run(pack, what, () => run(...args))
      if (isPromise(answer)) Promise.resolve(answer).catch((error: unknown) => this.report(pack, what, error))
    } catch (error) {
      this.report(pack, what, error)
    }
  }

  /** Runs a callback that may answer later. Never rejects: a failure, or no answer within `ms`, resolves to undefined. */
  async settle(pack: string, what: string, run: () => unknown, ms: number): Promise<unknown> {
    try {
      return await inTime(Promise.resolve(this.run(pack, what, run)), ms)
    } catch (error) {
      this.report(pack, what, error)
      return undefined
    }
  }

  /**
   * Logs a fault of a pack, with `facts` beside it, and counts it: once per error, whoever else meets it on its way. What the disk refuses is
   * logged and no fault of anybody.
   */
  report(pack: string, what: string, error: unknown, facts: object = {}): void {
    if (refusedByDisk(error)) {
      this.#log.warn({ pack, err: error, ...facts }, `${what} failed: the disk refused`)
      return
    }
    if (error instanceof Error) {
      if (this.#known.has(error)) return
      this.#known.add(error)
    }
    const account = this.#account(pack)
    const last = `${what}: ${textOf(error)}`
    account.faults = { count: (account.faults?.count ?? 0) + 1, last }
    this.#log.error({ pack, err: error, ...facts }, `${what} failed`)
    const { count, within_ms } = this.#limits.faultLimit ?? { count: 0, within_ms: 0 }
    if (count === 0) return
    const now = performance.now()
    account.recent = [...account.recent, now].filter(at => now - at <= within_ms)
    if (account.recent.length === count) this.#tooMany(pack, developerError('faults_many', count, within_ms, last))
  }

  faults(pack: string): Faults | undefined {
    return this.#accounts.get(pack)?.faults
  }

  /** How long a pack had the event loop. */
  time(pack: string): LoopTime | undefined {
    const { ms = 0, calls = 0, slow } = this.#accounts.get(pack) ?? {}
    return ms < 1 ? undefined : { ms: Math.round(ms), calls, ...(slow ? { slow } : {}) }
  }

  /** A pack that is activated anew starts with nothing on its account. */
  forget(pack: string): void {
    this.#accounts.delete(pack)
  }

  #count(pack: string, what: string, ms: number, calls: number): void {
    const account = this.#account(pack)
    account.ms += ms
    account.calls += calls
    if (ms <= this.#limits.loopLimitMs) return
    const whole = Math.round(ms)
    account.slow = { count: (account.slow?.count ?? 0) + 1, last: `${what}: ${whole} ms` }
    this.#log.warn({ pack, ms: whole }, `${what} held the event loop: nothing else could run`)
  }

  #account(pack: string): Account {
    const account = this.#accounts.get(pack) ?? { faults: undefined, recent: [], ms: 0, calls: 0, slow: undefined }
    this.#accounts.set(pack, account)
    return account
  }
}

/** As the work; rejects with `callback_late` when that takes longer than `ms`. */
export async function inTime<T>(work: Promise<T>, ms: number): Promise<T> {
  const answer = await waitAtMost(work, ms)
  if (answer === late) throw developerError('callback_late', ms)
  return answer
}

export function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
