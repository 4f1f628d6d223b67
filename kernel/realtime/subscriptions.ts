/**
 * Subscribing connections to sessions: loading the session, serving the cursor, going live without gap or repetition. A replay is
 * everything durable after the cursor, also a session event that reaches everyone and that a connection has heard live: the snapshot that
 * the cursor is of may be older. Only what comes once (`EventSpec.once`) is left out when the connection was sent it. Reading a journal after a
 * cursor goes by the same rules.
 */
import type { Gate } from '../access/gate.ts'
import type { EventSpec } from '../contract.ts'
import {
  type Remote,
  type RemoteAck,
  type RemoteFrame,
  SessionMoved,
  type StandingFrame,
  type Subscribed,
  type SubscribeWish,
  whereverItIs
} from '../elsewhere.ts'
import type { Environment } from '../environment.ts'
import { AppError, PackAway } from '../errors.ts'
import type { KernelHooks } from '../lifecycle/hooks.ts'
import { yieldToLoop } from '../lifecycle/wait.ts'
import { unsaved } from '../storage/refusals.ts'
import type { ClientConnection } from './connection.ts'
import { asksResync, frameType, onceKey, reachesEveryone, resyncFrame, type SubjectRule, subjectOf } from './event-frame.ts'
import {
  type Cursor,
  type Journal,
  type JournaledEvent,
  type JournalSlice,
  type JournalView,
  type ResyncReason,
  replayLimit,
  type Watermark
} from './journal.ts'
import { isStreamId, type Stream, type StreamTable } from './stream.ts'

/** What connections and subscriptions of one hub share. */
export interface Realtime {
  readonly gate: Gate
  readonly hooks: KernelHooks
  readonly table: StreamTable
  /** Of an event that may be in a journal; undefined: nobody here knows the type. */
  readonly spec: (type: string) => EventSpec | undefined
  readonly subject: () => SubjectRule | undefined
}

export class Subscriptions {
  readonly #env: Environment
  readonly #realtime: Realtime
  readonly #hasOthers: () => boolean
  /** Answers a frame that stands once more. */
  standing: (connection: ClientConnection, frame: StandingFrame) => Promise<boolean> = () => Promise.resolve(false)

  /** `hasOthers`: see `Elsewhere.others`. */
  constructor(env: Environment, realtime: Realtime, hasOthers: () => boolean) {
    this.#env = env
    this.#realtime = realtime
    this.#hasOthers = hasOthers
  }

