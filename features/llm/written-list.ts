/** Bytes of lists that grow: what stood in the request before, in the same objects, is not written as JSON again. */

/** A conversation that takes more is written anew with every request. */
const mostBytes = 32 * 1024 * 1024

/** Writes one item as JSON in UTF-8. */
type WriteItem = (item: unknown) => readonly Uint8Array[] | Promise<readonly Uint8Array[]>

/**
 * The JSON of one list, as far as two requests in a row had it. Bytes that were given out never change: more is written behind them, and what
 * must give way is written elsewhere.
 */
class WrittenList {
  /** Of the request before. */
  #items: readonly unknown[] = []
  /** Where each written item ends, with the comma in front of it. */
  readonly #ends: number[] = []
  #bytes = Buffer.alloc(0)
  #busy = false

  /** How many of the items are written, and their bytes. Items are not changed once they were in a list. */
  async take(items: readonly unknown[], write: WriteItem): Promise<{ readonly count: number; readonly bytes: Uint8Array }> {
    if (this.#busy) return { count: 0, bytes: this.#bytes.subarray(0, 0) }
    this.#busy = true
    try {
      const same = sameBeginning(this.#items, items)
      if (same < this.#ends.length) {
        this.#ends.length = same
        this.#bytes = Buffer.from(this.#bytes.subarray(0, this.#used))
      }
      this.#items = items
      while (this.#ends.length < same && this.#used < mostBytes) {
        const written = write(items[this.#ends.length])
        this.#add(written instanceof Promise ? await written : written)
      }
      return { count: this.#ends.length, bytes: this.#bytes.subarray(0, this.#used) }
    } finally {
      this.#busy = false
    }
  }

  get #used(): number {
    return this.#ends.at(-1) ?? 0
  }

  #add(pieces: readonly Uint8Array[]): void {
    const parts: readonly Uint8Array[] = this.#ends.length > 0 ? [comma, ...pieces] : pieces
    let end = this.#used
    const needed = parts.reduce<number>((sum, piece) => sum + piece.length, end)
    if (needed > this.#bytes.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#bytes.length, 4096))
      this.#bytes.copy(larger, 0, 0, end)
      this.#bytes = larger
    }
    for (const piece of parts) {
      this.#bytes.set(piece, end)
      end += piece.length
    }
    this.#ends.push(end)
  }
}

const comma = Buffer.from(',')

/** By the first item: a list that begins with another one is another list. */
const lists = new WeakMap<object, WrittenList>()

/** What is kept of a list; undefined for one that could not be told from others. */
export function writtenList(items: readonly unknown[]): WrittenList | undefined {
  const [first] = items
  if (typeof first !== 'object' || first === null) return undefined
  const known = lists.get(first) ?? new WrittenList()
  lists.set(first, known)
  return known
}

/** How many items both begin with. */
export function sameBeginning(a: readonly unknown[], b: readonly unknown[]): number {
  const most = Math.min(a.length, b.length)
  let same = 0
  while (same < most && a[same] === b[same]) same++
  return same
}
