/** Sessions that another server of the home has: what a pack that knows the ways there offers the kernel (`hooks.elsewhere`). */
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import type { Principal } from './access/principal.ts'

/** Another server, as requests and connections reach it. */
export interface Place {
  /** Its `server_id`. */
  readonly id: string
  /** Asks it. Rejects with `Unreached` when it cannot have got the request; then the caller looks anew for who has the session. */
  relay(request: RelayedRequest): Promise<RelayedReply>
  /** Connects a client there. Rejects with `Unreached`. */
  connect(client: RelayedClient): Promise<RelayedEnd>
}

/** Who asks at this server, told to the other one. */
export interface Asker {
  readonly principal: Principal
  readonly remote_address: string | null
}

export interface RelayedRequest extends Asker {
  readonly method: string
  /** Path and query as received. */
  readonly target: string
  readonly headers: IncomingHttpHeaders
  /** Unread; undefined without a body. */
  readonly body: Readable | undefined
  readonly request_id: string
  /** Nobody waits for the answer any more. */
  readonly signal: AbortSignal
}

export interface RelayedReply {
  readonly status: number
  readonly headers: OutgoingHttpHeaders
  readonly body: Readable
}

/** A client's end of a connection at another server. */
export interface RelayedClient extends Asker {
  readonly user_agent: string | null
  /** As `LocalClient.message`: a promise holds the next one back. */
  message(data: Buffer, binary: boolean): unknown
  closed(code: number, reason: string): void
}

export interface RelayedEnd {
  send(data: Uint8Array, binary: boolean): void
  close(): void
}

/** The other server was not there, or had gone: it has not got what was to be sent. */
export class Unreached extends Error {
  constructor(cause?: unknown) {
    super('the other server cannot be reached', { cause })
    this.name = 'Unreached'
  }
}

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
