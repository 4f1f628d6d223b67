/** Declarations of the wire: routes, events, frames and stores as pure data. One declaration drives validation, types and documents. */
import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import type { Static, TObject, TProperties, TSchema } from '@sinclair/typebox'
import type { Principal } from './access/principal.ts'
import type { ErrorSpec } from './errors.ts'

type MaybeObject = TObject | undefined
type MaybeSchema = TSchema | undefined
export type StaticOr<S, Fallback> = S extends TSchema ? Static<S> : Fallback

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

export interface RouteSpec<
  P extends MaybeObject = MaybeObject,
  Q extends MaybeObject = MaybeObject,
  B extends MaybeSchema = MaybeSchema,
  D extends TSchema = TSchema
> {
  readonly method: Method
  /**
   * Path template. `{x}` fills one segment, `{x}:action` is an action tail (split at the last colon of the decoded segment),
   * `{+x}` takes the rest of the path (RFC 6570 §3.2.3) and may carry an action: `/fs/{+path}:download`.
   */
  readonly path: string
  readonly summary: string
  readonly description?: string
  /**
   * Name in the OpenAPI document, that of a method in generated clients; camelCase, unique. Default: made of method and path
   * (`listSessionMessages`).
   */
  readonly operationId?: string
  /** Values arrive as decoded strings and are coerced to the schema (integers and booleans strictly). */
  readonly params?: P
  readonly query?: Q
  /**
   * JSON body. Unknown keys are stripped unless the object schema says `additionalProperties: false`.
   * A missing body is `undefined`: wrap in `Type.Optional(...)` to accept it.
   */
  readonly body?: B
  /** `late`: the body is held against its schema when the handler reads it first, so that what the handler throws before (an unknown id) wins. */
  readonly bodyCheck?: 'late'
  /** Shape of the envelope's `data` on success. For `binary` replies: ignored. */
  readonly data: D
  /** Failures this route answers beside the general ones. */
  readonly errors?: readonly ErrorSpec[]
  /** HTTP status of success; default 200. 204 sends no body. */
  readonly status?: number
  /** Envelope code of success; default 0 (contract 1, Errors rule 3). */
  readonly successCode?: number
  /** `none` exempts the route from authentication. Default `token`. */
  readonly auth?: 'token' | 'none'
  /** Scope that the principal must have; default `api`. Not checked on routes without authentication. Answers 40302. */
  readonly scope?: string
  /**
   * Request body limit in bytes, streamed ones included; default: the kernel's `bodyLimitBytes` (1 MiB), for `bodyType: 'stream'` none.
   * Answers 40001.
   */
  readonly bodyLimit?: number
  /** `stream`: the body is not read; the handler gets it as `request.stream` (uploads). Default `json`. */
  readonly bodyType?: 'json' | 'stream'
  /** The reply is a byte stream (`binary(...)`), with these media types and HTTP statuses in the documents. */
  readonly binary?: { readonly types: readonly string[]; readonly statuses?: readonly number[] }
  /**
   * Answers only as long as no other route fits the path, and clashes with none: a page in place of one that a pack may bring. Not in the
   * documents.
   */
  readonly fallback?: boolean
}

export type AnyRoute = RouteSpec<MaybeObject, MaybeObject, MaybeSchema, TSchema>
// Of one property each: TypeScript 5 gives up on comparing the whole spec when a schema is a Pick or the like.
export type ParamsOf<R> = R extends { readonly params?: infer P } ? StaticOr<P, Record<string, never>> : never
export type QueryOf<R> = R extends { readonly query?: infer Q } ? StaticOr<Q, Record<string, never>> : never
export type BodyOf<R> = R extends { readonly body?: infer B } ? StaticOr<B, undefined> : never
export type DataOf<R> = R extends { readonly data: infer D extends TSchema } ? Static<D> : never

/** Declares a route; bind it with `ctx.route(spec, handler)`. */
export function defineRoute<
  D extends TSchema,
  P extends MaybeObject = undefined,
  Q extends MaybeObject = undefined,
  B extends MaybeSchema = undefined
>(spec: RouteSpec<P, Q, B, D>): RouteSpec<P, Q, B, D> {
  return spec
}

/** A request as its handler and hooks see it. */
export interface RequestInfo {
  /** ULID; the envelope's `request_id`. */
  readonly id: string
  readonly method: string
  /** Target as received (path and query); of an injected request its path with the values in it. */
  readonly url: string
  /** `authorization` is masked. */
  readonly headers: IncomingHttpHeaders
  /** Null for requests from inside the process. */
  readonly remote_address: string | null
  /** Who asks, as the gate found it. */
  readonly principal: Principal
  /** Body bytes of routes with `bodyType: 'stream'`. */
  readonly stream: Readable
}

export type EventScope = 'session' | 'global'