  /**
   * Resolves when everything the cursor asked for was sent and the connection is live, wherever the session is. Rejects with OwnerSilent;
   * `orLater`: see `Remote.subscribe`.
   */
  async subscribe(connection: ClientConnection, session_id: string, wish: SubscribeWish, orLater = false): Promise<Subscribed> {
    if (!isStreamId(session_id)) return { found: false, resync: false }
    // A frame that stands subscribes: its events come with the replay.
    if (connection.isMoving(session_id)) return { found: await this.#attach(session_id), resync: false }
    const remote = this.#remote(connection)
    if (remote) return await remote.subscribe(session_id, wish, orLater)
    return await whereverItIs(() => this.subscribeHere(connection, session_id, wish))
  }

  /** What it has at other servers, when there are some. */
  #remote(connection: ClientConnection): Remote | undefined {
    return connection.remote(this.#hasOthers())
  }

  /** See `Remote.ask`. */
  async ask(connection: ClientConnection, session_id: string, frame: RemoteFrame): Promise<RemoteAck | undefined> {
    return await this.#remote(connection)?.ask(session_id, frame)
  }

  /** As `subscribe`, at this server. Rejects with SessionMoved. */
  async subscribeHere(connection: ClientConnection, session_id: string, wish: SubscribeWish): Promise<Subscribed> {
    if (!(await this.#attach(session_id))) return { found: false, resync: false }
    return await this.#realtime.table.using(session_id, async (stream, journal) => {
      // What was emitted before may be part of the cursor's snapshot already, so it counts as past.
      await stream.settled()
      if (stream.lost) throw new SessionMoved()
      if (!connection.open) return { found: false, resync: false }
      if (stream.closed) return await this.subscribeHere(connection, session_id, wish) // it is gone, or was opened anew
      const reason = await this.#begin(connection, stream, journal, wish)
      if (reason) this.sendResync(connection, session_id, reason, { seq: stream.delivered, epoch: journal.epoch })
      return { found: true, resync: reason !== undefined }
    })
  }

  /** As `subscribeHere`, for a client that had more of the session elsewhere than events: what stands is set up first. */
  async subscribeMoved(
    connection: ClientConnection,
    session_id: string,
    wish: SubscribeWish,
    standing: readonly StandingFrame[]
  ): Promise<Subscribed> {
    const moved = standing.length > 0 ? connection.move(session_id) : undefined
    let isSetUp = true
    try {
      for (const frame of standing) isSetUp = (await this.standing(connection, frame)) && isSetUp
    } finally {
      moved?.()
    }
    const subscribed = await this.subscribeHere(connection, session_id, wish)
    if (isSetUp || !subscribed.found || subscribed.resync) return subscribed
    this.sendResync(connection, session_id, 'buffer_overflow', this.written(session_id) ?? { seq: 0 })
    return { ...subscribed, resync: true }
  }

  /** Goes live and serves the cursor, decided in one step: the replay ends where the live frames begin. Answers why the cursor was not served. */
  async #begin(connection: ClientConnection, stream: Stream, journal: Journal, wish: SubscribeWish): Promise<ResyncReason | undefined> {
    const { hooks, table } = this.#realtime
    const decision: Decision = wish.cursor ? decideReplay(wish.cursor, journal, stream.delivered) : { kind: 'current' }
    const wasLive = connection.covers(stream.id, wish.filter)
    table.fanout.subscribe(stream.id, connection)
    connection.remember(stream.id, wish.filter)
    const release = decision.kind === 'replay' ? connection.hold() : undefined
    try {
      if (wish.cursor) hooks.subscribed.call(stream.id, connection, wasLive)
      if (decision.kind === 'replay') return await this.#replay(connection, stream.id, journal, decision)
      return decision.kind === 'resync' ? decision.reason : undefined
    } finally {
      release?.()
    }
  }

  async unsubscribe(connection: ClientConnection, session_id: string): Promise<void> {
    await connection.remote(false)?.unsubscribe(session_id)
    connection.forgetStanding(session_id)
    this.leave(connection, session_id)
  }

  /** Ends a subscription to a session of this server. */
  leave(connection: ClientConnection, session_id: string): void {
    const { table, hooks } = this.#realtime
    table.fanout.unsubscribe(session_id, connection)
    connection.forget(session_id)
    hooks.unsubscribed.call(session_id, connection)
    table.release(table.find(session_id))
  }

  /** See `Streams.written`. */
  written(session_id: string): Watermark | undefined {
    return this.#realtime.table.find(session_id)?.written
  }

  /** Tells a client to take the snapshot and to go on from there. */
  sendResync(connection: ClientConnection, session_id: string, reason: ResyncReason, at: Cursor): void {
    connection.send(resyncFrame(this.#env.now(), session_id, reason, at))
  }

  async #attach(session_id: string): Promise<boolean> {
    // A tap is bounded and put down to its pack where it is made; here a failed one only means that nobody has the session.
    const answer = await this.#realtime.hooks.attachStream.promise(session_id).then(
      found => found ?? 'unknown',
      err => {
        if (err instanceof SessionMoved || (AppError.is(err) && err.code === PackAway.code)) throw err
        this.#env.log.warn({ err, session_id }, 'a session could not be attached')
        return 'missing'
      }
    )
    // Without anybody who knows sessions, an open journal is proof enough.
    return answer === 'live' || (answer === 'unknown' && this.#realtime.table.find(session_id)?.watermark !== undefined)
  }

  /** Why it does not lead to the session as it is: the file did not have what the index promised, or an event among it says so. */
  async #replay(
    connection: ClientConnection,
    session_id: string,
    journal: Journal,
    { from, to }: { readonly from: number; readonly to: number }
  ): Promise<ResyncReason | undefined> {
    let broken: ResyncReason | undefined
    const keep = (line: Buffer) => {
      const known = this.#realtime.spec(frameType(line))
      const kept = this.#keeps(connection, session_id, line, known)
      if (kept && asksResync(known, line)) broken = 'session_recreated'
      return kept
    }
    try {
      for await (const group of journal.lines(from, to)) {
        const others = yieldToLoop()
        if (others) await others
        if (!connection.open) break
        await connection.pass(group.filter(keep))
      }
      return broken
    } catch (err) {
      this.#env.log.error({ err, session_id }, 'an event journal could not be replayed')
      return 'buffer_overflow'
    }
  }

