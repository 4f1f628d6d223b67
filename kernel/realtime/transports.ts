/**
 * What carries connections: WebSockets, from the HTTP upgrade to an authenticated client (contract 3, Connection; contract 1, Authentication),
 * and code of this process.
 */
import { EventEmitter } from 'node:events'
import { type IncomingMessage, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import type { WebSocket, WebSocketServer } from 'ws'
import type { Gate } from '../access/gate.ts'
import type { Principal } from '../access/principal.ts'
import type { Environment } from '../environment.ts'
import { AppError, HostRefused, InternalError, Unauthorized } from '../errors.ts'
import { yieldToLoop } from '../lifecycle/wait.ts'
import type { Logger } from '../log/log.ts'
import type { Transport } from './connection.ts'
import type { LocalClient } from './types.ts'

const socketPath = '/api/v1/ws'

/** Lets the operating system notice peers that vanished without a word; the protocol itself has no heartbeat. */
const keepAliveMs = 60_000
/** A client that has not taken this much should be waited for: less is on its way, and waiting for it would leave both sides idle in turns. */
const fullBytes = 256 * 1024
/** After a close of ours the client has this long to answer it, or to take what was sent before. */
const closeGraceMs = 1000

/** Largest message of a client, in bytes; a larger one closes its connection with 1009. */
const messageBytes = 16 * 1024 * 1024

interface SocketsOptions {
  readonly gate: Gate
  accept(ws: WebSocket, transport: SocketTransport, principal: Principal, req: IncomingMessage): void
  /** True when no new connection may begin. */
  closing(): boolean
}

/** Handler of the HTTP server's `upgrade` event: checks path, ban, Host, Origin and credential in this order; refusals are raw HTTP. */
export function onSocket(env: Environment, { gate, accept, closing }: SocketsOptions) {
  let loaded: Promise<WebSocketServer> | undefined

  async function upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const ignore = () => undefined // a client that goes away while we check it is no failure of ours
    socket.on('error', ignore)
    if (closing() || !isSocketPath(req.url)) {
      socket.destroy()
      return
    }
    const others = yieldToLoop() // after a drop all clients come back at once
    if (others) await others
    const judged = await judge(req)
    if (judged instanceof AppError) {
      refuse(socket, judged)
      return
    }
    loaded ??= load()
    const server = await loaded
    if (closing() || socket.destroyed) {
      socket.destroy()
      return
    }
    socket.cork() // the answer and the first frame leave together
    server.handleUpgrade(req, socket, head, ws => {
      req.socket.setKeepAlive(true, keepAliveMs)
      endInTurn(socket)
      accept(ws, new SocketTransport(ws, socket), judged, req)
    })
    socket.uncork()
  }

  /** With the first client, so that the server is ready sooner. */
  async function load(): Promise<WebSocketServer> {
    const { WebSocketServer: Server } = await import('ws')
    return new Server({
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload: messageBytes,
      // Browsers drop a connection whose server selects none of the offered subprotocols.
      handleProtocols: offered => [...offered].find(name => name.startsWith(gate.bearerProtocol)) ?? false
    })
  }

  async function judge(req: IncomingMessage): Promise<Principal | AppError> {
    try {
      const { refusal, origin } = gate.check(req)
      if (refusal) return refusal
      if (origin === 'refused') return new AppError(HostRefused, { message: 'origin not allowed' })
      return (await gate.authenticateSocket(req)) ?? new AppError(Unauthorized)
    } catch (err) {
      if (AppError.is(err)) return err
      env.log.error({ err }, 'an upgrade could not be checked')
      return new AppError({ ...InternalError, status: 500 })
    }
  }

  function refuse(socket: Duplex, { spec, message }: AppError): void {
    const body = JSON.stringify({ code: spec.code, msg: message, data: null, request_id: env.newId() })
    const headers = {
      ...gate.securityHeaders,
      connection: 'close',
      'content-type': 'application/json; charset=utf-8',
      'content-length': String(Buffer.byteLength(body))
    }
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
    socket.once('finish', () => socket.destroy())
    socket.end([`HTTP/1.1 ${spec.status} ${STATUS_CODES[spec.status]}`, ...lines, '', body].join('\r\n'))
  }

  return (req: IncomingMessage, socket: Duplex, head: Buffer): void => {
    upgrade(req, socket, head).catch(err => {
      env.log.error({ err }, 'an upgrade failed')
      socket.destroy()
    })
  }
}

function isSocketPath(url: string | undefined): boolean {
  return url === socketPath || url?.startsWith(`${socketPath}?`) === true
}

