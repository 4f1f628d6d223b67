/** Control frames of the kernel: client_hello, subscribe, unsubscribe (contract 3, Control frames), and the system frames it sends. */
import { defineFrame, defineOutFrame, type FrameSpec, type OutFrameSpec } from '../contract.ts'
import type { StandingFrame } from '../elsewhere.ts'
import { AppError, CredentialRejected } from '../errors.ts'
import { named, oneOf, type TObject, Type } from '../shapes.ts'
import type { ClientConnection } from './connection.ts'
import type { SubjectRule } from './event-frame.ts'
import type { Cursor, Watermark } from './journal.ts'
import type { Realtime, Subscriptions } from './subscriptions.ts'

const Ids = Type.Array(Type.String())
const Mark = named('Watermark', Type.Object({ seq: Type.Integer({ minimum: 0 }), epoch: Type.String() }))
const Marks = Type.Record(Type.String(), Mark)
const Cursors = Type.Record(
  Type.String(),
  named(
    'Cursor',
    Type.Object({ seq: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }), epoch: Type.Optional(Type.String()) })
  ),
  { description: 'Last durable event applied, per session' }
)
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

const plainFrames: readonly FrameSpec[] = [clientHello, subscribe, unsubscribe]
const filteredFrames = new WeakMap<SubjectRule, readonly FrameSpec[]>()

/** Request frames that the kernel itself answers; a subject rule adds its filter to those that subscribe. The same rule has the same specs. */
export function coreFrames(rule: SubjectRule | undefined): readonly FrameSpec[] {
  if (!rule) return plainFrames
  const known = filteredFrames.get(rule)
  if (known) return known
  const filtered = (spec: FrameSpec<TObject>): FrameSpec => ({
    ...spec,
    payload: Type.Object({ ...spec.payload.properties, [rule.filter]: Type.Optional(Filter) })
  })
  const frames = [filtered(clientHello), filtered(subscribe), unsubscribe]
  filteredFrames.set(rule, frames)
  return frames
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

type Fields = Readonly<Record<string, unknown>>
/** Answers the payload of the ack. `standing`: frames that are answered again before a subscription begins. */
type CoreHandler = (payload: Fields, connection: ClientConnection, standing: readonly StandingFrame[]) => Promise<object>

export type ControlFrames = ReturnType<typeof controlFrames>

/** The frames that the kernel itself answers. */
export function controlFrames(subscriptions: Subscriptions, { gate, subject }: Realtime) {
  async function subscribeAll(
    connection: ClientConnection,
    ids: readonly string[],
    payload: Fields,
    standing: readonly StandingFrame[] = []
  ) {
    const cursors = cursorsOf(ids, asFields(payload.cursors))
    const rule = subject()
    const filters = rule ? asFields(payload[rule.filter]) : {}
    const not_found = new Set<string>()
    const resync_required: string[] = []
    const later = new Set<string>()
    const marks: Record<string, Watermark> = {}
    for (const id of new Set(ids)) {
      const wish = { filter: asStrings(Object.hasOwn(filters, id) ? filters[id] : undefined), cursor: cursors.get(id) }
      const subscribed =
        standing.length > 0
          ? await subscriptions.subscribeMoved(connection, id, wish, standing)
          : await subscriptions.subscribe(connection, id, wish, true)
      if (subscribed.mark) marks[id] = subscribed.mark
      if (!subscribed.found) not_found.add(id)
      if (subscribed.resync) resync_required.push(id)
      if (subscribed.later) later.add(id)
    }
    const accepted = ids.filter(id => !not_found.has(id))
    for (const id of accepted) {
      if (later.has(id)) continue
      const mark = marks[id] ?? subscriptions.written(id)
      if (mark) marks[id] = mark
    }
    return { accepted, not_found: [...not_found], resync_required, cursors: marks }
  }

  // Clients drop numbers below the last one they saw, so no event of these sessions may overtake the replay.
  function arrived(given: unknown, connection: ClientConnection): () => void {
    const payload = asFields(given)
    const ids = [...cursorsOf(asStrings(payload.subscriptions ?? payload.session_ids), asFields(payload.cursors)).keys()]
    for (const id of ids) connection.await(id)
    return () => {
      for (const id of ids) connection.giveUp(id)
    }
  }

  const answers: Readonly<Record<string, CoreHandler>> = {
    [clientHello.type]: async (payload, connection) => {
      if (typeof payload.token === 'string' && !(await gate.checkToken(payload.token))) {
        throw new AppError(CredentialRejected, { message: 'token rejected' })
      }
      const { accepted, not_found, resync_required, cursors } = await subscribeAll(connection, asStrings(payload.subscriptions), payload)
      connection.greeted = true
      // Earlier clients look for what is not there among what they have to ask for.
      return { accepted_subscriptions: accepted, not_found, resync_required: [...resync_required, ...not_found], cursors }
    },
    [subscribe.type]: (payload, connection, standing) => subscribeAll(connection, asStrings(payload.session_ids), payload, standing),
    [unsubscribe.type]: async (payload, connection) => {
      for (const id of asStrings(payload.session_ids)) await subscriptions.unsubscribe(connection, id)
      return { accepted: [], not_found: [], resync_required: [] }
    }
  }
  return {
    /** As it is now; the payload is checked against it. Undefined: the frame is not the kernel's. */
    spec: (type: string) => coreFrames(subject()).find(spec => spec.type === type),
    answer: ({ type }: FrameSpec, ...input: Parameters<CoreHandler>) => answers[type]!(...input),
    /**
     * The frame came, with a payload that nobody has checked; it may wait for its turn. What this answers is called when the frame was
     * answered, or refused.
     */
    arrived
  }
}

function cursorsOf(ids: readonly string[], given: Fields): Map<string, Cursor> {
  return new Map(ids.filter(id => Object.hasOwn(given, id)).map(id => [id, given[id] as Cursor]))
}

/** What is no object has no fields. */
function asFields(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {}
}

function asStrings(value: unknown): string[] {
  return Array.isArray(value) ? value.filter(entry => typeof entry === 'string') : []
}
