/**
 * What lies in a journal after a cursor: whether it can be served, and the frames from disk to a socket or a reader. A replay is
 * everything durable after the cursor, so a session event that reaches everyone and that a connection has heard live is in it once
 * more; clients drop durable frames up to the last number they applied.
 */
import type { EventSpec } from '../contract.ts'
import { AppError, PersistenceFailed } from '../errors.ts'
import type { ClientConnection } from './connection.ts'
import { reachesEveryone, type SubjectRule, subjectOf } from './event-frame.ts'
import { type JournaledEvent, type JournalView, replayLimit } from './journal.ts'
import type { Cursor, JournalSlice, ResyncReason } from './types.ts'

export type Decision =
  | { readonly kind: 'current' }
  | { readonly kind: 'resync'; readonly reason: ResyncReason }
  | { readonly kind: 'replay'; readonly from: number; readonly to: number }

/** First match wins (contract 3, Reconnect and recovery). A cursor without epoch skips that check. `current`: last number to serve. */
export function decideReplay(cursor: Cursor, journal: JournalView, current: number): Decision {
  if (cursor.epoch !== undefined && cursor.epoch !== journal.epoch) return { kind: 'resync', reason: 'epoch_changed' }
  if (cursor.seq > current) return { kind: 'resync', reason: 'epoch_changed' }
  if (cursor.seq === current) return { kind: 'current' }
  if (current - cursor.seq > replayLimit || cursor.seq + 1 < journal.first) return { kind: 'resync', reason: 'buffer_overflow' }
  return { kind: 'replay', from: cursor.seq + 1, to: current }
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
export function readAfter(journal: JournalView, cursor: Cursor): JournalSlice {
  const { epoch, seq } = journal
  const decision = decideReplay(cursor, journal, seq)
  if (decision.kind === 'resync') return { epoch, seq, resync: decision.reason, events: nothing() }
  return { epoch, seq, events: decision.kind === 'current' ? nothing() : eventsOf(journal, decision.from, seq) }
}

async function* nothing(): AsyncGenerator<JournaledEvent> {}

async function* eventsOf(journal: JournalView, from: number, to: number): AsyncGenerator<JournaledEvent> {
  const reader = await journal.reader()
  try {
    let seq = from
    for await (const lines of reader.lines(from, to)) {
      for (const line of lines) {
        const event = JSON.parse(line.toString('utf8')) as JournaledEvent
        if (event.seq !== seq++) throw new AppError(PersistenceFailed, { message: 'the journal was replaced meanwhile' })
        yield event
      }
    }
  } finally {
    await reader.close()
  }
}
