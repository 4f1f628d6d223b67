/** Types of the event side: what packs emit and hear, and what a connection offers them. */
import type { Static } from '@sinclair/typebox'
import type { EventScope, EventSpec } from '../contract.ts'
import type { SlotHost } from '../lifecycle/slot.ts'
import type { JournaledEvent } from './journal-reverse.ts'

/** Whom a session event belongs to. */
export interface EventTarget {
  readonly session_id: string
  /** Default `main`. */
  readonly agent_id?: string
  /** Instant of the fact; then `payload.time` (ms) and `timestamp` say the same. Default: stamped at emission, without `time`. */
  readonly time?: Date
  /** Cumulative offset of a text stream in UTF-16 units, put on the frame. */
  readonly offset?: number
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
  readonly agent_id: string
  readonly durable: boolean
  readonly offset?: number | undefined
  readonly at: Date
}

export type Listener<E> = E extends EventSpec<infer P, EventScope> ? (event: EmittedEvent<Static<P>>) => void : never

/** Position in a session's journal. */
export interface Watermark {
  readonly seq: number
  readonly epoch: string
}

/** The journals of this process, seen by packs. */
export interface Streams {
  /** Opens the journal of a session (creating it) so that `watermark` is known. Idempotent. */
  open(session_id: string): Promise<Watermark>
  /** Like `open`, for a journal that another process has written to so far: subscribers are asked to resync when they missed something. */
  takeOver(session_id: string): Promise<Watermark>
  /** Last sequence number given out; undefined while the journal is not open. */
  watermark(session_id: string): Watermark | undefined
  /** Resolves when everything emitted so far is on disk and handed to the sockets. */
  flushed(session_id?: string): Promise<void>
  /** Flushes and closes a journal; subscriptions end silently. */
  close(session_id: string): Promise<void>
  /** Journaled events of a session, newest first, as far back as they can be replayed; those emitted before the call are among them. */
  backwards(session_id: string): AsyncIterable<JournaledEvent>
  /** Connections subscribed to the session. */
  subscribers(session_id: string): number
}

export interface ConnectionInfo {
  readonly id: string
  readonly connected_at: string
  readonly remote_address: string | null
  readonly user_agent: string | null
  readonly has_client_hello: boolean
  readonly subscriptions: string[]
}

/** One WebSocket client, seen by frame handlers. Slots hang on it; it closes when the socket does. */
export interface Connection extends SlotHost {
  readonly id: string
  info(): ConnectionInfo
  /** Sends a frame at once, after everything already queued for this connection. */
  send(frame: object): void
  /** Subscribes to a session's events as `subscribe` does; false when the session is missing. Keeps an existing filter when `filter` is undefined. */
  subscribe(session_id: string, filter?: readonly string[]): Promise<boolean>
  subscribed(session_id: string): boolean
  /**
   * Hides events of a session on this connection while `hide(type, agent_id)` is true, live and in replay. One rule per owner;
   * undefined removes it. Global and unfiltered events are never hidden.
   */
  suppress(session_id: string, owner: string, hide: ((type: string, agent_id: string) => boolean) | undefined): void
}
