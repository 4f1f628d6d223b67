/** Types of the event side: what packs emit and hear, what a connection offers them, and its other end within this process. */
import type { Static } from '@sinclair/typebox'
import type { Principal } from '../access/principal.ts'
import type { EventScope, EventSpec } from '../contract.ts'
import type { SlotHost } from '../lifecycle/slot.ts'
import type { Fence } from '../storage/fences.ts'
import type { Cursor, JournaledEvent, JournalSlice, Watermark } from './journal.ts'

/** Whom a session event belongs to. */
export interface EventTarget {
  readonly session_id: string
  /** Whom it is about within the session; default: the fallback of the subject rule. */
  readonly subject?: string
  /** Instant of the fact; then `payload.time` (ms) and `timestamp` say the same. Default: stamped at emission, without `time`. */
  readonly time?: Date
  /** Cumulative offset of a text stream (an event with `offset`) in UTF-16 units, put on the frame. */
  readonly offset?: number
  /** Only this client gets it, in order with what it gets else, if it is subscribed; listeners do not. Of volatile events only. */
  readonly only?: Connection
}

/** Emits synchronously: listeners run now, sequence number and disk follow in order, sockets see it only after the disk. */
export type Emit<E> =
  E extends EventSpec<infer P, infer S>
    ? S extends 'global'
      ? (payload: Static<P>) => void
      : (payload: Static<P>, target: string | EventTarget) => void
    : never

/** An event as in-process listeners see it. `payload` is what the owner passed, without base fields. */
export interface EmittedEvent<P = unknown> {
  readonly type: string
  readonly payload: P
  /** `__global__` for global events. */
  readonly session_id: string
  /** Whom it is about; empty when nobody says so. */
  readonly subject: string
  readonly durable: boolean
  readonly offset?: number | undefined
  readonly at: Date
}

export type Listener<E> = E extends EventSpec<infer P, EventScope> ? (event: EmittedEvent<Static<P>>) => void : never

/** The journals of this process, seen by packs. */
export interface Streams {
  /** Opens the journal of a session (creating it) so that `watermark` is known; `close` ends that. Idempotent. */
  open(session_id: string): Promise<Watermark>
  /** Like `open`, for a session that another process has: its journal is only read here, and what is said of it here goes nowhere. */
  openForeign(session_id: string): Promise<Watermark>
  /**
   * Like `open`, for a journal that another process may have written to so far: whoever subscribed before is asked to resync. `fence`: it
   * is written under this lease.
   */
  takeOver(session_id: string, fence?: Fence): Promise<Watermark>
  /**
   * The lease with which the session was opened (`fence`) was lost: subscribers are asked to resync and go on at the server that has it
   * now. The caller closes the session.
   */
  lost(session_id: string): Promise<void>
  /** Last sequence number given out; undefined while the journal is not open. */
  watermark(session_id: string): Watermark | undefined
  /** Last sequence number that is on disk and was handed to the sockets; undefined while the journal is not open. */
  written(session_id: string): Watermark | undefined
  /**
   * Resolves when everything emitted so far is on disk and handed to the sockets. Who tells clients a state calls this in the tick in which
   * it reads the state, and answers afterwards.
   */
  flushed(session_id?: string): Promise<void>
  /**
   * Flushes and closes a journal. Subscriptions stay, for when it is opened anew. An event that comes later opens it only until it is
   * written.
   */
  close(session_id: string): Promise<void>
  /**
   * As `close`, ends the subscriptions and deletes the journal: for a session whose data goes. Later events of it reach listeners only,
   * until it is opened again.
   */
  remove(session_id: string): Promise<void>
  /**
   * Journaled events after a cursor, under the rules of a replay (at most the newest 1000); those emitted before the call are among
   * them. Also of a session that is not open. Undefined when there is no journal; nothing is created.
   */
  read(session_id: string, after: Cursor): Promise<JournalSlice | undefined>
  /** Journaled events, newest first, as far back as they can be replayed; those emitted before the call are among them. Creates nothing. */
  backwards(session_id: string): AsyncIterable<JournaledEvent>
  /** Connections subscribed to the session. */
  subscribers(session_id: string): number
  /** Sessions with subscribers, open or not. */
  followed(): readonly string[]
  /** Asks whoever follows an open session to take it anew: what they had of it beside events is no more. */
  resync(session_id: string): void
}

export interface ConnectionInfo {
  readonly id: string
  readonly connected_at: string
  readonly remote_address: string | null
  readonly user_agent: string | null
  readonly has_client_hello: boolean
  readonly subscriptions: string[]
}

/** A journal of events that is open in this process. */
export interface StreamFacts {
  /** `__global__` for that of the server. */
  readonly session_id: string
  /** Number given out last, its epoch, and the number that is on disk and was handed over; undefined until the file is open. */
  readonly position: { readonly epoch: string; readonly seq: number; readonly written: number } | undefined
  /** Somebody opened it and will close it; others go when they are idle. */
  readonly kept: boolean
  /** Connections that get its events. */
  readonly subscribers: number
}

export interface SendOptions {
  /** Makes it a binary message: the frame as one line of JSON, a newline, and these bytes. */
  readonly bytes?: Uint8Array
}

/** One client, seen by frame handlers. Slots hang on it; it closes when the socket (or the other end in this process) does. */
export interface Connection extends SlotHost {
  readonly id: string
  /** Who connected, as the gate found it. */
  readonly principal: Principal
  info(): ConnectionInfo
  /** False: it is over, or about to be. */
  readonly open: boolean
  /** Sends a frame at once. A client that leaves more unsent than its budget is closed with 1013. */
  send(frame: object, options?: SendOptions): void
  /** False while the client has not taken what was sent: who sends much waits for `drained`. */
  readonly writable: boolean
  /** Resolves when the connection is writable, or over. */
  drained(): Promise<void>
  /** Subscribes to a session's events as `subscribe` does, with the filter that it has of them; false when the session is missing. */
  subscribe(session_id: string): Promise<boolean>
  subscribed(session_id: string): boolean
  /**
   * Hides events of a session on this connection while `hide(type, subject)` is true, live and in replay, until the returned undo or
   * the end of the subscription. One rule per pack, named by `pack`; a rule that throws hides nothing. Global and unfiltered events
   * are never hidden.
   */
  suppress(session_id: string, pack: string, hide: (type: string, subject: string) => boolean): () => void
}

/** The client's end of a connection in this process. */
export interface LocalClient {
  /**
   * Takes one message as a socket would get it, in order, after the call that sent it. A promise holds the next one back, so that a
   * slow client is treated like a slow socket. A failure closes the connection with 1011.
   */
  message(data: Buffer, binary: boolean): unknown
  /** The connection is over. */
  closed?(code: number, reason: string): void
  /** Default: code of this process, with every scope. */
  readonly principal?: Principal
  /** Shown in the list of connections; default null. */
  readonly user_agent?: string | null
  readonly remote_address?: string | null
}

/** What the client gets for its end. */
export interface LocalConnection {
  readonly id: string
  /** Sends a frame, with `bytes` as a binary message. Resolves when the server takes more. */
  send(frame: object, bytes?: Uint8Array): Promise<void>
  /** The same for a message as a socket would bring it. */
  receive(data: Buffer, binary: boolean): Promise<void>
  /** Ends the connection; `closed` is called before this returns. */
  close(): void
}
