/** Control frames of the kernel: client_hello, subscribe, unsubscribe (contract 3, Control frames), and the system frames it sends. */
import { type TObject, Type } from '@sinclair/typebox'
import { defineFrame, defineOutFrame, type FrameSpec, type OutFrameSpec } from '../contract.ts'
import { CredentialRejected, type Detail, invalid } from '../errors.ts'
import { oneOf } from '../schema.ts'
import type { ClientConnection } from './connection.ts'
import type { SubjectRule } from './event-frame.ts'
import type { Cursor, Watermark } from './journal.ts'
import type { Subscriptions } from './subscriptions.ts'

const Ids = Type.Array(Type.String())
const Mark = Type.Object({ seq: Type.Integer({ minimum: 0 }), epoch: Type.String() })
const Marks = Type.Record(Type.String(), Mark)
const Cursors = Type.Record(Type.String(), Type.Object({ seq: Type.Integer({ minimum: 0 }), epoch: Type.Optional(Type.String()) }), {
  description: 'Last durable event applied, per session'
})
const Filter = Type.Record(Type.String(), Type.Array(Type.String()), { description: 'Whom to show, per session; empty shows all' })

const clientHello = defineFrame({
  type: 'client_hello',
  summary: 'Say hello; resubscribe after a reconnect',
  payload: Type.Object({
    client_id: Type.Optional(Type.String()),
    subscriptions: Type.Optional(Ids),
    cursors: Type.Optional(Cursors),
    token: Type.Optional(Type.String())
  }),
  ack: Type.Object({ accepted_subscriptions: Ids, not_found: Ids, resync_required: Ids, cursors: Marks }),
  errors: [CredentialRejected]
})

const subscribe = defineFrame({
  type: 'subscribe',
  summary: 'Subscribe to session events; with cursors, missed durable events come first',
  payload: Type.Object({ session_ids: Ids, cursors: Type.Optional(Cursors) }),
  ack: Type.Object({ accepted: Ids, not_found: Ids, resync_required: Ids, cursors: Marks })
})

const unsubscribe = defineFrame({
  type: 'unsubscribe',
  summary: 'Drop subscriptions',
  payload: Type.Object({ session_ids: Ids }),
  ack: Type.Object({ accepted: Ids, not_found: Ids, resync_required: Ids })
})

/** Request frames that the kernel itself answers; a subject rule adds its filter to those that subscribe. */
export function coreFrames(rule: SubjectRule | undefined): readonly FrameSpec[] {
  const filtered = (spec: FrameSpec<TObject>): FrameSpec =>
    rule ? { ...spec, payload: Type.Object({ ...spec.payload.properties, [rule.filter]: Type.Optional(Filter) }) } : spec
  return [filtered(clientHello), filtered(subscribe), unsubscribe]
}

const serverHello = defineOutFrame({
  type: 'server_hello',
  summary: 'First frame of every connection',
  payload: Type.Object({
    ws_connection_id: Type.String(),
    protocol_version: Type.Literal(2),
    max_event_buffer_size: Type.Integer(),
    capabilities: Type.Object({ event_batching: Type.Boolean(), compression: Type.Boolean() })
  })
})

const resyncRequired = defineOutFrame({
  type: 'resync_required',
  summary: 'A cursor cannot be served: take the snapshot and subscribe again',
  payload: Type.Object({
    session_id: Type.String(),
    reason: oneOf(['buffer_overflow', 'session_recreated', 'epoch_changed']),
    current_seq: Type.Integer({ minimum: 0 }),
    epoch: Type.Optional(Type.String())
  })
})

/** Frames that the kernel sends beside acks and events; each has a `timestamp` next to its payload. */
export const systemFrames: readonly OutFrameSpec[] = [serverHello, resyncRequired]

/** Answer to a control frame of the kernel. */
export interface CoreReply {
  readonly code?: number
  readonly msg?: string
  readonly payload: object
  /** Close the connection with 1000 after the ack. */
  readonly close?: boolean
}

export interface ControlOptions {
  readonly subscriptions: Subscriptions
  checkToken(token: string): boolean | Promise<boolean>
  subject(): SubjectRule | undefined
}

type Fields = Readonly<Record<string, unknown>>
export type CoreHandler = (payload: Fields, connection: ClientConnection) => Promise<CoreReply>

/** Handlers by frame type. Their parsing is lenient: what is no list counts as empty; only a malformed cursor is refused (40001). */
export function controlHandlers({ subscriptions, checkToken, subject }: ControlOptions): ReadonlyMap<string, CoreHandler> {
  async function subscribeAll(connection: ClientConnection, ids: readonly string[], payload: Fields) {
    const cursors = parseCursors(ids, asFields(payload.cursors))
    const rule = subject()
    const filters = rule ? asFields(payload[rule.filter]) : {}
    const not_found = new Set<string>()
    const resync_required: string[] = []
    // Clients drop numbers below the last one they saw, so no event of these sessions may overtake the replay.
    for (const id of cursors.keys()) connection.await(id)
    try {
      for (const id of new Set(ids)) {
        const wish = { filter: asStrings(filters[id]), cursor: cursors.get(id) }
        const { found, resync } = await subscriptions.subscribe(connection, id, wish)
        if (!found) not_found.add(id)
        if (resync) resync_required.push(id)
        connection.giveUp(id)
      }
    } finally {
      for (const id of cursors.keys()) connection.giveUp(id)
    }
    const accepted = ids.filter(id => !not_found.has(id))
    const marks: Record<string, Watermark> = {}
    for (const id of accepted) {
      const mark = subscriptions.written(id)
      if (mark) marks[id] = mark
    }
    return { accepted, not_found: [...not_found], resync_required, cursors: marks }
  }

  return new Map<string, CoreHandler>([
    [
      clientHello.type,
      async (payload, connection) => {
        if (payload.token !== undefined && !(typeof payload.token === 'string' && (await checkToken(payload.token)))) {
          return { code: CredentialRejected.code, msg: 'token rejected', payload: {}, close: true }
        }
        const { accepted, ...rest } = await subscribeAll(connection, asStrings(payload.subscriptions), payload)
        connection.greeted = true
        return { payload: { accepted_subscriptions: accepted, ...rest } }
      }
    ],
    [subscribe.type, async (payload, connection) => ({ payload: await subscribeAll(connection, asStrings(payload.session_ids), payload) })],
    [
      unsubscribe.type,
      async (payload, connection) => {
        for (const id of asStrings(payload.session_ids)) subscriptions.unsubscribe(connection, id)
        return { payload: { accepted: [], not_found: [], resync_required: [] } }
      }
    ]
  ])
}

function parseCursors(ids: readonly string[], given: Fields): Map<string, Cursor> {
  const cursors = new Map<string, Cursor>()
  const details: Detail[] = []
  for (const id of new Set(ids)) {
    const cursor = Object.hasOwn(given, id) ? given[id] : undefined
    if (cursor === undefined || cursor === null) continue
    const { seq, epoch } = asFields(cursor)
    if (!Number.isSafeInteger(seq) || (seq as number) < 0)
      details.push({ path: `cursors.${id}.seq`, message: 'expected a non-negative integer' })
    else if (epoch !== undefined && typeof epoch !== 'string') details.push({ path: `cursors.${id}.epoch`, message: 'expected a string' })
    else cursors.set(id, { seq: seq as number, epoch })
  }
  if (details.length > 0) throw invalid(details)
  return cursors
}

/** What is no object has no fields. */
export function asFields(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {}
}

function asStrings(value: unknown): string[] {
  return Array.isArray(value) ? value.filter(entry => typeof entry === 'string') : []
}