export interface EventSpec<P extends TSchema = TSchema, S extends EventScope = EventScope> {
  readonly type: string
  /** Whose `seq` it takes: the session's journal, or the global one (envelope `session_id` is `__global__`). */
  readonly scope: S
  /** Durable events take a sequence number, are journaled and replayed; volatile ones are neither. */
  readonly durable: boolean
  /** Fields beside the base fields, which the kernel adds: `type`, `sessionId`, and the field of the subject rule. */
  readonly payload: P
  readonly summary?: string
  /** `everyone`: a session event that reaches every connection, unfiltered. Default: subscribers; global events always reach everyone. */
  readonly deliver?: 'everyone'
  /**
   * True: a connection that was sent it gets it in no replay, whatever cursor it subscribes with. For durable facts that every answer about
   * the session holds, so that nobody can miss them; of other events a replay is everything after the cursor.
   */
  readonly once?: boolean
  /**
   * True, or where this field of the payload is true: what clients made of the events before is not what the session is any more. Who is
   * sent it, live or in a replay, is told `resync_required` behind it.
   */
  readonly resync?: boolean | string
  /** True: every server of the home tells it by itself, so that none passes it on. */
  readonly perServer?: boolean
  /** True: a subscriber's filter by subject does not apply. */
  readonly unfiltered?: boolean
  /** True: its frames carry the `offset` of a volatile text stream (`EventTarget.offset`). Who streams fast groups what it emits. */
  readonly offset?: boolean
}

/** Declares an event. Only its owner emits it: `const emit = ctx.event(spec)`; others listen with `ctx.on(spec, fn)`. */
export function defineEvent<P extends TSchema, const S extends EventScope>(spec: EventSpec<P, S>): EventSpec<P, S> {
  return spec
}

export interface FrameSpec<P extends TSchema = TSchema, A extends TSchema = TSchema> {
  readonly type: string
  readonly summary?: string
  readonly payload: P
  /** Shape of the ack's payload on success. */
  readonly ack: A
  /** Scope that the connection's principal must have; default `api`. Answers 40302. */
  readonly scope?: string
  readonly errors?: readonly ErrorSpec[]
  /** Answers a payload that misses its shape, with the message `invalid <type> payload`; default 40001. Both with its details. */
  readonly invalid?: ErrorSpec
  /** The frame may bring bytes: a binary message that holds the frame as one line of JSON, a newline, and the bytes. */
  readonly binary?: boolean
  /** Its handler subscribes the connection to the session; the ack says so as that of `subscribe` does (`accepted`, `cursors`). */
  readonly subscribes?: boolean
  /**
   * Answered by the server that the client is connected to, also when another one has the session that its payload names: what it asks for
   * belongs to the connection.
   */
  readonly here?: boolean
  /**
   * What it set up for the session is set up again when another server takes the session over: the frame is answered there once more, before
   * the events that the client missed. `anew`: in place of what such frames had set up before; `more`: behind that.
   */
  readonly stands?: 'anew' | 'more'
}

/** Declares a WebSocket request frame; bind it with `ctx.frame(spec, handler)`, the handler returns the ack payload. */
export function defineFrame<P extends TSchema, A extends TSchema>(spec: FrameSpec<P, A>): FrameSpec<P, A> {
  return spec
}

/** A frame the server sends outside the event scheme (terminal_output, transcript.ops); listed in the documents. */
export interface OutFrameSpec<P extends TSchema = TSchema> {
  readonly type: string
  readonly summary?: string
  readonly payload: P
  /** What the frame has beside `type`, `timestamp` and `payload`. */
  readonly fields?: TProperties
  /** Sent with bytes (`connection.send(frame, { bytes })`): one line of JSON, a newline, and the bytes, as a binary message. */
  readonly binary?: boolean
}

export function defineOutFrame<P extends TSchema>(spec: OutFrameSpec<P>): OutFrameSpec<P> {
  return spec
}

export type StoreKind = 'kv' | 'document' | 'log' | 'blob'

export interface StoreSpec<V extends TSchema = TSchema, K extends StoreKind = StoreKind> {
  /** Unique within the pack; part of the place on disk. */
  readonly name: string
  readonly value: V
  /**
   * Access pattern. `kv` (default): many small records, ordered keys. `document`: one JSON file per id, replaced atomically.
   * `log`: append-only records per id. `blob`: files of bytes.
   */
  readonly kind?: K
  /** Shape version of stored values; default 1. */
  readonly version?: number
  /** Brings a value of an older version up to date. */
  readonly migrate?: (value: unknown, from: number) => unknown
  /** Of documents: a damaged one stays where it is, and whoever asks for it gets 50003. Default: it is moved aside, and counts as absent. */
  readonly keepDamaged?: boolean
}

/** Declares persistence; open it with `ctx.store(spec)` (the pack's own place) or `host.store(spec)` (a session's or agent's). */
export function defineStore<V extends TSchema, const K extends StoreKind = 'kv'>(spec: StoreSpec<V, K>): StoreSpec<V, K> {
  return spec
}
