/** The way from an HTTP upgrade to an authenticated WebSocket (contract 3, Connection; contract 1, Authentication). */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'
import { bearerProtocol, type Gate } from '../access/gate.ts'
import { type ErrorSpec, HostRefused, InternalError, Unauthorized } from '../errors.ts'
import type { Logger } from '../log/log.ts'

export const socketPath = '/api/v1/ws'

export interface UpgraderOptions {
  readonly gate: Gate
  readonly log: Logger
  newId(): string
  /** Largest message in bytes. */
  readonly messageBytes: number
  accept(ws: WebSocket, socket: Duplex, req: IncomingMessage): void
  /** True when no new connection may begin. */
  closing(): boolean
}

const reasons: Readonly<Record<number, string>> = {
  401: 'Unauthorized',
  403: 'Forbidden',
  429: 'Too Many Requests',
  500: 'Internal Server Error'
}

export class Upgrader {
  readonly #options: UpgraderOptions
  readonly #server: WebSocketServer

  constructor(options: UpgraderOptions) {
    this.#options = options
    this.#server = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload: options.messageBytes,
      // Browsers drop a connection whose server selects none of the offered subprotocols.
      handleProtocols: offered => [...offered].find(name => name.startsWith(bearerProtocol)) ?? false
    })
  }

  /** Checks path, ban, Host, Origin and credential in this order; refusals are raw HTTP answers. */
  async upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const ignore = () => undefined // a client that goes away while we check it is no failure of ours
    socket.on('error', ignore)
    if (this.#options.closing() || !isSocketPath(req.url)) {
      socket.destroy()
      return
    }
    const refusal = await this.#judge(req)
    if (refusal) {
      this.#refuse(socket, refusal.spec, refusal.message)
    } else if (this.#options.closing() || socket.destroyed) {
      socket.destroy()
    } else {
      this.#server.handleUpgrade(req, socket, head, ws => this.#options.accept(ws, socket, req))
    }
  }

  async #judge(req: IncomingMessage): Promise<{ spec: ErrorSpec; message: string } | undefined> {
    const { gate, log } = this.#options
    try {
      const { refusal, origin } = gate.check(req)
      if (refusal) return refusal
      if (origin === 'refused') return { spec: HostRefused, message: 'origin not allowed' }
      return (await gate.authenticateSocket(req)) ? undefined : { spec: Unauthorized, message: Unauthorized.message }
    } catch (err) {
      log.error({ err }, 'an upgrade could not be checked')
      return { spec: { ...InternalError, status: 500 }, message: InternalError.message }
    }
  }

  #refuse(socket: Duplex, spec: ErrorSpec, message: string): void {
    const body = JSON.stringify({ code: spec.code, msg: message, data: null, request_id: this.#options.newId() })
    const headers = {
      ...this.#options.gate.securityHeaders,
      connection: 'close',
      'content-type': 'application/json; charset=utf-8',
      'content-length': String(Buffer.byteLength(body))
    }
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
    socket.once('finish', () => socket.destroy())
    socket.end([`HTTP/1.1 ${spec.status} ${reasons[spec.status] ?? 'Refused'}`, ...lines, '', body].join('\r\n'))
  }
}

function isSocketPath(url: string | undefined): boolean {
  return url === socketPath || url?.startsWith(`${socketPath}?`) === true
}
