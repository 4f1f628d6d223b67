/** Sockets of a hub: who is connected, how a connection begins and ends. */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'
import type { EventSpec } from '../contract.ts'
import type { MountedFrame } from '../lifecycle/registry.ts'
import { ClientConnection } from './connection.ts'
import { controlHandlers } from './control-frames.ts'
import type { Fanout } from './fanout.ts'
import { FrameAnswers } from './frame-answers.ts'
import { FrameQueue } from './frame-queue.ts'
import type { HubOptions } from './hub.ts'
import { replayLimit } from './journal.ts'
import type { StreamTable } from './stream-table.ts'
import { Subscriptions } from './subscriptions.ts'
import type { ConnectionInfo, Watermark } from './types.ts'
import { Upgrader } from './upgrade.ts'

export interface SocketSideOptions extends HubOptions {
  readonly fanout: Fanout
  readonly table: StreamTable
  spec(type: string): EventSpec | undefined
}

const defaultBufferBytes = 8 * 1024 * 1024
const defaultMessageBytes = 16 * 1024 * 1024
/** Lets the operating system notice peers that vanished without a word; the protocol itself has no heartbeat. */
const keepAliveMs = 60_000

export class SocketSide {
  readonly #options: SocketSideOptions
  readonly #subscriptions: Subscriptions
  readonly #answers: FrameAnswers
  readonly #upgrader: Upgrader
  /** In order of arrival. */
  readonly #connections = new Set<ClientConnection>()
  /** Sockets that are closing, and slots being closed. */
  readonly #leaving = new Set<Promise<void>>()
  #closing: Promise<void> | undefined

  constructor(options: SocketSideOptions) {
    this.#options = options
    const { gate, log } = options
    this.#subscriptions = new Subscriptions(options)
    const core = controlHandlers({ subscriptions: this.#subscriptions, checkToken: token => gate.bypass || gate.checkToken(token) })
    this.#answers = new FrameAnswers({ core, log, strict: options.strict, onViolation: error => options.onViolation(error) })
    this.#upgrader = new Upgrader({
      gate,
      log,
      newId: () => options.newId(),
      messageBytes: options.messageBytes ?? defaultMessageBytes,
      accept: (ws, socket, req) => this.#accept(ws, socket, req),
      closing: () => this.#closing !== undefined
    })
  }

  setFrames(frames: readonly MountedFrame[]): void {
    this.#answers.mount(frames)
  }

  connections(): ConnectionInfo[] {
    return [...this.#connections].map(connection => connection.info())
  }

  upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): void {
    this.#upgrader.upgrade(req, socket, head).catch(err => {
      this.#options.log.error({ err }, 'an upgrade failed')
      socket.destroy()
    })
  }

  /** Subscribers of the session missed events. */
  resync(session_id: string, at: Watermark): void {
    for (const connection of this.#connections) {
      if (connection.subscribed(session_id)) this.#subscriptions.sendResync(connection, session_id, 'buffer_overflow', at)
    }
  }

  /** The session is closed: its subscriptions end without a word. */
  endSubscriptions(session_id: string): void {
    this.#options.fanout.end(session_id)
    for (const connection of this.#connections) connection.forget(session_id)
  }

  /** Closes all with 1001; resolves when every socket is gone and its slots are closed. */
  close(): Promise<void> {
    this.#closing ??= this.#closeAll()
    return this.#closing
  }

  async #closeAll(): Promise<void> {
    this.#options.fanout.flush()
    for (const connection of [...this.#connections]) connection.shut(1001, 'server shutting down')
    while (this.#leaving.size > 0) await Promise.all(this.#leaving)
  }

  #accept(ws: WebSocket, socket: Duplex, req: IncomingMessage): void {
    const { options, log } = { options: this.#options, log: this.#options.log }
    const now = options.now().toISOString()
    const connection = new ClientConnection({
      id: `conn_${options.newId()}`,
      ws,
      socket,
      hosts: options.hosts,
      connected_at: now,
      remote_address: req.socket.remoteAddress ?? null,
      user_agent: req.headers['user-agent'] ?? null,
      bufferBytes: options.bufferBytes ?? defaultBufferBytes,
      flush: session_id => options.fanout.flush(session_id),
      subscribe: async (self, session_id, filter) => (await this.#subscriptions.subscribe(self, session_id, { filter })).found,
      onEnd: self => this.#end(self)
    })
    req.socket.setKeepAlive(true, keepAliveMs)
    const queue = new FrameQueue(connection, ws, this.#answers.answer, log)
    // An oversized or broken message ends in an error event: ws closes that connection by itself.
    ws.on('error', err => log.debug({ err, connection: connection.id }, 'a socket failed'))
    ws.on('message', data => queue.receive(data))
    this.#connections.add(connection)
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
    options.fanout.add(connection)
  }

  #end(connection: ClientConnection): void {
    const { fanout, log } = this.#options
    this.#connections.delete(connection)
    fanout.remove(connection)
    for (const session_id of connection.sessions()) {
      fanout.unsubscribe(session_id, connection)
      connection.forget(session_id)
    }
    const leaving = (async () => {
      for (const err of await connection.closeHost()) log.error({ err, connection: connection.id }, 'clean-up of a connection failed')
      await connection.closed
    })().finally(() => this.#leaving.delete(leaving))
    this.#leaving.add(leaving)
  }
}
