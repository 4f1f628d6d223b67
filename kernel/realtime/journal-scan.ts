/** Reads a journal file from front to back: header, numbered lines, what is damaged, where a torn tail begins. Never writes. */
import type { FileHandle } from 'node:fs/promises'

/** First line of a journal file. */
export interface JournalHeader {
  readonly kind: 'journal_header'
  readonly version: 1
  readonly epoch: string
  /** Epoch milliseconds. */
  readonly created_at: number
  /** Number of the first event when it is not 1: a journal that took over a running stream. */
  readonly first_seq?: number
}

export interface Scan {
  /** Undefined when the first line is no header of a version we know. */
  readonly header: JournalHeader | undefined
  /** Highest number given out as far as the file tells; 0 without events. */
  readonly seq: number
  /** Byte offsets of the newest unbroken run of lines, oldest first, up to `seq`; empty when the last line is damaged. */
  readonly starts: number[]
  /** End of the last complete line. */
  readonly good: number
  /** Bytes in the file; more than `good` when the tail is torn. */
  readonly size: number
  /** Events in the file. */
  readonly events: number
  /** Lines that are neither the header nor an event with a rising number. */
  readonly damaged: number
}

const chunkBytes = 256 * 1024
const newline = 10

/** Scans chunk by chunk, so that a large journal does not block other work. `keep` bounds the length of `starts`. */
export async function scanJournal(handle: FileHandle, keep: number): Promise<Scan> {
  const state: ScanState = { header: undefined, seq: 0, starts: [], events: 0, damaged: 0, trailing: 0 }
  let position = 0
  let lineStart = 0
  let carry: Buffer[] = []
  for (;;) {
    const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(chunkBytes), 0, chunkBytes, position)
    if (bytesRead === 0) break
    const chunk = buffer.subarray(0, bytesRead)
    let from = 0
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, from)) {
      const part = chunk.subarray(from, end)
      takeLine(state, lineStart, carry.length > 0 ? Buffer.concat([...carry, part]) : part, keep)
      carry = []
      from = end + 1
      lineStart = position + from
    }
    if (from < chunk.length) carry.push(chunk.subarray(from))
    position += bytesRead
  }
  if (state.events === 0 && state.header?.first_seq !== undefined) state.seq = state.header.first_seq - 1
  const { header, starts, events, damaged } = state
  // A damaged last line may be an event that was seen: its number must not be given out again.
  return { header, seq: state.seq + state.trailing, starts, events, damaged, good: lineStart, size: position }
}

interface ScanState {
  header: JournalHeader | undefined
  seq: number
  starts: number[]
  events: number
  damaged: number
  /** Damaged lines since the last good one. */
  trailing: number
}

function takeLine(state: ScanState, start: number, line: Buffer, keep: number): void {
  const value = parse(line)
  if (start === 0) {
    state.header = asHeader(value)
    return
  }
  const seq = eventSeq(value)
  if (seq === undefined || seq <= state.seq) {
    state.damaged++
    state.trailing++
    state.starts = []
    return
  }
  // A hole means that an event is lost: nothing before it may be replayed across it.
  if (seq !== state.seq + 1) state.starts = []
  state.seq = seq
  state.trailing = 0
  state.events++
  state.starts.push(start)
  if (state.starts.length > keep * 2) state.starts = state.starts.slice(-keep)
}

function parse(line: Buffer): unknown {
  try {
    return JSON.parse(line.toString('utf8'))
  } catch {
    return undefined // the caller counts it as damaged
  }
}

function asHeader(value: unknown): JournalHeader | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const header = value as Partial<JournalHeader>
  const known =
    header.kind === 'journal_header' && header.version === 1 && typeof header.epoch === 'string' && /^[\w-]{1,64}$/.test(header.epoch)
  return known ? (value as JournalHeader) : undefined
}

function eventSeq(value: unknown): number | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { seq, type } = value as { seq?: unknown; type?: unknown }
  return typeof type === 'string' && Number.isSafeInteger(seq) ? (seq as number) : undefined
}