  /** Is a journaled frame for this connection? The filter and suppression that hold for live ones; what nothing is left out of is not looked into. */
  #keeps(connection: ClientConnection, session_id: string, line: Buffer, known: EventSpec | undefined): boolean {
    const isWhole = connection.wantsAll(session_id)
    if (isWhole && !known?.once) return true
    const { type, seq, payload } = JSON.parse(line.toString('utf8')) as JournaledEvent
    const isFree = isWhole || (known && (known.unfiltered || reachesEveryone(known)))
    const isWanted = isFree || connection.wants(session_id, type, subjectOf(payload, {}, this.#realtime.subject()))
    return isWanted && connection.takes(onceKey(known, session_id, seq))
  }
}

type Decision =
  | { readonly kind: 'current' }
  | { readonly kind: 'resync'; readonly reason: ResyncReason }
  | { readonly kind: 'replay'; readonly from: number; readonly to: number }

/** First match wins (contract 3, Reconnect and recovery). A cursor without epoch skips that check. `current`: last number to serve. */
function decideReplay(cursor: Cursor, journal: JournalView, current: number): Decision {
  if (cursor.epoch !== undefined && cursor.epoch !== journal.epoch) return { kind: 'resync', reason: 'epoch_changed' }
  if (cursor.seq > current) return { kind: 'resync', reason: 'epoch_changed' }
  if (cursor.seq === current) return { kind: 'current' }
  if (current - cursor.seq > replayLimit || cursor.seq + 1 < journal.first) return { kind: 'resync', reason: 'buffer_overflow' }
  return { kind: 'replay', from: cursor.seq + 1, to: current }
}

/** The events of a journal after a cursor. The file is opened when the events are asked for. */
export function readAfter(journal: JournalView, cursor: Cursor): JournalSlice {
  const { epoch, seq } = journal
  const decision = decideReplay(cursor, journal, seq)
  if (decision.kind === 'resync') return { epoch, seq, resync: decision.reason, events: nothing() }
  return { epoch, seq, events: decision.kind === 'current' ? nothing() : eventsOf(journal, decision.from, seq) }
}

async function* nothing(): AsyncGenerator<JournaledEvent> {}

async function* eventsOf(journal: JournalView, from: number, to: number): AsyncGenerator<JournaledEvent> {
  let seq = from
  for await (const lines of journal.lines(from, to)) {
    for (const line of lines) {
      const event = JSON.parse(line.toString('utf8')) as JournaledEvent
      if (event.seq !== seq++) throw unsaved('the journal was replaced meanwhile')
      yield event
    }
  }
}

const pageLines = 64

/** Newest first, one page in memory. Ends early where the journal has given up what was before. */
export async function* readBackwards(journal: JournalView): AsyncGenerator<JournaledEvent> {
  for (let to = journal.seq; to >= journal.first; to -= pageLines) {
    const page: JournaledEvent[] = []
    for await (const event of eventsOf(journal, Math.max(journal.first, to - pageLines + 1), to)) page.push(event)
    yield* page.reverse()
  }
}
