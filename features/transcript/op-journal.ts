/** The newest op batches of an agent, bounded in bytes. */
import type { Op } from './shapes.ts'

export interface Batch {
  readonly seq: number
  readonly ops: readonly Op[]
}

export interface CatchUp {
  readonly batches: readonly Batch[]
  readonly latest_seq: number
  /** False: what came right after the wanted number is gone, or it was never given. */
  readonly complete: boolean
}

const maxBytes = 1024 * 1024
const maxBatches = 2000

export class OpJournal {
  /** Oldest first: one that is full lets go of the oldest with every batch, without copying the others. */
  readonly #entries = new Set<{ readonly batch: Batch; readonly bytes: number }>()
  #bytes = 0
  /** Number of the newest batch that is not here. */
  #floor: number
  latest: number

  /** `latest`: number of the newest batch that was ever given. */
  constructor(latest: number) {
    this.latest = latest
    this.#floor = latest
  }

  add(ops: readonly Op[], bytes: number): Batch {
    const batch = { seq: ++this.latest, ops }
    this.#entries.add({ batch, bytes })
    this.#bytes += bytes
    for (const entry of this.#entries) {
      if (this.#entries.size <= maxBatches && this.#bytes <= maxBytes) break
      this.#entries.delete(entry)
      this.#bytes -= entry.bytes
      this.#floor = entry.batch.seq
    }
    return batch
  }

  /** Nobody can go on from before this moment. */
  break(): void {
    this.#entries.clear()
    this.#bytes = 0
    this.#floor = ++this.latest
  }

  since(seq: number): CatchUp {
    const { latest } = this
    if (seq > latest) return { batches: [], latest_seq: latest, complete: false }
    const batches = [...this.#entries].flatMap(({ batch }) => (batch.seq > seq ? [batch] : []))
    return { batches, latest_seq: latest, complete: seq >= this.#floor }
  }
}
