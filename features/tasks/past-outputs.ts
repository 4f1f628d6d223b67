/** What tasks printed that ended in the foreground, in memory: of all agents of a session together, as their files are gone. */
import { endOf } from './output.ts'
import { TAIL_BYTES } from './records.ts'

/** More than one task holds. Beyond it the oldest keep no more than the record of an end does. */
const PAST_BYTES = 2 * 1024 * 1024

interface Held {
  buffer: Buffer
}

export interface PastOutput {
  /** The last bytes, at most so many. */
  tail(bytes: number): string
  /** Nobody asks for it any more. */
  drop(): void
}

export class PastOutputs {
  /** Oldest first. */
  readonly #held = new Set<Held>()
  #bytes = 0

  keep(text: string): PastOutput {
    const held: Held = { buffer: Buffer.from(text) }
    this.#held.add(held)
    this.#bytes += held.buffer.length
    for (const oldest of this.#held) {
      if (this.#bytes <= PAST_BYTES) break
      this.#cut(oldest, TAIL_BYTES)
    }
    return { tail: bytes => endOf(held.buffer, bytes), drop: () => this.#cut(held, 0) }
  }

  #cut(held: Held, bytes: number): void {
    if (this.#held.delete(held)) this.#bytes -= held.buffer.length
    held.buffer = Buffer.from(endOf(held.buffer, bytes))
  }
}
