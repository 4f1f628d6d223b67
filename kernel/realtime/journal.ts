/**
 * The records of event streams: what an engine of journals must offer (`journalSuite` of the testing door checks it). A journal holds each
 * durable frame exactly as it was sent, numbered without holes as far back as it can be replayed.
 */

import type { Fence } from '../storage/fences.ts'

/** Events that a cursor may lie behind and still be replayed (ws-protocol `max_event_buffer_size`). An engine keeps at least so many. */
export const replayLimit = 1000

/** A journal as readers see it. */
export interface JournalView {
  /** Changes when numbers are no longer those of before; every old cursor then needs a resync. */
  readonly epoch: string
  /** Highest number on record (or given up); 0 when there is none. */
  readonly seq: number
  /** Lowest number that can be replayed; `seq + 1` when there is nothing. */
  readonly first: number
  /**
   * The lines `from`..`to`, both between `first` and `seq`, without their newlines, oldest first in groups of 256 KiB or one line. Asking
   * for the first group rejects when the record cannot be opened or has lost lines of these; once that has come, the others stay readable
   * whatever happens to the journal.
   */
  lines(from: number, to: number): AsyncIterable<readonly Buffer[]>
}

/** The journal of one stream, written by one caller at a time. */
export interface Journal extends JournalView {
  /**
   * Takes lines (each with its newline) numbered `first` onwards. Resolves when they would survive `kill -9`; when it rejects, nothing of
   * them counts.
   */
  append(lines: readonly Uint8Array[], first: number): Promise<void>
  /**
   * Ends this epoch after a write failure: numbers up to `seq` may have been seen, so they never come again. Never rejects; while nothing
   * can be written the journal lives in memory only.
   */
  abandon(seq: number): Promise<void>
  /** Gives up the numbers up to `seq` without their events: nothing up to there can be replayed. Rejects when that cannot be recorded. */
  skip(seq: number): Promise<void>
  /** The caller has no append running. */
  close(): Promise<void>
}

/** The journals of a home. Ids are session ids (safe file names) and `__global__`, whose events belong to this process alone. */
export interface Journals {
  /**
   * Opens or creates a journal. Never rejects: one that cannot be read or made costs the stream its persistence, not its life (logged;
   * tried again at later appends). Nothing of an existing record is changed before the first append: another process may still own it.
   * `fence`: the lease of its session; once that is lost, appends reject with LeaseLost and nothing of the record changes any more.
   */
  open(id: string, fence?: Fence): Promise<Journal>
  /** A journal as it is on record, whether it is open or not; undefined when there is none. Creates nothing. */
  find(id: string): Promise<JournalView | undefined>
  /** Deletes a journal that nobody has open, with what was quarantined of it. Nothing happens when there is none. */
  remove(id: string): Promise<void>
  /** After all journals are closed. */
  close(): Promise<void>
}

/** A durable event as it was journaled. */
export interface JournaledEvent {
  readonly seq: number
  readonly type: string
  readonly timestamp: string
  /** With the base fields (`type`, `agentId`, `sessionId`). */
  readonly payload: Readonly<Record<string, unknown>>
}

/** Position in a session's journal. */
export interface Watermark {
  readonly seq: number
  readonly epoch: string
}

/** Last durable event that somebody has applied. Without `epoch` the journal's incarnation is not checked. */
export interface Cursor {
  readonly seq: number
  readonly epoch?: string | undefined
}

export type ResyncReason = 'buffer_overflow' | 'session_recreated' | 'epoch_changed'

/** What a journal has after a cursor. */
export interface JournalSlice extends Watermark {
  /** Why the cursor cannot be served; then there are no events: read the state anew and go on from `seq`. */
  readonly resync?: ResyncReason
  /** The events after the cursor up to `seq`, oldest first. Rejects when the file is replaced or damaged meanwhile. */
  readonly events: AsyncIterable<JournaledEvent>
}
