/** Disposal list: whatever is opened is registered with its undo, and leaves in reverse order. */
import { developerError } from '../errors.ts'
import { LazySignal, late, waitAtMost } from './wait.ts'

export type Dispose = () => unknown

/** What an undo is given when the others before it have used up the time of the whole list, ms. */
const leastMs = 100

const ownerClosed = (): unknown => developerError('owner_closed')

/**
 * A disposal list. `own` registers an undo and returns a function that runs it early (once).
 * `close` runs the remaining undos serially in reverse order, goes on after a failure, and resolves to the errors it met.
 */
export class Scope {
  readonly #refusal: () => unknown
  readonly #undos = new Set<Dispose>()
  #closing: Promise<unknown[]> | undefined
  #ended = false
  readonly #closes = new LazySignal()

  /** `refusal`: what whoever comes too late is told. Default: the owner is closed. */
  constructor(refusal = ownerClosed) {
    this.#refusal = refusal
  }

  /** Aborts as soon as `close` begins. */
  get signal(): AbortSignal {
    return this.#closes.signal
  }

  /** `close` was called: nothing more can be owned. */
  get closed(): boolean {
    return this.#closing !== undefined
  }

  /** Everything was undone. */
  get ended(): boolean {
    return this.#ended
  }

  /** Number of undos that have not run yet. */
  get size(): number {
    return this.#undos.size
  }

  /** Registers an undo. On a closed scope the undo runs at once and the call throws: nothing may outlive its owner. */
  own(dispose: Dispose): () => Promise<void> {
    if (this.#closing) {
      void Promise.resolve()
        .then(dispose)
        .catch(() => undefined) // the throw below already tells the caller that the owner is gone
      throw this.#refusal()
    }
    let done = false
    let answer: unknown
    const once = () => {
      if (!done) {
        done = true
        answer = dispose()
      }
      return answer
    }
    this.#undos.add(once)
    return async () => {
      this.#undos.delete(once)
      await once()
    }
  }

  /** The same for what nobody waits for. */
  ownUndo(dispose: Dispose): () => void {
    const undo = this.own(dispose)
    return () => void undo()
  }

  /**
   * Closes once; later calls return the first result. An undo that is not through after `limitMs` (all together) is given up, and the
   * next one runs. `why`: makes the reason of the signal, when somebody has asked for that; default: what whoever comes too
   * late is told.
   */
  close(why = this.#refusal, limitMs = Number.POSITIVE_INFINITY): Promise<unknown[]> {
    this.#closing ??= this.#run(why, limitMs)
    return this.#closing
  }

  async #run(why: () => unknown, limitMs: number): Promise<unknown[]> {
    this.#closes.abort(why)
    const errors: unknown[] = []
    const end = performance.now() + limitMs
    for (const undo of [...this.#undos].reverse()) {
      this.#undos.delete(undo)
      try {
        const ms = Math.max(leastMs, end - performance.now())
        if ((await waitAtMost(Promise.resolve(undo()), ms)) === late) errors.push(developerError('callback_late', limitMs))
      } catch (error) {
        errors.push(error)
      }
    }
    this.#ended = true
    return errors
  }
}
