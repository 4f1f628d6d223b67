/** What a pack is doing right now: requests, frames and other work in flight, so that unloading can wait for it. */
import { setMaxListeners } from 'node:events'
import { developerError } from '../errors.ts'
import { late } from './wait.ts'

/** A piece of work of a pack. */
export class Work {
  /** Aborts when the pack unloads and its grace time is over. */
  readonly signal: AbortSignal
  #leave: (() => void) | undefined

  constructor(signal: AbortSignal, leave: () => void) {
    this.signal = signal
    this.#leave = leave
  }

  /** Ends the work; later calls do nothing. */
  leave(): void {
    this.#leave?.()
    this.#leave = undefined
  }

  /** Resolves with the result, or with `late` when it is not there `ms` after the signal was aborted; rejects as the result does. */
  async untilGivenUp<T>(result: Promise<T>, ms: number): Promise<T | typeof late> {
    const { signal } = this
    let timer: NodeJS.Timeout | undefined
    let aborted: () => void = () => undefined
    const limit = new Promise<typeof late>(resolve => {
      aborted = () => {
        timer = setTimeout(() => resolve(late), ms)
      }
    })
    if (signal.aborted) aborted()
    else signal.addEventListener('abort', aborted)
    try {
      return await Promise.race([result, limit])
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', aborted)
    }
  }
}

/** Counts the work in flight of one pack generation. */
export class Activity {
  #running = 0
  #closed = false
  #idle: (() => void) | undefined
  readonly #abort = new AbortController()

  constructor() {
    setMaxListeners(0, this.#abort.signal) // as many as there is work
  }

  get running(): number {
    return this.#running
  }

  get closed(): boolean {
    return this.#closed
  }

  /** Begins a piece of work; undefined when the pack takes no more. */
  enter(): Work | undefined {
    if (this.#closed) return undefined
    this.#running++
    return new Work(this.#abort.signal, () => {
      this.#running--
      if (this.#running === 0) this.#idle?.()
    })
  }

  /** Takes no new work, waits `graceMs` for the running work, then aborts its signal. Resolves to the count that was aborted. */
  async drain(graceMs: number): Promise<number> {
    this.#closed = true
    if (this.#running > 0) {
      await new Promise<void>(resolve => {
        const timer = setTimeout(resolve, graceMs)
        this.#idle = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
    const left = this.#running
    this.#abort.abort(developerError('pack_leaving'))
    return left
  }
}
