/** Reads the replayable part of a journal from its newest event backwards, for packs that compare their state with what was told. */
import type { Journal } from './journal.ts'

/** A durable event as it was journaled. */
export interface JournaledEvent {
  readonly seq: number
  readonly type: string
  readonly timestamp: string
  /** With the base fields (`type`, `agentId`, `sessionId`). */
  readonly payload: Readonly<Record<string, unknown>>
}

const pageLines = 64

/** Newest first, one page in memory. Ends early (and does not throw) where the file was replaced meanwhile. */
export async function* readBackwards(journal: Journal): AsyncGenerator<JournaledEvent> {
  if (journal.first > journal.seq) return
  const { handle, generation } = await journal.reader()
  try {
    for (let to = journal.seq; to >= journal.first && generation === journal.generation; to -= pageLines) {
      const from = Math.max(journal.first, to - pageLines + 1)
      const offsets = journal.offsets(from, to)
      const start = offsets[0] ?? 0
      const length = (offsets.at(-1) ?? 0) - start
      const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(length), 0, length, start)
      if (bytesRead !== length) return
      for (let at = offsets.length - 2; at >= 0; at--) {
        const line = buffer.subarray((offsets[at] ?? 0) - start, (offsets[at + 1] ?? 0) - start)
        yield JSON.parse(line.toString('utf8')) as JournaledEvent
      }
    }
  } finally {
    await handle.close()
  }
}
