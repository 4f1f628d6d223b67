/** What a pack is doing right now: requests, frames and other work in flight, so that unloading can wait for it. */
import { type AppError, developerError } from '../errors.ts'
import { LazySignal, waitAtMost } from './wait.ts'

/** How long work may still go on after its signal was aborted, ms. */
const lastWordMs = 250

/** A piece of work of a pack. */
export interface Work {
  /** Aborts when the pack unloads and its grace time is over. */
  readonly signal: AbortSignal
  /** Aborts a moment later: nobody waits any more. */
  readonly over: AbortSignal
  /** Ends the work; later calls do nothing. */
  leave(): void
}

/** The work in flight of one pack generation. */
export class Activity {
  readonly #works = new Set<Work>()
  #whenIdle: (() => void) | undefined
  #closed = false
  #absence: (() => AppError | undefined) | undefined
  readonly #abort = new LazySignal()
  readonly #over = new LazySignal()

  get running(): number {
    return this.#works.size
  }

  get closed(): boolean {
    return this.#closed
  }

  /** What is answered in place of work that is not taken: the pack is away for a while. Undefined: as if there were no such pack. */
  get absence(): AppError | undefined {
    return this.#absence?.()
  }

  /** Begins a piece of work; undefined when the pack takes no more. */
  enter(): Work | undefined {
    if (this.#closed) return undefined
    const work: Work = {
      signal: this.#abort.signal,
      over: this.#over.signal,
      leave: () => {
        if (this.#works.delete(work) && this.running === 0) this.#whenIdle?.()
      }
    }
    this.#works.add(work)
    return work
  }

  /** Takes no new work, waits `graceMs` for the running work, then aborts its signal. Resolves to the count that was aborted. */
  async drain(graceMs: number, absence?: () => AppError | undefined): Promise<number> {
    this.#closed = true
    this.#absence = absence
    const idle = new Promise<void>(resolve => {
      this.#whenIdle = resolve
    })
    if (this.running > 0) await waitAtMost(idle, graceMs)
    const left = this.running
    this.#abort.abort(() => developerError('pack_leaving'))
    if (left === 0) return 0
    const last = setTimeout(() => this.#over.abort(() => developerError('handler_deaf')), lastWordMs)
    this.#whenIdle = () => clearTimeout(last)
    return left
  }
}
