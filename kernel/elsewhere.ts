/** Sessions that another server of the home has: what the pack that knows the ways there offers the kernel, and what the kernel offers it. */
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import type { FrameSpec, RequestInfo } from './contract.ts'
import { AppError, OwnerSilent } from './errors.ts'
import { serviceToken } from './lifecycle/services.ts'
import type { Cursor, ResyncReason, Watermark } from './realtime/journal.ts'
import type { Connection, ConnectionInfo, LocalClient, LocalConnection } from './realtime/types.ts'

/** The way to the server that has a session. */
export interface Way {
  /**
   * Lets that server answer, or whoever has the session by then; undefined: it has come here. `body`: undefined without one. `signal`: nobody
   * waits for the answer any more. Rejects with OwnerSilent.
   */
  relay(request: Omit<RequestInfo, 'stream'>, body: Readable | Buffer | undefined, signal: AbortSignal): Promise<RelayedReply | undefined>
}

/** Knows the other servers of the home. */
export interface Elsewhere {
  /** False: there are none, so that nobody is asked. */
  readonly others: boolean
  /** Undefined: the session is here, or nowhere. */
  way(session_id: string): Promise<Way | undefined>
  /** Makes what a client of this server has of sessions wherever they are. */
  remote(client: RemoteClient, ports: RemotePorts): Remote
}

/** Who asks at this server, told to the other one. */
export type Asker = Pick<RequestInfo, 'principal' | 'remote_address'>

export interface RelayedReply {
  readonly status: number
  readonly headers: OutgoingHttpHeaders
  readonly body: Readable
}

/** A client's end of a connection at another server. */
export type RelayedClient = Required<LocalClient>

/**
 * Another server has taken the session while it was asked for here: a frame, a subscription and a request are passed on to it; to the client
 * of a request with a stream it is OwnerSilent, which says that it may try again.
 */
export class SessionMoved extends AppError {
  constructor() {
    super(OwnerSilent)
  }
}

/**
 * What a server answers another one's request with when the session has moved on and nothing was done: 421, Misdirected Request (RFC 9110,
 * 15.5.20).
 */
export const movedStatus = 421

/** An event that reaches everyone, as its server sent it. */
export interface SharedEvent {
  readonly scope: 'session' | 'global'
  readonly type: string
  readonly session_id: string
  readonly seq: number
  readonly durable: boolean
  /** Of an event that a client gets once: which one it is (`onceKey`). */
  readonly once?: string
  /** The frame as on the wire. */
  readonly frame: Buffer
}

/** A frame of a client as it is passed on. */
export interface RemoteFrame extends Pick<FrameSpec, 'type' | 'subscribes' | 'stands'> {
  readonly payload: unknown
  /** What a binary message has behind its line of JSON. */
  readonly bytes?: Uint8Array | undefined
}

/** Answer to a frame. */
export interface RemoteAck {
  readonly code: number
  readonly msg: string
  readonly payload: unknown
  readonly details?: AppError['details']
}

/** A frame that is answered again where its session has moved to (`FrameSpec.stands`). */
export type StandingFrame = Pick<RemoteFrame, 'type' | 'payload'> & Required<Pick<FrameSpec, 'stands'>>

/** What a subscription asks for; while it is tried elsewhere, what is left of that. */
export interface SubscribeWish {
  /** Subjects to show; empty shows all, undefined keeps the filter of an earlier subscription. */
  filter?: readonly string[] | undefined
  cursor?: Cursor | undefined
  /** The client had asked for more of the session than events, and has lost that: it is told to resync. */
  more?: boolean | undefined
  /** The session has moved: frames of the client that stand are answered first. */
  moved?: boolean | undefined
}

/** Type of a frame from server to server, `{ type, session_id }`: the session has been deleted, and with it the client's subscription. */
export const sessionGone = 'session_gone'

