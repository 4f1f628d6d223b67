/** One client: what it subscribed to, what is hidden from it, and its way out with one order, a byte budget and a hold for replays. */
import type { Principal } from '../access/principal.ts'
import type { Remote, SharedEvent, StandingFrame } from '../elsewhere.ts'
import type { Environment } from '../environment.ts'
import { developerError } from '../errors.ts'
import { SlotHost } from '../lifecycle/slot.ts'
import type { Connection, ConnectionInfo, SendOptions } from './types.ts'

/** What carries a connection's messages: a WebSocket, or code of this process. */
export interface Transport {
  readonly open: boolean
  /** Bytes that the other side has not taken yet. */
  readonly pending: number
  /** Who sends more should wait for `drain`. */
  readonly full: boolean
  /** Sends a message, or nothing when it is not open. */
  send(bytes: Buffer, binary: boolean): void
  /** Stops and goes on reading; again is nothing. */
  pause(): void
  resume(): void
  /** Closes with a code; a peer that does not answer is cut. */
  close(code: number, reason: string): void
  on(event: 'drain' | 'close', listener: () => void): void
}

/** The other side. */
export interface Peer extends Pick<Connection, 'principal'>, Pick<ConnectionInfo, 'remote_address' | 'user_agent'> {
  /** A client of another server: it is on no list, and what reaches everyone comes to it only for what it subscribed to. */
  readonly relayed: boolean
}

/** What connections ask of who keeps them all. */
export interface Keeper {
  subscribe(connection: ClientConnection, session_id: string): Promise<boolean>
  /** Makes what it has at other servers; undefined: nobody knows the ways there. */
  remote(connection: ClientConnection): Remote | undefined
  /** The connection is over, or is being closed by us: it leaves every list now. */
  ended(connection: ClientConnection): void
}

/** Of events that wait for the first frame of a client (`firstFrameMs`). */
const earlyBytes = 64 * 1024
/** So many events that come once are remembered per connection (their keys are shared by all); older ones may come again in a replay. */
const maxTold = 1000
/** So many frames about a session stand (`FrameSpec.stands`). */
const maxStanding = 64

type Hide = (type: string, subject: string) => boolean

/** A frame as JSON text; with bytes as a line of it and the bytes, which makes a binary message. */
export function messageOf(frame: object, bytes: Uint8Array | undefined): Buffer {
  const text = JSON.stringify(frame)
  return bytes ? Buffer.concat([Buffer.from(`${text}\n`), bytes]) : Buffer.from(text)
}

export class ClientConnection extends SlotHost implements Connection {
  readonly id: string
  readonly principal: Principal
  readonly relayed: boolean
  readonly connected_at: string
  /** Resolves when the other side is gone. */
  readonly closed: Promise<void>
  /** A `client_hello` was accepted. */
  greeted = false
  readonly #env: Environment
  readonly #transport: Transport
  readonly #peer: Peer
  readonly #keeper: Keeper
  /** Subscribed sessions, with the subjects to show or undefined for all. */
  readonly #filters = new Map<string, ReadonlySet<string> | undefined>()
  /** Rules by session and pack. */
  readonly #hidden = new Map<string, Map<string, Hide>>()
  readonly #standing = new Map<string, readonly StandingFrame[]>()
  readonly #moving = new Set<string>()
  /** Sessions whose replay is due, with the number of those who bring one. */
  readonly #awaited = new Map<string, number>()
  /** Events for everyone of sessions that it may know, which wait for the first frame; undefined: it came, or takes too long. */
  #early: { readonly event: SharedEvent; readonly foreign: boolean }[] | undefined = []
  /** Sessions that began under its eyes, until then: it has no cursor of them. */
  readonly #young = new Set<string>()
  /** The newest events that it gets once and was sent. */
  readonly #told = new Set<string>()
  readonly #listening: NodeJS.Timeout
  #remote: Remote | undefined
  #held: { readonly bytes: Buffer; readonly binary: boolean }[] = []
  #heldBytes = 0
  #holds = 0
  /** Who waits until more can be sent. */
  #waiters: (() => void)[] = []
  #ended = false

