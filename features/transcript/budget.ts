/** Which entities may keep their large fields: the newest ones, up to a number of bytes. */
export class Budget {
  readonly #limit: number
  readonly #slim: (id: string) => void
  /** In the order in which they got their last size. */
  readonly #sizes = new Map<string, number>()
  #sum = 0

  constructor(limit: number, slim: (id: string) => void) {
    this.#limit = limit
    this.#slim = slim
  }

  put(id: string, size: number): void {
    this.forget(id)
    this.#sizes.set(id, size)
    this.#sum += size
    for (const [oldest] of this.#sizes) {
      if (this.#sum <= this.#limit) return
      this.forget(oldest)
      this.#slim(oldest)
    }
  }

  sizes(): [string, number][] {
    return [...this.#sizes]
  }

  forget(id: string): void {
    this.#sum -= this.#sizes.get(id) ?? 0
    this.#sizes.delete(id)
  }
}
