/** Disposal list: whatever is opened is registered with its undo, and leaves in reverse order. */

export type Dispose = () => unknown

/**
 * A disposal list. `own` registers an undo and returns a function that runs it early (once).
 * `close` runs the remaining undos serially in reverse order, goes on after a failure, and resolves to the errors it met.
 */
export class Scope {
  #disposers: Dispose[] = []
  #closing: Promise<unknown[]> | undefined
  readonly #abort = new AbortController()

  /** Aborts as soon as `close` begins. */
  get signal(): AbortSignal {
    return this.#abort.signal
  }

  get closed(): boolean {
    return this.#closing !== undefined
  }

  /** Number of undos that have not run yet. */
  get size(): number {
    return this.#disposers.length
  }

  /** Registers an undo. On a closed scope the undo runs at once and the call throws: nothing may outlive its owner. */
  own(dispose: Dispose): () => Promise<void> {
    if (this.#closing) {
      void Promise.resolve()
        .then(dispose)
        .catch(() => undefined) // the throw below already tells the caller that the owner is gone
      throw new Error('the owner of this resource is closed')
    }
    let done = false
    const once = async () => {
      if (done) return
      done = true
      await dispose()
    }
    this.#disposers.push(once)
    return async () => {
      const at = this.#disposers.indexOf(once)
      if (at >= 0) this.#disposers.splice(at, 1)
      await once()
    }
  }

  /** Closes once; later calls return the first result. */
  close(reason: unknown = new Error('scope closed')): Promise<unknown[]> {
    this.#closing ??= this.#run(reason)
    return this.#closing
  }

  async #run(reason: unknown): Promise<unknown[]> {
    this.#abort.abort(reason)
    const errors: unknown[] = []
    for (let dispose = this.#disposers.pop(); dispose; dispose = this.#disposers.pop()) {
      try {
        await dispose()
      } catch (error) {
        errors.push(error)
      }
    }
    return errors
  }
}
