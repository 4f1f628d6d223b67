/** Work in order, one at a time per key. A key is forgotten as soon as nothing waits for it. */
export class KeyedQueue {
  readonly #last = new Map<string, Promise<unknown>>()

  /** Runs `work` after everything that was asked for this key before; failures of others do not matter. */
  run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key)
    const result = before ? before.then(work, work) : work()
    this.#last.set(key, result)
    const forget = () => {
      if (this.#last.get(key) === result) this.#last.delete(key)
    }
    result.then(forget, forget)
    return result
  }

  /** Something is under way for this key. */
  isBusy(key: string): boolean {
    return this.#last.has(key)
  }

  /** Resolves when nothing is under way. */
  async idle(): Promise<void> {
    while (this.#last.size > 0) await Promise.allSettled(this.#last.values())
  }
}
