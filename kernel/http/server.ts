/** The listening socket: server options, port retry, orderly close. */
import { once } from 'node:events'
import { createServer as createHttpServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { developerError } from '../errors.ts'
import { hasBody } from './body.ts'

/** How long a connection whose request was refused as a whole may take to read the reason, ms. */
const lastWordMs = 1_000

/** What is answered to bytes that are no request; 400 for other reasons. */
const refusals: Readonly<Record<string, number>> = { HPE_HEADER_OVERFLOW: 431, ERR_HTTP_REQUEST_TIMEOUT: 408 }

/** Connections that may wait to be accepted: all clients of a server come back at once when it starts again. The system may take less. */
const waitingConnections = 4_096

/** Open connections by server. Node itself counts a connection that never sent a byte (browsers keep spare ones) as busy. */
const connections = new WeakMap<Server, Set<Socket>>()

/**
 * An HTTP server with the limits of this product: 60 s for the header block, none for the reply (streams, slow turns).
 * Bodies have their own clock in the request pipeline, because uploads may take longer than any fixed limit.
 */
export function createServer(handler: (req: IncomingMessage, res: ServerResponse) => void): Server {
  // A request without Host is answered by the Host check (403 with an envelope) instead of the library's bare 400.
  const limits = { requireHostHeader: false, requestTimeout: 0, headersTimeout: 60_000, noDelay: true }
  const server = createHttpServer({ ...limits, ...readsOffers }, (req, res) => {
    if (req.headers.upgrade !== undefined) res.shouldKeepAlive = false // the library loses what is pipelined behind it
    handler(req, res)
  })
  const open = new Set<Socket>()
  connections.set(server, open)
  server.on('connection', socket => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const reply = (socket as { _httpMessage?: ServerResponse | null })._httpMessage // the reply under way, if any: not to be written into
    if (error.code === 'ECONNRESET' || !socket.writable || reply?.headersSent) {
      socket.destroy()
      return
    }
    const status = refusals[error.code ?? ''] ?? 400
    socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`)
    // The client gets to read this; one that does not close its side is not kept for it.
    const cut = setTimeout(() => socket.destroy(), lastWordMs).unref()
    socket.once('close', () => clearTimeout(cut))
  })
  return server
}

const offersWebSocket = (req: IncomingMessage) => /\bwebsocket\b/i.test(req.headers.upgrade ?? '')

/** From Node 25 on the body of an offer does not come with the socket, but with the request: such a request is served where it came. */
const readsOffers =
  Number.parseInt(process.versions.node, 10) < 25
    ? {}
    : { shouldUpgradeCallback: (req: IncomingMessage) => offersWebSocket(req) || !hasBody(req) }

/**
 * Sends WebSocket upgrades to `upgrade`. The library hands over every other offer as well (HTTP/2 over clear text, which some clients
 * put on all their requests): such a request goes back to the server without its offer and is answered as it stands (RFC 9110 §7.8).
 */
export function onUpgrade(server: Server, upgrade: (req: IncomingMessage, socket: Duplex, head: Buffer) => void): void {
  server.on('upgrade', (req: IncomingMessage, socket: Duplex, head: Buffer) => {
    if (offersWebSocket(req)) {
      upgrade(req, socket, head)
      return
    }
    if (head.length > 0) socket.unshift(head)
    socket.unshift(headWithoutOffer(req))
    afterReplies(socket as Socket, () => server.emit('connection', socket)) // what this server listens on is always a Socket
  })
}

/**
 * Runs `next` once the replies to earlier requests of the connection are out: the library lines up replies per parser, so those of a
 * second one would be lost behind them. It has taken its hands off the socket, so writable again must be told to the reply under way.
 */
function afterReplies(socket: Socket, next: () => void): void {
  const { _httpMessage: reply } = socket as { _httpMessage?: ServerResponse | null }
  if (!reply) {
    if (socket.destroyed) return
    socket.setTimeout(0) // the clock of an idle connection was started by the last reply
    next()
    return
  }
  const drained = () => reply.emit('drain')
  socket.on('drain', drained)
  reply.once('close', () => {
    socket.off('drain', drained)
    afterReplies(socket, next)
  })
}

function headWithoutOffer(req: IncomingMessage): Buffer {
  const raw = req.rawHeaders
  let text = `${req.method} ${req.url} HTTP/${req.httpVersion}\r\n`
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i]!.toLowerCase()
    if (name === 'upgrade' || name === 'http2-settings') continue
    const kept = (part: string) => !/^\s*(upgrade|http2-settings)\s*$/i.test(part)
    const value = name === 'connection' ? raw[i + 1]!.split(',').filter(kept).join(',') : raw[i + 1]!
    if (value !== '' || name !== 'connection') text += `${raw[i]}: ${value}\r\n`
  }
  return Buffer.from(`${text}\r\n`, 'latin1')
}

/** A taken port is tried again with so many that follow. */
const retries = 100

/** Binds (port 0: any free one) and resolves to the real address. Rejects with the system error, or when every tried port is taken. */
export async function listen(server: Server, host: string, port: number): Promise<{ readonly host: string; readonly port: number }> {
  const last = port === 0 ? 0 : Math.min(port + retries, 65_535)
  for (let attempt = port; ; attempt++) {
    try {
      // An empty host means all addresses, as the library does without one.
      server.listen({ ...(host === '' ? {} : { host }), port: attempt, backlog: waitingConnections })
      await once(server, 'listening')
      return { host, port: (server.address() as AddressInfo).port }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
      if (attempt >= last) {
        const range = attempt === port ? `port ${port} is` : `ports ${port} to ${attempt} are`
        throw developerError('ports_taken', range, host)
      }
    }
  }
}

/** Stops listening, lets running replies finish for at most `graceMs`, then cuts what is left. */
export function closeServer(server: Server, graceMs: number): Promise<void> {
  if (!server.listening) return Promise.resolve()
  return new Promise(resolve => {
    const open = connections.get(server) ?? new Set()
    const sweep = () => {
      server.closeIdleConnections()
      for (const socket of open) if (socket.bytesRead === 0) socket.destroy()
    }
    const sweeper = setInterval(sweep, 25) // a connection turns idle when its last reply is out
    const limit = setTimeout(() => {
      server.closeAllConnections()
      for (const socket of open) socket.destroy() // upgraded ones are not among the server's own
    }, graceMs)
    server.close(() => {
      clearInterval(sweeper)
      clearTimeout(limit)
      resolve()
    })
    sweep()
  })
}
