/**
 * What lies in a journal after a cursor: whether it can be served, and the frames from disk to a socket or a reader. A replay is
 * everything durable after the cursor, so a session event that reaches everyone and that a connection has heard live is in it once
 * more; clients drop durable frames up to the last number they applied.
 */
import type { FileHandle } from 'node:fs/promises'
import type { EventSpec } from '../contract.ts'
import type { ClientConnection } from './connection.ts'
import { reachesEveryone, type SubjectRule, subjectOf } from './event-frame.ts'
import { type Journal, replayLimit } from './journal.ts'
import type { JournaledEvent } from './journal-reverse.ts'
import type { Cursor, JournalSlice, ResyncReason } from './types.ts'

export type Decision =
  | { readonly kind: 'current' }
  | { readonly kind: 'resync'; readonly reason: ResyncReason }
  | { readonly kind: 'replay'; readonly from: number; readonly to: number }

/** First match wins (contract 3, Reconnect and recovery). A cursor without epoch skips that check. `current`: last number to serve. */
export function decideReplay(cursor: Cursor, journal: Journal, current: number): Decision {
  if (cursor.epoch !== undefined && cursor.epoch !== journal.epoch) return { kind: 'resync', reason: 'epoch_changed' }
  if (cursor.seq > current) return { kind: 'resync', reason: 'epoch_changed' }
  if (cursor.seq === current) return { kind: 'current' }
  if (current - cursor.seq > replayLimit || cursor.seq + 1 < journal.first) return { kind: 'resync', reason: 'buffer_overflow' }
  return { kind: 'replay', from: cursor.seq + 1, to: current }
}

const groupBytes = 256 * 1024

/**
 * The lines between `offsets` (the last one is the end) without their newlines, group by group. Throws when the file does not have
 * them.
 */
export async function* linesOf(handle: FileHandle, offsets: readonly number[]): AsyncGenerator<Buffer[]> {
  for (let first = 0; first < offsets.length - 1; ) {
    const start = offsets[first]!
    let last = first + 1
    while (last < offsets.length - 1 && offsets[last + 1]! - start <= groupBytes) last++
    const length = offsets[last]! - start
    const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafeSlow(length), 0, length, start)
    if (bytesRead !== length) throw new Error('the journal is shorter than its index')
    yield offsets.slice(first, last).map((offset, i) => buffer.subarray(offset - start, offsets[first + i + 1]! - start - 1))
    first = last
  }
}

/** Is a journaled frame for this connection? The filter and suppression that hold for live ones; undefined when nothing is left out. */
export function keepFor(
  connection: ClientConnection,
  session_id: string,
  rule: SubjectRule | undefined,
  spec: (type: string) => EventSpec | undefined
): ((line: Buffer) => boolean) | undefined {
  if (connection.wantsAll(session_id)) return undefined
  return line => {
    const { type, payload } = JSON.parse(line.toString('utf8')) as JournaledEvent
    const known = spec(type)
    if (known && (known.unfiltered || reachesEveryone(known))) return true
    return connection.wants(session_id, type, subjectOf(payload, {}, rule))
  }
}

/** The events of a journal after a cursor. The file is opened when the events are asked for. */
export function readAfter(journal: Journal, cursor: Cursor): JournalSlice {
  const { epoch, seq } = journal
  const decision = decideReplay(cursor, journal, seq)
  if (decision.kind === 'resync') return { epoch, seq, resync: decision.reason, events: nothing() }
  return { epoch, seq, events: decision.kind === 'current' ? nothing() : eventsOf(journal, decision.from, seq) }
}

async function* nothing(): AsyncGenerator<JournaledEvent> {}

async function* eventsOf(journal: Journal, from: number, to: number): AsyncGenerator<JournaledEvent> {
  const { handle, generation } = await journal.reader()
  try {
    if (generation !== journal.generation || from < journal.first) throw new Error('the journal was shortened meanwhile')
    let seq = from
    for await (const lines of linesOf(handle, journal.offsets(from, to))) {
      for (const line of lines) {
        const event = JSON.parse(line.toString('utf8')) as JournaledEvent
        if (event.seq !== seq++) throw new Error('the journal was replaced meanwhile')
        yield event
      }
    }
  } finally {
    await handle.close()
  }
}
