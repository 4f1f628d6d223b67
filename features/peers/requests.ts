/** Requests that one server passes on to another, as HTTP over an authenticated socket: bodies, streams and aborts go as they do anywhere. */
import { Agent, createServer, type IncomingHttpHeaders, type OutgoingHttpHeaders, request, type Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { AppError, type Asker, movedStatus, OwnerSilent, type RelayedReply, type Relays } from '../../kernel/index.ts'
import { type Place, Unreached } from './owner.ts'

/** Who asks, as the server that was asked has found out. */
const askerHeader = 'x-relayed-asker'
/** What belongs to one connection, or to nobody but the server that was asked. */
const kept = new Set([
  'authorization',
  'connection',
  'cookie',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  askerHeader
])
const freeSockets = 16

/** The requests of this server to one other. */
export class Requests {
  readonly #agent: Agent
  /** Those that were not answered yet. */
  readonly #waiting = new Set<(error: Error) => void>()

  constructor(dial: () => Promise<Socket>) {
    const agent = new Agent({ keepAlive: true, maxFreeSockets: freeSockets })
    agent.createConnection = ((_options: unknown, done: (error: Error | null, socket?: Duplex) => void) => {
      dial().then(
        socket => done(null, socket),
        (error: Error) => done(error)
      )
      return undefined
    }) as unknown as Agent['createConnection'] // the library takes the socket from the callback as well
    this.#agent = agent
  }

  /** See `Place.relay`. */
  ask(...[{ id, method, url: path, headers, principal, remote_address }, body, signal]: Parameters<Place['relay']>): Promise<RelayedReply> {
    const asker: Asker = { principal, remote_address }
    const isStream = body !== undefined && !Buffer.isBuffer(body)
    const safe = (method === 'GET' || method === 'HEAD') && !body
    return new Promise((resolve, reject) => {
      const all = { ...passable(headers), 'x-request-id': id, [askerHeader]: JSON.stringify(asker) }
      const asked = request({ agent: this.#agent, method, path, headers: all, signal })
      let sent = false
      const settle = () => this.#waiting.delete(give)
      const fail = (cause: unknown) => {
        settle()
        if (signal.aborted) reject(cause)
        else reject(sent && !safe ? new AppError(OwnerSilent, { cause }) : new Unreached(cause))
      }
      const give = (error: Error) => {
        fail(error)
        asked.destroy()
      }
      this.#waiting.add(give)
      asked.once('error', fail)
      asked.once('socket', socket => {
        sent = true
        if (body && isStream)
          pipeline(body, asked).catch(() => undefined) // told by the request's own error
        else asked.end(body)
        socket.resume()
      })
      asked.once('response', reply => {
        settle()
        asked.on('error', () => undefined) // the body ends with it
        if (reply.statusCode === movedStatus) {
          reply.resume()
          reject(isStream ? new AppError(OwnerSilent) : new Unreached())
          return
        }
        resolve({ status: reply.statusCode ?? 502, headers: passable(reply.headers), body: reply })
      })
    })
  }

  /** Ends those that were not answered: the other server hangs. */
  giveUp(): void {
    for (const give of [...this.#waiting]) give(new Error('the other server says nothing'))
  }

  close(): void {
    this.giveUp()
    this.#agent.destroy()
  }
}

/** Answers what other servers pass on; sockets come by `emit('connection')`. */
export function answering(relays: Relays): Server {
  const options = { requireHostHeader: false, requestTimeout: 0, headersTimeout: 60_000, keepAliveTimeout: 0 }
  const server = createServer(options, (req, res) => {
    const text = req.headers[askerHeader]
    delete req.headers[askerHeader]
    relays.serve(req, res, JSON.parse(String(text)) as Asker)
  })
  server.on('clientError', (_error, socket) => socket.destroy())
  return server
}

function passable(headers: IncomingHttpHeaders | OutgoingHttpHeaders): OutgoingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name, value]) => value !== undefined && !kept.has(name)))
}