/**
 * A network that breaks down ends all clients in one pass of the loop: each is let go when the loop has time for it. A client that has ended
 * its side and to whom nothing is under way is through; otherwise the library sends that first.
 */
function endInTurn(socket: Duplex): void {
  const library = socket.listeners('end')
  const letGo = () => {
    if (socket.destroyed) return
    if (socket.writableLength === 0) socket.destroy()
    else for (const listener of library) listener.call(socket)
  }
  socket.removeAllListeners('end')
  socket.once('end', () => {
    const others = yieldToLoop()
    if (others) void others.then(letGo)
    else letGo()
  })
}

const asText = { binary: false, compress: false } as const
const asBinary = { binary: true, compress: false } as const

const soon = Promise.resolve()

/** A WebSocket as it carries a connection. */
class SocketTransport implements Transport {
  readonly #ws: WebSocket
  readonly #socket: Duplex
  #gathering = false

  constructor(ws: WebSocket, socket: Duplex) {
    this.#ws = ws
    this.#socket = socket
  }

  get open(): boolean {
    return this.#ws.readyState === this.#ws.OPEN
  }

  get pending(): number {
    return this.#ws.bufferedAmount
  }

  get full(): boolean {
    return this.#socket.writableNeedDrain && this.#ws.bufferedAmount > fullBytes
  }

  /** What is sent in one go leaves with one call of the system. */
  send(bytes: Buffer, binary: boolean): void {
    if (!this.#gathering) {
      this.#gathering = true
      this.#socket.cork()
      void soon.then(() => {
        this.#gathering = false
        this.#socket.uncork()
      })
    }
    this.#ws.send(bytes, binary ? asBinary : asText)
  }

  pause(): void {
    this.#ws.pause()
  }

  resume(): void {
    this.#ws.resume()
  }

  close(code: number, reason: string): void {
    const ws = this.#ws
    if (ws.readyState === ws.CLOSED) return
    ws.close(code, reason)
    const timer = setTimeout(() => ws.terminate(), closeGraceMs)
    ws.once('close', () => clearTimeout(timer))
  }

  on(event: 'drain' | 'close', listener: () => void): void {
    if (event === 'drain') this.#socket.on('drain', listener)
    else this.#ws.once('close', listener)
  }
}

/** A client in this process that takes this much too little should be waited for. */
const localFullBytes = 64 * 1024

/** A connection without a socket: the other end is code of this process (a bridge, a test, another instance). */
export class LocalTransport extends EventEmitter implements Transport {
  readonly #client: LocalClient
  readonly #log: Logger
  /** The client has taken, or refused, what was sent so far. */
  #taken: Promise<void> = Promise.resolve()
  #pending = 0
  #closing = false
  #over = false
  #paused = false
  #senders: (() => void)[] = []

  constructor(client: LocalClient, log: Logger) {
    super()
    this.#client = client
    this.#log = log
  }

  get open(): boolean {
    return !this.#closing
  }

  get pending(): number {
    return this.#pending
  }

  get full(): boolean {
    return this.#pending > localFullBytes
  }

  /** The client gets it behind what was sent before, never inside this call. */
  send(bytes: Buffer, binary: boolean): void {
    if (!this.open) return
    this.#pending += bytes.length
    this.#taken = this.#taken.then(() => this.#give(bytes, binary))
  }

  pause(): void {
    this.#paused = true
  }

  resume(): void {
    this.#paused = false
    for (const resolve of this.#senders.splice(0)) resolve()
  }

  /** Resolves while the server takes messages. */
  ready(): Promise<void> {
    return this.#paused && !this.#over ? new Promise(resolve => this.#senders.push(resolve)) : Promise.resolve()
  }

  /** What was sent before is given to the client first. */
  close(code: number, reason: string): void {
    this.#closing = true
    const finish = () => this.finish(code, reason)
    void this.#taken.then(finish)
    setTimeout(finish, closeGraceMs).unref()
  }

  /** The end, whatever waits. */
  finish(code: number, reason: string): void {
    if (this.#over) return
    this.#closing = true
    this.#over = true
    this.resume()
    this.emit('close')
    try {
      this.#client.closed?.(code, reason)
    } catch (err) {
      this.#log.warn({ err }, 'a client in this process failed at its end')
    }
  }

  async #give(bytes: Buffer, binary: boolean): Promise<void> {
    if (this.#over) return
    try {
      await this.#client.message(bytes, binary)
    } catch (err) {
      this.#log.warn({ err }, 'a client in this process failed')
      this.finish(1011, 'client failed')
    }
    this.#pending -= bytes.length
    if (this.#pending === 0) this.emit('drain')
  }
}
