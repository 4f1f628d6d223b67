/** Who is connected, by socket or within this process: how a connection begins, what it is told, how it ends. */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { inProcess, type Principal } from '../access/principal.ts'
import { type Elsewhere, type RemotePorts, sessionGone } from '../elsewhere.ts'
import type { Environment } from '../environment.ts'
import { developerError } from '../errors.ts'
import { late, waitAtMost, yieldToLoop } from '../lifecycle/wait.ts'
import { ClientConnection, type Keeper, messageOf, type Peer, type Transport } from './connection.ts'
import { controlFrames } from './control-frames.ts'
import { onceKey } from './event-frame.ts'
import { Frames, frameQueue } from './frames.ts'
import { replayLimit, type Watermark } from './journal.ts'
import { type Realtime, Subscriptions } from './subscriptions.ts'
import { LocalTransport, onSocket } from './transports.ts'
import type { ConnectionInfo, LocalClient, LocalConnection } from './types.ts'

export class Connections {
  /** See `Relays.setElsewhere`. */
  elsewhere: Elsewhere | undefined
  readonly frames: Frames
  /** Handler of the HTTP server's `upgrade` event. */
  readonly upgrade: (req: IncomingMessage, socket: Duplex, head: Buffer) => void
  readonly #env: Environment
  readonly #realtime: Realtime
  readonly #keeper: Keeper
  readonly #subscriptions: Subscriptions
  /** In order of arrival. */
  readonly #open: Set<ClientConnection>
  /** Connections that are closing, and slots being closed. */
  readonly #leaving = new Set<Promise<void>>()
  #closing: Promise<void> | undefined

  constructor(env: Environment, realtime: Realtime) {
    this.#env = env
    this.#realtime = realtime
    const { fanout } = realtime.table
    this.#open = fanout.connections
    const subscriptions = new Subscriptions(env, realtime, () => this.elsewhere?.others === true)
    this.#subscriptions = subscriptions
    this.frames = new Frames(env, controlFrames(subscriptions, realtime), subscriptions)
    subscriptions.standing = (connection, frame) => this.frames.again(connection, frame)
    this.#keeper = {
      subscribe: async (connection, session_id) => (await subscriptions.subscribe(connection, session_id, {})).found,
      remote: connection => this.elsewhere?.remote(connection, this.#portsOf(connection)),
      ended: connection => this.#end(connection)
    }
    this.upgrade = onSocket(env, {
      gate: realtime.gate,
      closing: () => this.#closing !== undefined,
      accept: (ws, transport, principal, req) => {
        const { remoteAddress: remote_address = null } = req.socket
        const { 'user-agent': user_agent = null } = req.headers
        const connection = this.#begin(transport, { principal, remote_address, user_agent, relayed: false })
        const receive = frameQueue(env, this.frames, connection, transport)
        // An oversized or broken message ends in an error event: ws closes that connection by itself.
        ws.on('error', err => env.log.debug({ err, connection: connection.id }, 'a socket failed'))
        ws.on('message', (data: Buffer, binary) => receive(data, binary)) // ws hands out buffers unless told otherwise
      }
    })
  }

  /** Open connections, oldest first. */
  list(): ConnectionInfo[] {
    return [...this.#open].filter(connection => !connection.relayed).map(connection => connection.info())
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
    const take = frameQueue(this.#env, this.frames, connection, transport)
    const receive = async (data: Buffer, binary: boolean) => {
      if (connection.open) take(data, binary)
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
      connection.remote(true)?.follow(session_id, { filter, cursor: at })
    }
  }

  /** The session is deleted: its subscriptions end without a word to clients. */
  endSubscriptions(session_id: string): void {
    for (const connection of this.#open) {
      if (connection.relayed && connection.subscribed(session_id)) connection.send({ type: sessionGone, session_id })
      this.#realtime.table.fanout.unsubscribe(session_id, connection)
      connection.forget(session_id)
      connection.forgetStanding(session_id)
    }
  }

  /** Closes all with 1001 and takes no new ones; who does not go within a second is cut. Resolves when every one is gone and its slots are closed. */
  close(): Promise<void> {
    this.#closing ??= this.#closeAll()
    return this.#closing
  }

  async #closeAll(): Promise<void> {
    for (const connection of [...this.#open]) connection.shut(1001, 'server shutting down')
    while (this.#leaving.size > 0) await Promise.all(this.#leaving)
  }

  #begin(transport: Transport, peer: Peer): ClientConnection {
    const connection = new ClientConnection(this.#env, transport, peer, this.#keeper)
    this.#open.add(connection)
    connection.send({
      type: 'server_hello',
      timestamp: connection.connected_at,
      payload: {
        ws_connection_id: connection.id,
        protocol_version: 2,
        max_event_buffer_size: replayLimit,
        capabilities: { event_batching: false, compression: false }
      }
    })
    return connection
  }

  #portsOf(connection: ClientConnection): RemotePorts {
    const { subject, spec } = this.#realtime
    const subscriptions = this.#subscriptions
    return {
      filterField: () => subject()?.filter,
      once: (type, session_id, seq) => onceKey(spec(type), session_id, seq),
      subscribe: (session_id, wish) =>
        subscriptions.subscribeMoved(connection, session_id, wish, wish.moved ? connection.standing(session_id) : []),
      leave: session_id => subscriptions.leave(connection, session_id),
      written: session_id => subscriptions.written(session_id),
      resync: (session_id, reason, at) =>
        subscriptions.sendResync(connection, session_id, reason, at ?? subscriptions.written(session_id) ?? { seq: 0 })
    }
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
    const errors = await waitAtMost(
      connection.closeHost(() => developerError('client_gone')),
      options.graceMs
    )
    if (errors === late) log.error({ connection: connection.id }, 'clean-up of a connection takes too long and was given up')
    else for (const err of errors) log.error({ err, connection: connection.id }, 'clean-up of a connection failed')
    await connection.closed
  }
}
