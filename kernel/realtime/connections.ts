/** Who is connected, by socket or within this process: how a connection begins, what it is told, how it ends. */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Gate } from '../access/gate.ts'
import { inProcess, type Principal } from '../access/principal.ts'
import type { MakeRemote } from '../elsewhere.ts'
import type { Environment } from '../environment.ts'
import { developerError } from '../errors.ts'
import type { MountedFrame } from '../lifecycle/unit.ts'
import { late, waitAtMost, yieldToLoop } from '../lifecycle/wait.ts'
import { ClientConnection, messageOf, type Transport } from './connection.ts'
import { controlHandlers } from './control-frames.ts'
import { onceKey } from './event-frame.ts'
import { FrameQueue, Frames } from './frames.ts'
import { replayLimit, type Watermark } from './journal.ts'
import { type LocalClient, type LocalConnection, LocalTransport } from './local.ts'
import { Sockets } from './sockets.ts'
import { Subscriptions, type SubscriptionsOptions } from './subscriptions.ts'
import type { ConnectionInfo } from './types.ts'

export interface ConnectionsOptions extends SubscriptionsOptions {
  readonly gate: Gate
}

/** What the list of connections tells about the other side. */
interface Peer {
  readonly principal: Principal
  readonly remote_address: string | null
  readonly user_agent: string | null
  /** See `ConnectionOptions.relayed`. */
  readonly relayed?: boolean
}

export class Connections {
  /** See `Relays.setRemote`. */
  makeRemote: MakeRemote | undefined
  readonly #env: Environment
  readonly #options: ConnectionsOptions
  readonly #subscriptions: Subscriptions
  readonly #frames: Frames
  readonly #sockets: Sockets
  /** In order of arrival. */
  readonly #open: Set<ClientConnection>
  /** Connections that are closing, and slots being closed. */
  readonly #leaving = new Set<Promise<void>>()
  #closing: Promise<void> | undefined

