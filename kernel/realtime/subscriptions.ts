/**
 * Subscribing connections to sessions: loading the session, serving the cursor, going live without gap or repetition. A replay is
 * everything durable after the cursor, also a session event that reaches everyone and that a connection has heard live: the snapshot that
 * the cursor is of may be older. Only what comes once (`EventSpec.once`) is left out when the connection was sent it.
 */
import type { Gate } from '../access/gate.ts'
import type { EventSpec } from '../contract.ts'
import {
  type Remote,
  type RemoteAck,
  type RemoteFrame,
  SessionMoved,
  type Subscribed,
  type SubscribeWish,
  whereverItIs
} from '../elsewhere.ts'
import type { Environment } from '../environment.ts'
import type { KernelHooks } from '../lifecycle/hooks.ts'
import { yieldToLoop } from '../lifecycle/wait.ts'
import type { ClientConnection } from './connection.ts'
import { frameType, onceKey, reachesEveryone, resyncFrame, type SubjectRule, subjectOf } from './event-frame.ts'
import {
  type Cursor,
  type Decision,
  decideReplay,
  type Journal,
  type JournaledEvent,
  type JournalReader,
  type ResyncReason,
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

interface Replay {
  readonly kind: 'replay'
  readonly reader: JournalReader
  readonly lines: ReturnType<JournalReader['lines']>
  /** Lets the live frames go that came meanwhile. */
  readonly release: () => void
}

type Start = Replay | Exclude<Decision, { kind: 'replay' }> | { readonly kind: 'gone' }

export class Subscriptions {
  readonly #env: Environment
  readonly #realtime: Realtime

  constructor(env: Environment, realtime: Realtime) {
    this.#env = env
    this.#realtime = realtime
  }

  /**
   * Resolves when everything the cursor asked for was sent and the connection is live, wherever the session is. Rejects with OwnerSilent;
   * `orLater`: see `Remote.subscribe`.
   */
  async subscribe(connection: ClientConnection, session_id: string, wish: SubscribeWish, orLater = false): Promise<Subscribed> {
    if (!isStreamId(session_id)) return { found: false, resync: false }
    const remote = this.#remote(connection)
    if (remote) return await remote.subscribe(session_id, wish, orLater)
    return await whereverItIs(() => this.subscribeHere(connection, session_id, wish))
  }

  /** What it has at other servers, when there are some. */
  #remote(connection: ClientConnection): Remote | undefined {
    return connection.remote(this.#realtime.hooks.elsewhere.isUsed())
  }

  /** See `Remote.ask`. */
  async ask(connection: ClientConnection, session_id: string, frame: RemoteFrame): Promise<RemoteAck | undefined> {
    return await this.#remote(connection)?.ask(session_id, frame)
  }

  /** As `subscribe`, at this server. Rejects with SessionMoved. */
  async subscribeHere(connection: ClientConnection, session_id: string, wish: SubscribeWish): Promise<Subscribed> {
    if (!(await this.#attach(session_id))) return { found: false, resync: false }
    return await this.#realtime.table.using(session_id, async (stream, journal) => {
      const start = await this.#begin(connection, stream, journal, wish)
      if (start.kind === 'gone') {
        if (wish.cursor && connection.open) this.sendResync(connection, session_id, 'session_recreated', { seq: 0 })
        return { found: false, resync: wish.cursor !== undefined }
      }
      const broken = start.kind === 'replay' ? await this.#replay(connection, session_id, start) : undefined
      if (start.kind !== 'resync' && !broken) return { found: true, resync: false }
      const reason = start.kind === 'resync' ? start.reason : (broken ?? 'buffer_overflow')
      this.sendResync(connection, session_id, reason, { seq: stream.delivered, epoch: journal.epoch })
      return { found: true, resync: true }
    })
  }

  async unsubscribe(connection: ClientConnection, session_id: string): Promise<void> {
    await connection.remote(false)?.unsubscribe(session_id)
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
        if (err instanceof SessionMoved) throw err
        this.#env.log.warn({ err, session_id }, 'a session could not be attached')
        return 'missing'
      }
    )
    // Without anybody who knows sessions, an open journal is proof enough.
    return answer === 'live' || (answer === 'unknown' && this.#realtime.table.find(session_id)?.watermark !== undefined)
  }

  /** Waits for what was emitted before, then decides and goes live in one step: the slice ends where the live frames begin. */
  async #begin(connection: ClientConnection, stream: Stream, journal: Journal, wish: SubscribeWish): Promise<Start> {
    const { hooks, table } = this.#realtime
    const { log } = this.#env
    let reader: JournalReader | undefined
    for (;;) {
      // It may be part of the cursor's snapshot already, so it counts as past.
      await stream.settled()
      let decision: Decision = wish.cursor ? decideReplay(wish.cursor, journal, stream.delivered) : { kind: 'current' }
      if (decision.kind === 'replay' && !reader?.current) {
        await reader?.close()
        reader = await journal.reader().catch(err => {
          log.error({ err, stream: stream.id }, 'an event journal could not be read')
          return undefined
        })
        if (reader) continue
        decision = { kind: 'resync', reason: 'buffer_overflow' }
      }
      if (stream.lost) {
        await reader?.close()
        throw new SessionMoved()
      }
      const gone = stream.closed || !connection.open
      if (!gone) {
        table.fanout.subscribe(stream.id, connection)
        connection.remember(stream.id, wish.filter)
      }
      const release = decision.kind === 'replay' && !gone ? connection.hold() : undefined
      if (wish.cursor && !gone) hooks.subscribed.call(stream.id, connection)
      if (decision.kind === 'replay' && reader && release) {
        return { kind: 'replay', reader, lines: reader.lines(decision.from, decision.to), release }
      }
      void reader?.close().catch(err => log.warn({ err }, 'a journal file could not be closed properly'))
      return gone || decision.kind === 'replay' ? { kind: 'gone' } : decision
    }
  }

  /** Why it does not lead to the session as it is: the file did not have what the index promised, or an event among it says so. */
  async #replay(connection: ClientConnection, session_id: string, { reader, lines, release }: Replay): Promise<ResyncReason | undefined> {
    const { spec, subject } = this.#realtime
    const wanted = keepFor(connection, session_id, subject(), spec)
    let broken: ResyncReason | undefined
    const keep = (line: Buffer) => {
      const kept = (wanted?.(line) ?? true) && connection.takes(onceOf(line, session_id, spec))
      if (kept && spec(frameType(line))?.resync) broken = 'session_recreated'
      return kept
    }
    try {
      for await (const group of lines) {
        const others = yieldToLoop()
        if (others) await others
        if (!connection.open) break
        await connection.pass(group.filter(keep))
      }
      return broken
    } catch (err) {
      this.#env.log.error({ err, session_id }, 'an event journal could not be replayed')
      return 'buffer_overflow'
    } finally {
      release()
      await reader.close()
    }
  }
}

function onceOf(line: Buffer, session_id: string, spec: Realtime['spec']): string | undefined {
  const known = spec(frameType(line))
  return known?.once ? onceKey(known, session_id, (JSON.parse(line.toString('utf8')) as JournaledEvent).seq) : undefined
}

/** Is a journaled frame for this connection? The filter and suppression that hold for live ones; undefined when nothing is left out. */
function keepFor(
  connection: ClientConnection,
  session_id: string,
  rule: SubjectRule | undefined,
  spec: Realtime['spec']
): ((line: Buffer) => boolean) | undefined {
  if (connection.wantsAll(session_id)) return undefined
  return line => {
    const { type, payload } = JSON.parse(line.toString('utf8')) as JournaledEvent
    const known = spec(type)
    if (known && (known.unfiltered || reachesEveryone(known))) return true
    return connection.wants(session_id, type, subjectOf(payload, {}, rule))
  }
}
