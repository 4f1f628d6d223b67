/** The calls that run on one connection: their time, which stands still while the user is asked, and whom a question of the server is for. */
import type { Elicited, Form } from './elicitation.ts'

export interface RunningCall {
  readonly timeoutMs: number
  /** Asks the user of the session in which the call runs. */
  readonly elicit: (form: Form, signal: AbortSignal) => Promise<Elicited>
}

class Clock {
  readonly #controller = new AbortController()
  #left: number
  #timer: NodeJS.Timeout | undefined
  #since = 0

  constructor(ms: number) {
    this.#left = ms
    this.go()
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  go(): void {
    this.#since = performance.now()
    this.#timer = setTimeout(() => this.#controller.abort(new Error('the call takes too long')), this.#left)
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#left = Math.max(1, this.#left - (performance.now() - this.#since))
  }
}

export class RunningCalls {
  readonly #calls = new Map<RunningCall, Clock>()

  /** `work` gets a signal that aborts when the call has had its time. */
  async run<T>(call: RunningCall, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const clock = new Clock(call.timeoutMs)
    this.#calls.set(call, clock)
    try {
      return await work(clock.signal)
    } finally {
      clock.stop()
      this.#calls.delete(call)
    }
  }

  /** A server does not say for which call it asks: with several of them nobody knows whose user that is. */
  async ask(form: Form, signal: AbortSignal): Promise<Elicited> {
    const [only, ...others] = this.#calls
    if (!only || others.length > 0) return { action: 'cancel' }
    const [call, clock] = only
    clock.stop()
    try {
      return await call.elicit(form, AbortSignal.any([signal, clock.signal]))
    } finally {
      if (this.#calls.has(call)) clock.go()
    }
  }
}