  constructor(env: Environment, options: ConnectionsOptions) {
    this.#env = env
    this.#options = options
    this.#open = options.table.fanout.connections
    const { gate, subject } = options
    this.#subscriptions = new Subscriptions(env, options)
    const subscriptions = this.#subscriptions
    this.#frames = new Frames(env, controlHandlers({ subscriptions, gate, subject }), subscriptions)
    this.#sockets = new Sockets(env, {
      gate,
      closing: () => this.#closing !== undefined,
      accept: (ws, transport, principal, req) => {
        const { remoteAddress = null } = req.socket
        const connection = this.#begin(transport, {
          principal,
          remote_address: remoteAddress,
          user_agent: req.headers['user-agent'] ?? null
        })
        const queue = new FrameQueue(env, this.#frames, connection, transport)
        // An oversized or broken message ends in an error event: ws closes that connection by itself.
        ws.on('error', err => env.log.debug({ err, connection: connection.id }, 'a socket failed'))
        ws.on('message', (data: Buffer, binary) => queue.receive(data, binary)) // ws hands out buffers unless told otherwise
      }
    })
  }

  /** Replaces the request frames of packs. */
  mount(frames: readonly MountedFrame[]): void {
    this.#frames.mount(frames)
  }

  /** Open connections, oldest first. */
  list(): ConnectionInfo[] {
    return [...this.#open].filter(connection => !connection.relayed).map(connection => connection.info())
  }

  /** Handler of the HTTP server's `upgrade` event. */
  upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): void {
    this.#sockets.upgrade(req, socket, head)
  }

  /**
   * Connects code of this process as a client, without a socket (`relayed`: for a client of another server). Throws when connections are
   * being closed.
   */
  connect(client: LocalClient, relayed = false): LocalConnection {
    if (this.#closing) throw developerError('server_stopping')
    const transport = new LocalTransport(client, this.#env.log)
    const { principal = inProcess, user_agent = null, remote_address = null } = client
    const connection = this.#begin(transport, { principal, remote_address, user_agent, relayed })
    connection.listen()
    const queue = new FrameQueue(this.#env, this.#frames, connection, transport)
    const receive = async (data: Buffer, binary: boolean) => {
      if (connection.open) queue.receive(data, binary)
      await transport.ready()
    }
    return {
      id: connection.id,
      send: async (frame, bytes) => await receive(messageOf(frame, bytes), bytes !== undefined),
      receive,
      close: () => transport.finish(1000, '')
    }
  }

  /** Closes the connections of some principals with 1008, for example those of a token that is not valid any more. */
  disconnect(which: (principal: Principal) => boolean, reason: string): void {
    for (const connection of [...this.#open]) if (which(connection.principal)) connection.shut(1008, reason)
  }

  /** Subscribers of the session missed events. */
  resync(session_id: string, at: Watermark): void {
    for (const connection of this.#open) {
      if (connection.subscribed(session_id)) this.#subscriptions.sendResync(connection, session_id, 'buffer_overflow', at)
    }
  }

  /** Another server has the session now: its subscribers resync and go on there. */
  moved(session_id: string, at: Watermark | undefined): void {
    for (const connection of [...this.#open]) {
      if (!connection.subscribed(session_id)) continue
      if (connection.relayed) {
        connection.shut(1001, 'the session has moved') // its server looks where
        continue
      }
      const filter = connection.filterOf(session_id)
      this.#subscriptions.leave(connection, session_id)
      this.#subscriptions.sendResync(connection, session_id, 'buffer_overflow', at ?? { seq: 0 })
      connection.remote?.follow(session_id, { filter, cursor: at })
    }
  }

  /** The session is closed: its subscriptions end without a word. */
  endSubscriptions(session_id: string): void {
    this.#options.table.fanout.end(session_id)
    for (const connection of this.#open) connection.forget(session_id)
  }

  /** Closes all with 1001 and takes no new ones; who does not go within a second is cut. Resolves when every one is gone and its slots are closed. */
  close(): Promise<void> {
    this.#closing ??= this.#closeAll()
    return this.#closing
  }

  async #closeAll(): Promise<void> {
    this.#options.table.fanout.flush()
    for (const connection of [...this.#open]) connection.shut(1001, 'server shutting down')
    while (this.#leaving.size > 0) await Promise.all(this.#leaving)
  }

  #begin(transport: Transport, peer: Peer): ClientConnection {
    const { fanout } = this.#options.table
    const now = this.#env.now().toISOString()
    const connection = new ClientConnection(this.#env, {
      id: `conn_${this.#env.newId()}`,
      transport,
      relayed: false,
      ...peer,
      connected_at: now,
      remote: self =>
        this.makeRemote?.(self, {
          filterField: () => this.#options.subject()?.filter,
          once: (type, session_id, seq) => onceKey(this.#options.spec(type), session_id, seq),
          subscribe: async (session_id, wish, wanted) => {
            const subscribed = await this.#subscriptions.attempt(self, session_id, wish, cause => cause.silent || !wanted())
            return { ...subscribed, mark: subscribed.mark ?? this.#subscriptions.written(session_id) }
          },
          resync: (session_id, reason, at) =>
            this.#subscriptions.sendResync(self, session_id, reason, at ?? this.#subscriptions.written(session_id) ?? { seq: 0 })
        }),
      flush: session_id => fanout.flush(session_id),
      subscribe: async (self, session_id, filter) => (await this.#subscriptions.subscribe(self, session_id, { filter })).found,
      onEnd: self => this.#end(self)
    })
    this.#open.add(connection)
    connection.send({
      type: 'server_hello',
      timestamp: now,
      payload: {
        ws_connection_id: connection.id,
        protocol_version: 2,
        max_event_buffer_size: replayLimit,
        capabilities: { event_batching: false, compression: false }
      }
    })
    return connection
  }

  #end(connection: ClientConnection): void {
    this.#open.delete(connection)
    for (const session_id of connection.sessions()) this.#subscriptions.leave(connection, session_id)
    const leaving = this.#leave(connection).finally(() => this.#leaving.delete(leaving))
    this.#leaving.add(leaving)
  }

  async #leave(connection: ClientConnection): Promise<void> {
    const { log, options } = this.#env
    const others = yieldToLoop() // a network that breaks down cuts all clients at once
    if (others) await others
    const errors = await waitAtMost(connection.closeHost(), options.graceMs)
    if (errors === late) log.error({ connection: connection.id }, 'clean-up of a connection takes too long and was given up')
    else for (const err of errors) log.error({ err, connection: connection.id }, 'clean-up of a connection failed')
    await connection.closed
  }
}
