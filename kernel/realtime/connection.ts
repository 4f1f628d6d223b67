/** One WebSocket client: what it subscribed to, what is hidden from it, and its way out. */
import type { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'
import { type Hosts, SlotHost } from '../lifecycle/slot.ts'
import type { Receiver } from './fanout.ts'
import { Outbox } from './outbox.ts'
import type { Connection, ConnectionInfo } from './types.ts'

export interface ConnectionOptions {
  readonly id: string
  readonly ws: WebSocket
  readonly socket: Duplex
  readonly hosts: Hosts
  readonly connected_at: string
  readonly remote_address: string | null
  readonly user_agent: string | null
  /** Unsent bytes, see HubOptions. */
  readonly bufferBytes: number
  /** Sends what the lane of a session still holds, so that a frame cannot overtake it. */
  flush(session_id: string): void
  subscribe(connection: ClientConnection, session_id: string, filter: readonly string[] | undefined): Promise<boolean>
  /** The connection is over, or is being closed by us: it leaves every list now. */
  onEnd(connection: ClientConnection): void
}

type Hide = (type: string, agent_id: string) => boolean

/** After a close frame of ours the peer has this long to answer. */
const closeGraceMs = 1000

export class ClientConnection extends SlotHost implements Connection, Receiver {
  readonly id: string
  readonly outbox: Outbox
  /** Resolves when the socket is gone. */
  readonly closed: Promise<void>
  /** A `client_hello` was accepted. */
  greeted = false
  readonly #options: ConnectionOptions
  /** Subscribed sessions, with the agents to show or undefined for all. */
  readonly #filters = new Map<string, ReadonlySet<string> | undefined>()
  readonly #hidden = new Map<string, Map<string, Hide>>()
  /** Sessions whose replay is due. */
  readonly #awaited = new Set<string>()
  #ended = false

  constructor(options: ConnectionOptions) {
    super(options.hosts)
    this.id = options.id
    this.#options = options
    this.outbox = new Outbox(options.ws, options.socket, options.bufferBytes, () => this.shut(1013, 'slow reader'))
    this.closed = new Promise(resolve => {
      options.ws.once('close', () => {
        this.#end()
        resolve()
      })
    })
  }

  get open(): boolean {
    return !this.#ended && this.outbox.open
  }

  info(): ConnectionInfo {
    const { id, connected_at, remote_address, user_agent } = this.#options
    return { id, connected_at, remote_address, user_agent, has_client_hello: this.greeted, subscriptions: this.sessions().sort() }
  }

  store(): never {
    throw new Error('a connection has no place for stores')
  }

  send(frame: object): void {
    if (!this.open) return
    for (const session_id of this.#filters.keys()) this.#options.flush(session_id)
    this.outbox.write(Buffer.from(JSON.stringify(frame)))
  }

  subscribe(session_id: string, filter?: readonly string[]): Promise<boolean> {
    return this.#options.subscribe(this, session_id, filter)
  }

  subscribed(session_id: string): boolean {
    return this.#filters.has(session_id)
  }

  /** Subscribed sessions in order of subscription. */
  sessions(): string[] {
    return [...this.#filters.keys()]
  }

  /** Remembers a subscription; null shows all agents, undefined keeps the filter of an earlier one. */
  remember(session_id: string, filter: readonly string[] | null | undefined): void {
    const kept = filter === undefined ? this.#filters.get(session_id) : undefined
    this.#filters.set(session_id, filter && filter.length > 0 ? new Set(filter) : kept)
    this.#awaited.delete(session_id)
  }

  /** The session's durable events come by a replay from here until `remember` or `giveUp`. A subscription that runs goes on. */
  await(session_id: string): void {
    if (!this.subscribed(session_id)) this.#awaited.add(session_id)
  }

  awaitsReplay(session_id: string): boolean {
    return this.#awaited.has(session_id)
  }

  /** No replay will come. */
  giveUp(session_id: string): void {
    this.#awaited.delete(session_id)
  }

  /** Forgets a subscription with its filter and hiding rules. */
  forget(session_id: string): void {
    this.#filters.delete(session_id)
    this.#hidden.delete(session_id)
  }

  suppress(session_id: string, owner: string, hide: Hide | undefined): void {
    this.#options.flush(session_id)
    const rules = this.#hidden.get(session_id) ?? new Map<string, Hide>()
    if (hide) rules.set(owner, hide)
    else rules.delete(owner)
    if (rules.size > 0) this.#hidden.set(session_id, rules)
    else this.#hidden.delete(session_id)
  }

  /** True when nothing of the session is filtered or hidden, so that nobody has to look into replayed lines. */
  wantsAll(session_id: string): boolean {
    return this.#filters.get(session_id) === undefined && !this.#hidden.has(session_id)
  }

  wants(session_id: string, type: string, agent_id: string): boolean {
    if (this.#filters.get(session_id)?.has(agent_id) === false) return false
    const rules = this.#hidden.get(session_id)
    if (rules) for (const hide of rules.values()) if (hide(type, agent_id)) return false
    return true
  }

  write(bytes: Buffer): void {
    if (!this.#ended) this.outbox.write(bytes)
  }

  cork(): void {
    this.outbox.cork()
  }

  uncork(): void {
    this.outbox.uncork()
  }

  /** Closes with a code; a peer that does not answer is cut after a second. Nothing is sent afterwards. */
  shut(code: number, reason: string): void {
    const { ws } = this.#options
    this.#end()
    if (ws.readyState === ws.CLOSED) return
    ws.close(code, reason)
    const timer = setTimeout(() => ws.terminate(), closeGraceMs)
    ws.once('close', () => clearTimeout(timer))
  }

  #end(): void {
    if (this.#ended) return
    this.#ended = true
    this.#options.onEnd(this)
  }
}
