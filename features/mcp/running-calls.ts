/** The calls that run on one connection: their time, which stands still while the user is asked, and whom a question of the server is for. */
import { underFirstAbort } from '../../kernel/index.ts'
import type { Elicited, Form } from './elicitation.ts'

export interface RunningCall {
  readonly timeoutMs: number
  /** Asks the user of the session in which the call runs. */
  readonly elicit: (form: Form, signal: AbortSignal) => Promise<Elicited>
}

/** The call has had its time. */
export class CallLate extends Error {
  override readonly name = 'CallLate'
}

class Clock {
  readonly #late = new AbortController()
  readonly #over = new AbortController()
  #left: number
  #timer: NodeJS.Timeout | undefined
  #since = 0
  /** Questions that are open. */
  #questions = 0

  constructor(ms: number) {
    this.#left = ms
    this.#go()
  }

  /** Aborts when the call has had its time. */
  get late(): AbortSignal {
    return this.#late.signal
  }

  /** Aborts when the call has ended, however. */
  get over(): AbortSignal {
    return this.#over.signal
  }

  /** Stands still as long as any work of these runs. */
  async hold<T>(work: () => Promise<T>): Promise<T> {
    if (this.#questions++ === 0) this.#stop()
    try {
      return await work()
    } finally {
      if (--this.#questions === 0 && !this.over.aborted) this.#go()
    }
  }

  end(): void {
    this.#stop()
    this.#over.abort(new Error('the call has ended'))
  }

  #go(): void {
    this.#since = performance.now()
    this.#timer = setTimeout(() => this.#late.abort(new CallLate('the call takes too long')), this.#left)
  }

  #stop(): void {
    clearTimeout(this.#timer)
    this.#left = Math.max(1, this.#left - (performance.now() - this.#since))
  }
}

export class RunningCalls {
  readonly #calls = new Map<RunningCall, Clock>()

  /** `work` gets a signal that aborts when the call has had its time; then this rejects with CallLate. */
  async run<T>(call: RunningCall, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const clock = new Clock(call.timeoutMs)
    this.#calls.set(call, clock)
    try {
      return await work(clock.late)
    } catch (error) {
      clock.late.throwIfAborted() // the library tells it by a code that servers use, too
      throw error
    } finally {
      clock.end()
      this.#calls.delete(call)
    }
  }

  /** A server does not say for which call it asks: with several of them nobody knows whose user that is. */
  async ask(form: Form, signal: AbortSignal): Promise<Elicited> {
    const [only, ...others] = this.#calls
    if (!only || others.length > 0) return { action: 'cancel' }
    const [call, clock] = only
    return await clock.hold(() => underFirstAbort([signal, clock.over], either => call.elicit(form, either)))
  }
}
