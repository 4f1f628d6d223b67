/** What a pack is doing right now: requests, frames and other work in flight, so that unloading can wait for it. */

import { developerError } from '../errors.ts'

export interface Work {
  /** Aborts when the pack unloads and its grace time is over. */
  readonly signal: AbortSignal
  leave(): void
}

/** Counts the work in flight of one pack generation. */
export class Activity {
  #running = 0
  #closed = false
  #idle: (() => void) | undefined
  readonly #abort = new AbortController()

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
    let left = false
    return {
      signal: this.#abort.signal,
      leave: () => {
        if (left) return
        left = true
        this.#running--
        if (this.#running === 0) this.#idle?.()
      }
    }
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
