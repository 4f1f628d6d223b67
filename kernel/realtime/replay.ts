/**
 * Subscribing with a cursor: what can be served, and the missed frames from disk to the socket. A replay is everything durable
 * after the cursor, so a session event that reaches everyone and that this connection has heard live is in it once more;
 * clients drop durable frames up to the last number they applied.
 */
import type { FileHandle } from 'node:fs/promises'
import type { EventSpec } from '../contract.ts'
import type { ClientConnection } from './connection.ts'
import { reachesEveryone } from './event-frame.ts'
import { type Journal, replayLimit } from './journal.ts'
import type { Stream } from './stream.ts'

/** Last durable event a client has applied. */
export interface Cursor {
  readonly seq: number
  readonly epoch?: string | undefined
}

export type ResyncReason = 'buffer_overflow' | 'session_recreated' | 'epoch_changed'

export type Decision =
  | { readonly kind: 'current' }
  | { readonly kind: 'resync'; readonly reason: ResyncReason }
  | { readonly kind: 'replay'; readonly from: number; readonly to: number }

/** First match wins (contract 3, Reconnect and recovery). A cursor without epoch skips that check. */
export function decideReplay(cursor: Cursor, stream: Stream, journal: Journal): Decision {
  const current = stream.delivered
  if (cursor.epoch !== undefined && cursor.epoch !== journal.epoch) return { kind: 'resync', reason: 'epoch_changed' }
  if (cursor.seq > current) return { kind: 'resync', reason: 'epoch_changed' }
  if (cursor.seq === current) return { kind: 'current' }
  if (current - cursor.seq > replayLimit || cursor.seq + 1 < journal.first) return { kind: 'resync', reason: 'buffer_overflow' }
  return { kind: 'replay', from: cursor.seq + 1, to: current }
}

const groupBytes = 256 * 1024

/** Is a journaled frame for this connection? */
export type Keep = (line: Buffer) => boolean

/**
 * Sends the lines between `offsets` (the last one is the end), group by group, each when the socket took the one before.
 * Rejects when the file does not have them.
 */
export async function sendLines(connection: ClientConnection, handle: FileHandle, offsets: readonly number[], keep: Keep | undefined) {
  for (let first = 0; first < offsets.length - 1 && connection.open; ) {
    const start = offsets[first]!
    let last = first + 1
    while (last < offsets.length - 1 && offsets[last + 1]! - start <= groupBytes) last++
    const length = offsets[last]! - start
    const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafeSlow(length), 0, length, start)
    if (bytesRead !== length) throw new Error('the journal is shorter than its index')
    const lines: Buffer[] = []
    for (let i = first; i < last; i++) {
      const line = buffer.subarray(offsets[i]! - start, offsets[i + 1]! - start - 1)
      if (!keep || keep(line)) lines.push(line)
    }
    await connection.outbox.pass(lines)
    first = last
  }
}

/** The filter and suppression of a connection, applied to journaled frames as to live ones; undefined when nothing is left out. */
export function keepFor(connection: ClientConnection, session_id: string, spec: (type: string) => EventSpec | undefined): Keep | undefined {
  if (connection.wantsAll(session_id)) return undefined
  return line => {
    const { type, payload } = JSON.parse(line.toString('utf8')) as { type: string; payload?: { agentId?: unknown } }
    const known = spec(type)
    if (known && (known.unfiltered || reachesEveryone(known))) return true
    return connection.wants(session_id, type, typeof payload?.agentId === 'string' ? payload.agentId : 'main')
  }
}
