/** A client of a test that is cut off, stands still, and moves between servers. It keeps a session by events and by transcript operations. */
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { type ClientOptions, WebSocket } from 'ws'
import { type Client, Connection, createClient, type Snapshot, unwrap, type Watch } from '../../client/index.ts'
import { type Conversation, conversationOf, reduce } from '../../examples/client/conversation.ts'
import { Follower } from '../../examples/client/follow.ts'

/** Where clients may connect; a server that is being replaced is not among them. */
export interface Fleet {
  readonly token: string
  /** Addresses of servers that live. */
  urls(): readonly string[]
}

/** Nobody listens there. */
const nowhere = 'http://127.0.0.1:1'

export class Roamer {
  readonly #fleet: Fleet
  readonly #random: () => number
  readonly #session_id: string
  readonly #client: Client
  readonly #watch: Watch
  readonly #follower: Follower
  readonly #sockets = new Set<WebSocket>()
  /** Those whose packets go nowhere. */
  readonly #lost = new Set<Duplex>()
  #conversation: Conversation | undefined
  #connection: Connection | undefined
  #isOnline = true
  #ended = false
  #connecting: Promise<void> | undefined

  constructor(fleet: Fleet, session_id: string, random: () => number) {
    this.#fleet = fleet
    this.#random = random
    this.#session_id = session_id
    const roamer = this
    class Roaming extends WebSocket {
      constructor(_url: string, protocols: string[]) {
        super(`${roamer.#url().replace('http', 'ws')}/api/v1/ws`, protocols, roamer.#way())
        roamer.#sockets.add(this)
        this.on('close', () => roamer.#sockets.delete(this))
      }
    }
    this.#WebSocket = Roaming as never
    this.#client = createClient({
      url: 'http://server',
      token: fleet.token,
      WebSocket: Roaming as never,
      retryMs: [2, 40],
      fetch: request => fetch(new Request(request.url.replace('http://server', this.#url()), request))
    })
    this.#follower = new Follower(this.#client.rest, session_id)
    this.#watch = this.#client.events.watch(session_id, {
      from: 'snapshot',
      onSnapshot: snapshot => {
        this.#conversation = conversationOf(snapshot)
      },
      onEvent: event => {
        if (this.#conversation) this.#conversation = reduce(this.#conversation, event)
      }
    })
    this.#connect()
  }

  readonly #WebSocket: never

  get seq(): number {
    return this.#watch.cursor?.seq ?? 0
  }

  get conversation(): Conversation | undefined {
    return this.#conversation
  }

  get transcript(): Follower {
    return this.#follower
  }

  snapshot(): Promise<Snapshot> {
    const params = { path: { session_id: this.#session_id } }
    return unwrap(this.#client.rest.GET('/api/v1/sessions/{session_id}/snapshot', { params }))
  }

  /** Cuts what is open; it connects again, to any server. */
  cut(): void {
    for (const socket of this.#sockets) if (this.#random() < 0.7) socket.terminate()
  }

  /** Reads nothing, or reads on. */
  halt(): void {
    for (const socket of this.#sockets) if (socket.readyState === WebSocket.OPEN) socket.pause()
  }

  goOn(): void {
    for (const socket of this.#sockets) if (socket.isPaused) socket.resume()
  }

  leave(): void {
    this.#isOnline = false
    for (const socket of this.#sockets) socket.terminate()
  }

  comeBack(): void {
    this.#isOnline = true
    for (const socket of this.#lost) socket.destroy()
    this.#lost.clear()
  }

  async catchUp(): Promise<void> {
    await this.#follower.catchUp().catch(() => undefined) // a server that goes away, or none
  }

  close(): void {
    this.#ended = true
    this.#follower.close()
    this.#client.close()
    this.#connection?.close()
    for (const socket of this.#sockets) socket.terminate()
  }

  #url(): string {
    const urls = this.#fleet.urls()
    return this.#isOnline ? (urls[Math.floor(this.#random() * urls.length)] ?? nowhere) : nowhere
  }

  /** Who is away is refused, or hears nothing until he is back: to be refused again and again says nothing more, and was half of the work. */
  #way(): ClientOptions {
    if (this.#isOnline || this.#random() < 0.5) return {}
    const socket = new Duplex({ read: () => undefined, write: (_bytes, _encoding, done) => done() })
    this.#lost.add(socket)
    return { createConnection: () => socket as Socket }
  }

  /** Keeps a connection for the transcript. */
  #connect(): void {
    if (this.#ended || this.#connecting) return
    this.#connecting = this.#open().then(
      () => {
        this.#connecting = undefined
      },
      () => {
        this.#connecting = undefined
        this.#connection?.close()
        setTimeout(() => this.#connect(), 20).unref()
      }
    )
  }

  /** What was subscribed is gone there. */
  #again(connection: Connection): void {
    this.#follower.attach(connection).catch(() => connection.close())
  }

  async #open(): Promise<void> {
    let isLost = false
    this.#connection = undefined
    const connection = await Connection.open({
      url: 'http://server',
      token: this.#fleet.token,
      socket: this.#WebSocket,
      silenceMs: 30_000,
      onFrame: frame => {
        this.#follower.take(frame)
        if (frame.type === 'resync_required' && this.#connection) this.#again(this.#connection)
      },
      onClose: () => {
        isLost = true
        this.#connect()
      }
    })
    this.#connection = connection
    await this.#follower.attach(connection)
    if (isLost) throw new Error('the connection was lost meanwhile')
  }
}
