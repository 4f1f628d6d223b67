/**
 * What one client has at other servers of the home: a connection to each, opened with the first frame that goes there. Its messages go to
 * the client as they come; when it ends, its subscriptions go on wherever the session is then, after the last event that came.
 */
import { setTimeout as delay } from 'node:timers/promises'
import {
  AppError,
  type Cursor,
  OwnerSilent,
  type RemoteAck,
  type RemoteClient,
  type RemoteFrame,
  type RemotePorts,
  SessionMoved,
  type SharedEvent,
  type Subscribed,
  type SubscribeWish,
  type Watermark
} from '../../kernel/index.ts'
import { type Head, headOf, Link } from './client-link.ts'
import { type Place, Unreached } from './owner.ts'

interface Subscription {
  readonly session_id: string
  readonly link: Link
  readonly filter: readonly string[] | undefined
  /** Last durable event that the client got, or had when it subscribed. */
  cursor: Cursor | undefined
  /** Durable events from this number on come by the link; undefined while that is not known. */
  first: number | undefined
  /** Those that reach everyone and came another way meanwhile. */
  held: SharedEvent[]
  /** The client keeps more there than the subscription. */
  more: boolean
  /** What came last is in no replay: more of it may be on the way when the link ends. */
  streaming: boolean
  /** False while whoever asked for it waits, and tries again when the link ends. */
  settled: boolean
  /** The client unsubscribes: until that is answered nobody knows which events the link still brings. */
  leaving: boolean
}

/** What an ack of a frame that subscribes says. */
interface SubscribeAnswer {
  readonly accepted?: readonly string[]
  readonly resync_required?: readonly string[]
  readonly cursors?: Readonly<Record<string, Watermark>>
}

/** A session whose subscription begins as soon as somebody has it. */
interface Following extends SubscribeWish {
  readonly session_id: string
  /** What is being tried; true: it stands, or there is no such session. */
  attempt: Promise<boolean> | undefined
}

const maxPauseMs = 500
/** So many sessions that the client has left are remembered with what it had of them. */
const maxLeft = 1000
/** Held events beyond these are let go: the client has not subscribed for so long that it reads the state anew anyway. */
const maxHeld = 1000

/** What a `ClientRemote` needs of this server. */
interface Ports extends Pick<RemotePorts, 'filterField' | 'once' | 'resync'> {
  /**
   * Subscribes anew, wherever the session is; with the mark. Rejects with OwnerSilent, soon when its server is silent or it is not `wanted`
   * any more.
   */
  subscribe(session_id: string, wish: SubscribeWish, wanted: () => boolean): Promise<Subscribed>
}

export class ClientRemote {
  readonly #connection: RemoteClient
  readonly #ports: Ports
  readonly #links = new Map<string, Promise<Link>>()
  readonly #subscriptions = new Map<string, Subscription>()
  /** Sessions that it waits for until anybody has them. */
  readonly #following = new Map<string, Following>()
  /** Sessions that it has unsubscribed from, with the last event that it got: one that reaches everyone may yet come another way. */
  readonly #left = new Map<string, Cursor>()
  /** Sessions of which the client asked for something else there, without a subscription. */
  readonly #others = new Map<string, Link>()

  constructor(connection: RemoteClient, ports: Ports) {
    this.#connection = connection
    this.#ports = ports
  }

  has(session_id: string): boolean {
    return this.#subscriptions.has(session_id) || this.#following.has(session_id)
  }

