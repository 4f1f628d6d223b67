/** What a pack is doing right now: requests, frames and other work in flight, so that unloading can wait for it. */
import { type AppError, developerError } from '../errors.ts'
import { LazySignal, waitAtMost } from './wait.ts'

/** A piece of work of a pack. */
export class Work {
  /** Aborts when the pack unloads and its grace time is over. */
  readonly signal: AbortSignal
  readonly #left: (work: Work) => void
  #timer: NodeJS.Timeout | undefined
  #giveUp: (() => void) | undefined

  constructor(signal: AbortSignal, left: (work: Work) => void) {
    this.signal = signal
    this.#left = left
  }

  /** Ends the work; later calls do nothing. */
  leave(): void {
    clearTimeout(this.#timer)
    this.#left(this)
  }

  /** Settles as the result does, or rejects with what `givenUp` tells when it is not there `ms` after the signal was aborted. */
  untilGivenUp<T>(result: Promise<T>, ms: number, givenUp: () => Error): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#giveUp = () => {
        this.#timer = setTimeout(() => reject(givenUp()), ms)
      }
      if (this.signal.aborted) this.#giveUp()
      result.then(resolve, reject)
    })
  }

  /** The signal was aborted. */
  aborted(): void {
    this.#giveUp?.()
  }
}

/** The work in flight of one pack generation. */
export class Activity {
  readonly #works = new Set<Work>()
  #whenIdle: (() => void) | undefined
  readonly #left = (work: Work) => {
    if (this.#works.delete(work) && this.running === 0) this.#whenIdle?.()
  }
  #closed = false
  #absence: (() => AppError | undefined) | undefined
  readonly #abort = new LazySignal()

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
    const work = new Work(this.#abort.signal, this.#left)
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
    const left = [...this.#works]
    this.#abort.abort(() => developerError('pack_leaving'))
    for (const work of left) work.aborted()
    return left.length
  }
}