export interface Subscribed {
  /** False when the session is nowhere: nothing was subscribed. */
  readonly found: boolean
  /** The cursor could not be served; a `resync_required` frame was sent. */
  readonly resync: boolean
  /** Where the session's journal was when the subscription was through; always there for a session of another server. */
  readonly mark?: Watermark | undefined
  /** Its server is silent: the subscription begins, and serves the cursor, as soon as anybody has the session. */
  readonly later?: boolean
}

/** What one client of this server has of sessions wherever they are. Its messages from other servers go to the client as they come. */
export interface Remote {
  /** It is subscribed to the session, or will be, at another server. */
  has(session_id: string): boolean
  /** Those. */
  sessions(): string[]
  /** Asks with a frame that is about a session; undefined: the session is here, and so is the answer. Rejects with OwnerSilent. */
  ask(session_id: string, frame: RemoteFrame): Promise<RemoteAck | undefined>
  /** Rejects with OwnerSilent; with `orLater` the session is followed instead, at once when its server is silent. */
  subscribe(session_id: string, wish: SubscribeWish, orLater: boolean): Promise<Subscribed>
  /** At other servers. */
  unsubscribe(session_id: string): Promise<void>
  /** Subscribes as soon as somebody has the session. Who missed something by then is told to resync. */
  follow(session_id: string, wish: SubscribeWish): void
  /** An event that reaches everyone came another way: it is the client's unless a subscription has brought it, or will. */
  offer(event: SharedEvent): void
  close(): void
}

/** The client, as a `Remote` needs it. */
export interface RemoteClient extends Pick<Connection, 'open' | 'writable' | 'principal' | 'drained' | 'subscribed'> {
  info(): Pick<ConnectionInfo, 'remote_address' | 'user_agent'>
  write(bytes: Buffer, binary?: boolean): void
  tell(event: SharedEvent): void
  takes(once: string | undefined): boolean
  shut(code: number, reason: string): void
  standing(session_id: string): readonly StandingFrame[]
  await(session_id: string): void
  giveUp(session_id: string): void
}

/** What else a `Remote` needs of this server. */
export interface RemotePorts {
  /** Name of the field with filters in `subscribe`; undefined: nobody filters. */
  filterField(): string | undefined
  /** See `onceKey`. */
  once(type: string, session_id: string, seq: number): string | undefined
  /** Subscribes to a session of this server. Rejects with SessionMoved. */
  subscribe(session_id: string, wish: SubscribeWish): Promise<Subscribed>
  /** Ends that. */
  leave(session_id: string): void
  /** See `Streams.written`. */
  written(session_id: string): Watermark | undefined
  /** `at` undefined: where this server's journal of the session is. */
  resync(session_id: string, reason: ResyncReason, at: Cursor | undefined): void
}

/** For the pack that knows the other servers of the home; provided by the kernel itself. */
export interface Relays {
  /** Answers a request that another server passes on: everything but gate and credential, which that one has looked at. */
  serve(req: IncomingMessage, res: ServerResponse, asker: Asker): void
  /** Connects a client of another server. What reaches everyone comes to it only for sessions that it subscribed to. */
  connect(client: RelayedClient): Pick<LocalConnection, 'receive' | 'close'>
  /** Requests, frames and subscriptions go there from here on; undefined: nobody knows a way. */
  setElsewhere(elsewhere: Elsewhere | undefined): void
  /** Hears the events of this server that reach everyone. */
  onShared(listener: (event: SharedEvent) => void): () => void
  /** Gives the clients of this server what another one has told its own. */
  deliver(event: SharedEvent): void
}

export const Relays = serviceToken<Relays>('relays', { onShared: 'notify' })

/** So often what met a session that had moved is begun anew. */
const maxMoves = 5

/** Does something where the session is, and anew when it has moved meanwhile. */
export async function whereverItIs<T>(work: () => Promise<T>): Promise<T> {
  for (let moves = 0; ; moves++) {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof SessionMoved) || moves === maxMoves) throw error
    }
  }
}