  sessions(): string[] {
    return [...new Set([...this.#subscriptions.keys(), ...this.#following.keys()])]
  }

  /** Asks with a frame that is about a session. Rejects with `Unreached` when it was not sent. */
  async ask(place: Place, session_id: string, { subscribes, stands, bytes, ...frame }: RemoteFrame): Promise<RemoteAck> {
    const link = await this.#link(place)
    const known = this.#subscriptions.get(session_id)
    if (known && known.link !== link) this.follow(session_id, {})
    if (this.#following.has(session_id)) throw new SessionMoved() // asked again behind that
    if (subscribes && !known) return await this.#askToSubscribe(link, session_id, frame, bytes, stands !== undefined)
    if (known && !stands) known.more = true
    const ack = await link.ask(frame, bytes).catch((error: unknown) => {
      throw subscribes ? new Unreached(error) : error // subscribing twice does no harm
    })
    if (ack.code === OwnerSilent.code) throw new Unreached() // it has moved on from there: nothing was done
    if (known || ack.code !== 0 || stands) return ack
    if (link.over) this.#ports.resync(session_id, 'buffer_overflow', { seq: 0 })
    else this.#others.set(session_id, link)
    return ack
  }

  async #askToSubscribe(link: Link, session_id: string, frame: object, bytes: Uint8Array | undefined, stands: boolean): Promise<RemoteAck> {
    const kept = this.#keep(link, session_id, {})
    kept.more ||= !stands
    try {
      return await this.#enter(kept, frame, bytes)
    } catch (error) {
      // It is asked again where the session is then, without what came meanwhile.
      if (kept.cursor) this.#ports.resync(session_id, 'buffer_overflow', { seq: 0 })
      throw error
    }
  }

  /** Rejects with `Unreached`; the wish is what is left then. */
  async subscribe(place: Place, session_id: string, wish: SubscribeWish): Promise<Subscribed> {
    const link = await this.#link(place)
    const over = await this.handOver(session_id, wish, link)
    const kept = this.#keep(link, session_id, wish)
    over()
    const { cursor } = wish
    const field = this.#ports.filterField()
    const standing = wish.moved ? this.#connection.standing(session_id) : []
    const payload = {
      session_ids: [session_id],
      ...(standing.length > 0 ? { standing } : {}),
      ...(cursor ? { cursors: { [session_id]: cursor } } : {}),
      ...(field !== undefined && kept.filter ? { [field]: { [session_id]: kept.filter } } : {})
    }
    try {
      const { payload: answer } = await this.#enter(kept, { type: 'subscribe', payload })
      const { accepted = [], resync_required = [], cursors } = answer as SubscribeAnswer
      return { found: accepted.includes(session_id), resync: resync_required.includes(session_id), mark: cursors?.[session_id] }
    } catch (error) {
      wish.filter = kept.filter
      wish.cursor = kept.cursor
      wish.more ||= kept.more
      throw error
    }
  }

  #keep(link: Link, session_id: string, { cursor, filter }: SubscribeWish): Subscription {
    const before = this.#subscriptions.get(session_id)
    const kept: Subscription = {
      session_id,
      link,
      filter: filter === undefined ? before?.filter : filter,
      cursor: cursor ?? before?.cursor,
      first: cursor ? 0 : before?.first,
      held: before?.held ?? [],
      more: before?.more ?? this.#others.get(session_id) === link,
      streaming: before?.streaming ?? false,
      settled: false,
      leaving: false
    }
    this.#left.delete(session_id)
    this.#subscriptions.set(session_id, kept)
    return kept
  }

  /** Asks with a frame that subscribes. Rejects with `Unreached`. */
  async #enter(kept: Subscription, frame: object, bytes?: Uint8Array): Promise<RemoteAck> {
    const { link, session_id } = kept
    try {
      const ack = await link.ask(frame, bytes)
      if (ack.code === OwnerSilent.code) throw new Unreached() // it has moved on from there
      const { accepted = [], cursors } = ack.payload as SubscribeAnswer
      if (!accepted.includes(session_id)) {
        this.#drop(kept)
        return ack
      }
      if (link.over) throw new Unreached()
      const mark = cursors?.[session_id]
      if (mark && !isAfter(kept.cursor, mark)) kept.cursor = mark
      this.#begin(kept, (mark?.seq ?? 0) + 1)
      kept.settled = true
      return ack
    } catch (error) {
      this.#drop(kept)
      throw AppError.is(error) ? new Unreached(error) : error
    }
  }

  async unsubscribe(session_id: string): Promise<void> {
    const followed = await this.stop(session_id)
    if (followed?.cursor) this.#connection.giveUp(session_id)
    await this.#leave(session_id)
  }

  follow(session_id: string, { filter, cursor, more }: SubscribeWish): void {
    const live = this.#forget(session_id)
    void this.#goOn({
      session_id,
      filter: filter === undefined ? live?.filter : filter,
      cursor: cursor ?? live?.cursor,
      more: more || live?.more || live?.streaming
    })
  }

  /** Ends `follow`; answers what was not subscribed yet. Its replay stays awaited when it has a cursor, until the caller gives it up. */
  async stop(session_id: string): Promise<SubscribeWish | undefined> {
    const known = this.#following.get(session_id)
    if (!known) return undefined
    this.#following.delete(session_id)
    const isAwaited = known.cursor !== undefined
    if (isAwaited) this.#connection.await(session_id)
    if (await known.attempt) {
      if (isAwaited) this.#connection.giveUp(session_id)
      return undefined
    }
    if (known.cursor && !isAwaited) this.#connection.await(session_id)
    return known
  }

  /**
   * The session is subscribed anew, elsewhere: what the client has of it, or waits for, ends, and `wish` takes from that what it does not ask
   * for itself. What this answers is called when the new subscription has begun.
   */
  async handOver(session_id: string, wish: SubscribeWish, to?: Link): Promise<() => void> {
    let awaited = 0
    const inherit = (left: SubscribeWish | undefined) => {
      if (!left) return
      if (wish.filter === undefined) wish.filter = left.filter
      wish.cursor ??= left.cursor
      wish.more = true
      wish.moved = true
    }
    for (let known = this.#following.get(session_id); known && known !== wish; known = this.#following.get(session_id)) {
      const left = await this.stop(session_id)
      if (left?.cursor) awaited++
      inherit(left)
    }
    if (this.#subscriptions.get(session_id)?.link !== to) inherit(this.#forget(session_id))
    return () => {
      for (; awaited > 0; awaited--) this.#connection.giveUp(session_id)
    }
  }

  /** Nothing comes from there any more. */
  #forget(session_id: string): Subscription | undefined {
    const known = this.#subscriptions.get(session_id)
    if (!known) return undefined
    this.#drop(known)
    void known.link.unsubscribe(session_id)
    return known
  }

  async #leave(session_id: string): Promise<void> {
    const known = this.#subscriptions.get(session_id)
    if (!known) return
    known.leaving = true
    await known.link.unsubscribe(session_id)
    this.#drop(known)
    if (!known.cursor) return
    this.#left.set(session_id, known.cursor)
    const [oldest = ''] = this.#left.keys()
    if (this.#left.size > maxLeft) this.#left.delete(oldest)
  }

  offer(event: SharedEvent): void {
    const known = this.#subscriptions.get(event.session_id)
    if (!known) {
      if (!this.#had(event)) this.#connection.tell(event)
    } else if (!event.durable) return
    else if (known.first === undefined || known.leaving) {
      if (known.held.length < maxHeld) known.held.push(event)
    } else if (event.seq < known.first && !(known.cursor && event.seq <= known.cursor.seq)) this.#connection.tell(event)
  }

  /** The subscription that the client has left brought it. */
  #had({ session_id, seq, durable, frame }: SharedEvent): boolean {
    const left = durable ? this.#left.get(session_id) : undefined
    return left !== undefined && seq <= left.seq && left.epoch === headOf(frame)?.epoch
  }

  close(): void {
    this.#subscriptions.clear()
    this.#following.clear()
    this.#others.clear()
    for (const link of this.#links.values()) link.then(open => open.close()).catch(() => undefined) // then there is none
    this.#links.clear()
  }

  #link(place: Place): Promise<Link> {
    const known = this.#links.get(place.id)
    if (known) return known
    if (!this.#connection.open) return Promise.reject(new Unreached()) // nobody would close it
    const link = Link.open(place, this.#connection, {
      event: (at, head) => this.#event(at, head),
      once: this.#ports.once,
      resync: (at, session_id, cursor) => {
        const known = this.#subscriptions.get(session_id)
        if (known?.link !== at) return false
        known.cursor = cursor
        return true
      },
      gone: (at, session_id) => this.#gone(at, session_id),
      closed: (closed, code, reason) => this.#closed(place.id, closed, code, reason)
    })
    this.#links.set(place.id, link)
    link.catch(() => {
      if (this.#links.get(place.id) === link) this.#links.delete(place.id)
    })
    return link
  }

  /** Before the event goes to the client. False: it is not for the client any more, because its subscription is elsewhere by now. */
  #event(link: Link, { seq, epoch, session_id, durable }: Head): boolean {
    const known = this.#subscriptions.get(session_id)
    if (known?.link !== link) return false
    known.streaming = !durable
    if (!durable) return true
    this.#begin(known, seq)
    known.cursor = { seq, epoch }
    return true
  }

  /** What came another way and was numbered before goes first. */
  #begin(known: Subscription, first: number): void {
    if (known.first !== undefined) return
    known.first = first
    for (const event of known.held.splice(0)) if (event.seq < first) this.#connection.tell(event)
  }

  #drop(known: Subscription): void {
    if (this.#subscriptions.get(known.session_id) !== known) return
    this.#subscriptions.delete(known.session_id)
    const { cursor, leaving } = known
    for (const event of known.held.splice(0)) if (!leaving || !cursor || event.seq > cursor.seq) this.#connection.tell(event)
  }

  /** The session has been deleted there: nothing comes of it any more, and nobody has to look for it when the link ends. */
  #gone(link: Link, session_id: string): void {
    const known = this.#subscriptions.get(session_id)
    if (known?.link === link) this.#drop(known)
    if (this.#others.get(session_id) === link) this.#others.delete(session_id)
  }

  #closed(id: string, link: Link, code: number, reason: string): void {
    this.#links.delete(id)
    if (!this.#connection.open) return
    if (code === 1013 || code === 1008) {
      this.#connection.shut(code, reason)
      return
    }
    for (const [session_id, at] of this.#others) {
      if (at !== link) continue
      this.#others.delete(session_id)
      const following = this.#following.get(session_id)
      if (following) following.more = true
      else if (!this.has(session_id)) this.#ports.resync(session_id, 'buffer_overflow', { seq: 0 })
    }
    for (const known of [...this.#subscriptions.values()])
      if (known.link === link && known.settled && !known.leaving) void this.#goOn({ ...known, more: known.more || known.streaming })
  }

  /** Subscribes anew after the last event that came, as soon as somebody has the session. */
  async #goOn({ session_id, filter, cursor, more }: Omit<Following, 'attempt'>): Promise<void> {
    const connection = this.#connection
    const known: Following = { session_id, filter, cursor, more, moved: true, attempt: undefined }
    this.#subscriptions.delete(session_id)
    this.#following.set(session_id, known)
    if (cursor) connection.await(session_id)
    const isWanted = () => connection.open && this.#following.get(session_id) === known
    for (let pause = 10; isWanted(); pause = Math.min(pause * 2, maxPauseMs)) {
      known.attempt = this.#attempt(known, cursor, isWanted)
      if (await known.attempt) break
      await delay(pause, undefined, { ref: false })
    }
    if (this.#following.get(session_id) === known) this.#following.delete(session_id)
    if (cursor) connection.giveUp(session_id)
  }

  /** False while nobody has the session. `from`: where the client was. */
  async #attempt(known: Following, from: Cursor | undefined, isWanted: () => boolean): Promise<boolean> {
    const { session_id } = known
    try {
      const { found, resync, mark } = await this.#ports.subscribe(session_id, known, isWanted)
      // Between durable events that were missed there may have been streamed text.
      const missed = !from || (mark !== undefined && !isAt(from, mark))
      if (!found && !resync) this.#ports.resync(session_id, 'session_recreated', { seq: 0 })
      else if (found && !resync && (known.more || missed)) this.#anew(session_id)
      return true
    } catch {
      return false
    }
  }

  /**
   * What the client had asked for beside events (terminals, transcripts) is gone, or text that streamed: it has to ask anew. Events may have
   * come since the subscription was answered, so it is told where the session is now.
   */
  #anew(session_id: string): void {
    this.#ports.resync(session_id, 'buffer_overflow', this.#subscriptions.get(session_id)?.cursor)
  }
}

function isAt({ seq, epoch = '' }: Cursor, mark: Watermark): boolean {
  return seq === mark.seq && (epoch === '' || epoch === mark.epoch)
}

function isAfter(cursor: Cursor | undefined, mark: Watermark): boolean {
  return cursor !== undefined && cursor.epoch === mark.epoch && cursor.seq > mark.seq
}
