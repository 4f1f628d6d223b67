/** An engine of journals that keeps everything in memory, for as long as its map lives. */
import { type Journal, type Journals, replayLimit } from '../../kernel/index.ts'

export type MemoryOfJournals = Map<string, MemoryJournal>

export function memoryJournals(memory: MemoryOfJournals = new Map()): Journals {
  return {
    open: async id => {
      const journal = memory.get(id) ?? new MemoryJournal()
      memory.set(id, journal)
      return journal
    },
    find: async id => memory.get(id),
    remove: async id => void memory.delete(id),
    close: async () => undefined
  }
}

/** An engine whose one journal is that of every stream. */
export function journalsOf(journal: Journal): Journals {
  return { open: async () => journal, find: async () => journal, remove: async () => undefined, close: async () => undefined }
}

let epochs = 0

export class MemoryJournal implements Journal {
  epoch = `memory-${++epochs}`
  seq = 0
  /** Without their newlines, up to `seq`. */
  #lines: Buffer[] = []

  get first(): number {
    return this.seq - this.#lines.length + 1
  }

  async append(lines: readonly Uint8Array[]): Promise<void> {
    this.#lines = [...this.#lines, ...lines.map(line => Buffer.from(line).subarray(0, -1))].slice(-replayLimit)
    this.seq += lines.length
  }

  async abandon(seq: number): Promise<void> {
    this.epoch = `memory-${++epochs}`
    await this.skip(seq)
  }

  async skip(seq: number): Promise<void> {
    this.seq = seq
    this.#lines = []
  }

  async *lines(from: number, to: number): AsyncGenerator<readonly Buffer[]> {
    if (from < this.first || to > this.seq) throw new Error('no such lines')
    for (const line of this.#lines.slice(from - this.first, to - this.first + 1)) yield [line]
  }

  async close(): Promise<void> {}
}