  constructor(env: Environment, transport: Transport, peer: Peer, keeper: Keeper) {
    super(env.hosts)
    this.id = `conn_${env.newId()}`
    this.principal = peer.principal
    this.relayed = peer.relayed
    this.connected_at = env.now().toISOString()
    this.#env = env
    this.#transport = transport
    this.#peer = peer
    this.#keeper = keeper
    this.#listening = setTimeout(() => this.listen(), env.options.firstFrameMs).unref()
    transport.on('drain', () => this.#wake())
    this.closed = new Promise(resolve => {
      transport.on('close', () => {
        this.#end()
        resolve()
      })
    })
  }

  get open(): boolean {
    return !this.#ended && this.#transport.open
  }

  info(): ConnectionInfo {
    const { id, connected_at } = this
    const { remote_address, user_agent } = this.#peer
    const subscriptions = [...this.sessions(), ...(this.#remote?.sessions() ?? [])].sort()
    return { id, connected_at, remote_address, user_agent, has_client_hello: this.greeted, subscriptions }
  }

  store(): never {
    throw developerError('connection_storeless')
  }

  send(frame: object, { bytes }: SendOptions = {}): void {
    if (this.open) this.write(messageOf(frame, bytes), bytes !== undefined)
  }

  get writable(): boolean {
    return this.open && this.#holds === 0 && !this.#transport.full
  }

  async drained(): Promise<void> {
    while (this.open && !this.writable) await this.#waiting()
  }

  #waiting(): Promise<void> {
    return new Promise(resolve => this.#waiters.push(resolve))
  }

  #wake(): void {
    for (const resolve of this.#waiters.splice(0)) resolve()
  }

  subscribe(session_id: string): Promise<boolean> {
    return this.#keeper.subscribe(this, session_id)
  }

  subscribed(session_id: string): boolean {
    return this.#filters.has(session_id) || this.#moving.has(session_id)
  }

  /** What it has at other servers; `make`: with the first use, when there are some. A client of another server has none. */
  remote(make: boolean): Remote | undefined {
    if (make && !this.relayed) this.#remote ??= this.#keeper.remote(this)
    return this.#remote
  }

  /** Sessions of this server that it subscribed to, in order of subscription. */
  sessions(): string[] {
    return [...this.#filters.keys()]
  }

  /** The subjects that a subscription shows; undefined: all. */
  filterOf(session_id: string): readonly string[] | undefined {
    const filter = this.#filters.get(session_id)
    return filter && [...filter]
  }

  /** Does its subscription show everything that one with this filter (see `remember`) would show? */
  covers(session_id: string, filter: readonly string[] | undefined): boolean {
    if (!this.subscribed(session_id)) return false
    const shown = this.#filters.get(session_id)
    if (!shown || filter === undefined) return true
    return filter.length > 0 && filter.every(subject => shown.has(subject))
  }

  /** Remembers a subscription; an empty filter shows all subjects, undefined keeps that of an earlier one. */
  remember(session_id: string, filter: readonly string[] | undefined): void {
    if (filter || !this.#filters.has(session_id)) this.#filters.set(session_id, filter?.length ? new Set(filter) : undefined)
  }

  /** The session's durable events come by a replay from here until `giveUp`. A subscription that runs goes on. */
  await(session_id: string): void {
    this.#awaited.set(session_id, (this.#awaited.get(session_id) ?? 0) + 1)
  }

  /** Takes an event that reaches everyone. One that a replay brings is left to that. `foreign`: it comes from another server. */
  broadcast(event: SharedEvent, foreign = false): void {
    const early = this.#early
    if (!early || !this.#waits(event, early)) {
      const isHere = this.#filters.has(event.session_id)
      if (!isHere && event.durable && this.#awaited.has(event.session_id)) return
      if (foreign && isHere) return // the session is here by now
      if (this.#remote && (foreign || this.#remote.has(event.session_id))) this.#remote.offer(event)
      else this.tell(event)
      return
    }
    early.push({ event, foreign })
    if (early.reduce((sum, { event: { frame } }) => sum + frame.length, 0) > earlyBytes) this.listen()
  }

  /** The first frame may ask for a replay that brings it, or one of its session that waits. */
  #waits({ durable, once, scope, session_id }: SharedEvent, early: readonly { readonly event: SharedEvent }[]): boolean {
    if (scope === 'global') return false
    if (durable && once !== undefined) this.#young.add(session_id)
    if (this.#young.has(session_id)) return false
    return durable || early.some(({ event }) => event.session_id === session_id)
  }

  /** Sends an event that reaches everyone, unless it was sent already and comes once. */
  tell({ once, frame }: SharedEvent): void {
    if (this.takes(once)) this.write(frame)
  }

  /** Is an event still to be sent? Of those that come once (`onceKey`) it is remembered that it was. */
  takes(once: string | undefined): boolean {
    if (once === undefined) return true
    if (this.#told.has(once)) return false
    this.#told.add(once)
    const [oldest = ''] = this.#told
    if (this.#told.size > maxTold) this.#told.delete(oldest)
    return true
  }

  /** Events for everyone go out from here on. */
  listen(): void {
    clearTimeout(this.#listening)
    const early = this.#early ?? []
    this.#early = undefined
    this.#young.clear()
    for (const { event, foreign } of early) this.broadcast(event, foreign)
  }

  /** The replay has come, or none will: once for each `await`. */
  giveUp(session_id: string): void {
    const left = (this.#awaited.get(session_id) ?? 1) - 1
    if (left > 0) this.#awaited.set(session_id, left)
    else this.#awaited.delete(session_id)
  }

  /** Frames about a session that are answered again where it moves to. */
  standing(session_id: string): readonly StandingFrame[] {
    return this.#standing.get(session_id) ?? []
  }

  /** Such a frame was answered. More of them than a client has use for are let go. */
  stand(session_id: string, frame: StandingFrame): void {
    const before = frame.stands === 'anew' ? [] : this.standing(session_id)
    if (frame.stands === 'more' && (before.length === 0 || before.length >= maxStanding)) return
    this.#standing.set(session_id, [...before, frame])
  }

  /** Until the answer is called, frames that stand are answered for it: it counts as subscribed. */
  move(session_id: string): () => void {
    this.#moving.add(session_id)
    return () => void this.#moving.delete(session_id)
  }

  isMoving(session_id: string): boolean {
    return this.#moving.has(session_id)
  }

  /** The client has unsubscribed. */
  forgetStanding(session_id: string): void {
    this.#standing.delete(session_id)
  }

  /** Forgets a subscription with its filter and hiding rules. */
  forget(session_id: string): void {
    this.#filters.delete(session_id)
    this.#hidden.delete(session_id)
  }

  suppress(session_id: string, pack: string, hide: Hide): () => void {
    const rules = this.#hidden.get(session_id) ?? new Map<string, Hide>()
    const rule: Hide = (type, subject) => this.#env.guard.call(pack, `suppress rule of ${session_id}`, () => hide(type, subject), false)
    this.#hidden.set(session_id, rules.set(pack, rule))
    return () => {
      if (rules.get(pack) !== rule) return
      rules.delete(pack)
      if (rules.size === 0 && this.#hidden.get(session_id) === rules) this.#hidden.delete(session_id)
    }
  }

  /** True when nothing of the session is filtered or hidden, so that nobody has to look into replayed lines. */
  wantsAll(session_id: string): boolean {
    return this.#filters.get(session_id) === undefined && !this.#hidden.has(session_id)
  }

  wants(session_id: string, type: string, subject: string): boolean {
    if (this.#filters.get(session_id)?.has(subject) === false) return false
    const rules = this.#hidden.get(session_id)
    if (rules) for (const hide of rules.values()) if (hide(type, subject)) return false
    return true
  }

  /** Sends one message after everything before it. The one that finds more unsent than the budget closes the connection instead. */
  write(bytes: Buffer, binary = false): void {
    if (this.#ended) return
    if (this.#transport.pending + this.#heldBytes > this.#env.options.connectionBufferBytes) {
      this.shut(1013, 'slow reader')
    } else if (this.#holds > 0) {
      this.#held.push({ bytes, binary })
      this.#heldBytes += bytes.length
    } else {
      this.#transport.send(bytes, binary)
    }
  }

  /** Queues everything that comes by `write` until the returned release is called (once), so that a replay goes first. */
  hold(): () => void {
    this.#holds++
    return () => {
      if (--this.#holds > 0) return
      const held = this.#held
      this.#held = []
      this.#heldBytes = 0
      if (this.open) for (const { bytes, binary } of held) this.#transport.send(bytes, binary)
      this.#wake()
    }
  }

  /** Sends text messages past the hold; resolves when more can be sent, or the connection is over. */
  async pass(messages: readonly Buffer[]): Promise<void> {
    for (const bytes of messages) this.#transport.send(bytes, false)
    while (this.open && this.#transport.full) await this.#waiting()
  }

  /** Closes with a code. Nothing is sent afterwards. */
  shut(code: number, reason: string): void {
    this.#end()
    this.#transport.close(code, reason)
  }

  #end(): void {
    if (this.#ended) return
    this.#ended = true
    clearTimeout(this.#listening)
    this.#wake()
    this.#remote?.close()
    this.#keeper.ended(this)
  }
}
