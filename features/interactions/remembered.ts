/** Short memory of settled requests, so that a late answer hears why it came too late. */

const KEEP_MS = 60_000
const KEEP_COUNT = 256

export type Settled = 'resolved' | 'expired'

/** Keeps at most 256 ids for 60 s each. */
export class Remembered {
  readonly #now: () => number
  readonly #ids = new Map<string, { readonly at: number; readonly how: Settled }>()

  constructor(now: () => number) {
    this.#now = now
  }

  add(id: string, how: Settled): void {
    this.#ids.set(id, { at: this.#now(), how })
    this.#sweep()
  }

  get(id: string): Settled | undefined {
    this.#sweep()
    return this.#ids.get(id)?.how
  }

  #sweep(): void {
    const oldest = this.#now() - KEEP_MS
    for (const [id, { at }] of this.#ids) {
      if (at > oldest && this.#ids.size <= KEEP_COUNT) return
      this.#ids.delete(id)
    }
  }
}
