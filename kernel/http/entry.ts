/** The way in of every request: from a connection through the gate, or from inside this process; then routing and the pipeline. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { parse } from 'node:querystring'
import type { Readable } from 'node:stream'
import { type Gate, maskAuthorization } from '../access/gate.ts'
import { anonymous, type Principal } from '../access/principal.ts'
import type { AnyRoute } from '../contract.ts'
import type { Environment } from '../environment.ts'
import { AppError, Unauthorized } from '../errors.ts'
import type { KernelHooks } from '../lifecycle/hooks.ts'
import { limitedStream, readJson } from './body.ts'
import { sendBinary } from './bytes.ts'
import { type Injected, InjectedExchange, type InjectInput } from './inject.ts'
import { type Exchange, Pipeline, routeMissing } from './pipeline.ts'
import { type FileReply, finish, type StreamReply } from './reply.ts'
import { type MountedRoute, RouteTable, type Target } from './router.ts'

export class HttpEntry {
  readonly #env: Environment
  readonly #gate: Gate
  readonly #pipeline: Pipeline
  #table = new RouteTable([])

  constructor(env: Environment, { gate, hooks }: { gate: Gate; hooks: KernelHooks }) {
    this.#env = env
    this.#gate = gate
    this.#pipeline = new Pipeline(env, hooks)
  }

  /** Replaces the whole route table at once. Requests that are under way finish on the old one. */
  mount(routes: readonly MountedRoute[]): void {
    this.#table = new RouteTable(routes)
  }

  /** The request listener; may be passed around on its own. */
  readonly handler = (req: IncomingMessage, res: ServerResponse): void => {
    const exchange = new HttpExchange(requestId(req, this.#env), req, res, this.#env.options.bodyLimitBytes)
    try {
      if (!this.#admit(req, res, exchange)) return
      const target = this.#table.find(exchange.method, exchange.url)
      if (target.open) {
        maskAuthorization(req)
        void this.#pipeline.serve(target, exchange)
        return
      }
      const found = this.#gate.authenticate(req)
      if (!(found instanceof Promise)) this.#serve(target, exchange, found)
      else {
        found
          .then(principal => this.#serve(target, exchange, principal))
          .catch((error: unknown) => this.#pipeline.fail(error, exchange, target.route))
      }
    } catch (error) {
      this.#pipeline.fail(error, exchange) // nothing may leave a request listener: it would end the process
    }
  }

  #serve(target: Target, exchange: HttpExchange, principal: Principal | undefined): void {
    if (principal) {
      exchange.principal = principal
      void this.#pipeline.serve(target, exchange) // never rejects
    } else this.#pipeline.fail(new AppError(Unauthorized), exchange, target.route)
  }

  /** Asks a route without a socket; see `Kernel.inject`. */
  async inject<R extends AnyRoute>(route: R, input: InjectInput): Promise<Injected<R>> {
    const exchange = new InjectedExchange(this.#env.newId(), route, input)
    await this.#pipeline.serve(this.#table.find(exchange.method, exchange.url), exchange)
    return exchange.answer() as Injected<R> // the pipeline answered as the route declares
  }

  /** Ban, Host, Origin, preflight. False: answered already. */
  #admit(req: IncomingMessage, res: ServerResponse, exchange: HttpExchange): boolean {
    const gate = this.#gate
    for (const name in gate.securityHeaders) res.setHeader(name, gate.securityHeaders[name]!)
    const verdict = gate.check(req)
    if (verdict.headers) for (const name in verdict.headers) res.setHeader(name, verdict.headers[name]!)
    if (verdict.refusal) throw new AppError(verdict.refusal.spec, { message: verdict.refusal.message })
    if (req.method !== 'OPTIONS') return true
    if (req.headers.origin === undefined) throw routeMissing(exchange)
    res.writeHead(204).end()
    return false
  }
}

/** Echoed when it has 26 characters of Crockford base 32 in either case; the first of repeated values counts. */
function requestId(req: IncomingMessage, env: Environment): string {
  const given = req.headers['x-request-id']
  if (given === undefined) return env.newId()
  const first = String(given).split(',', 1)[0]!.trim()
  return /^[0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{26}$/.test(first) ? first : env.newId()
}

/** Uploads: time without a single byte after which the connection is cut, ms. */
const idleMs = 300_000

class HttpExchange implements Exchange {
  readonly id: string
  readonly method: string
  /** Target as received, before normalisation. */
  readonly url: string
  readonly began = performance.now()
  /** Nobody until the gate has found out. */
  principal: Principal = anonymous
  readonly #req: IncomingMessage
  readonly #res: ServerResponse
  /** Bytes of an unread body up to which the connection is kept. */
  readonly #keepBytes: number
  #stream: Readable | undefined

  constructor(id: string, req: IncomingMessage, res: ServerResponse, keepBytes: number) {
    this.id = id
    this.method = req.method ?? ''
    this.url = req.url ?? ''
    this.#req = req
    this.#res = res
    this.#keepBytes = keepBytes
  }

  get headers(): IncomingHttpHeaders {
    return this.#req.headers
  }

  get remote_address(): string | null {
    return this.#req.socket.remoteAddress ?? null
  }

  get stream(): Readable {
    return this.#stream ?? this.#req
  }

  get gone(): boolean {
    return this.#res.destroyed || this.#res.socket?.destroyed === true
  }

  get begun(): boolean {
    return this.#res.headersSent
  }

  onGone(listener: () => void): () => void {
    const res = this.#res
    const closed = () => {
      if (!res.writableFinished) listener()
    }
    if (res.destroyed) closed()
    else res.once('close', closed)
    return () => res.off('close', closed)
  }

  query(): Readonly<Record<string, unknown>> {
    const target = this.url.split('#', 1)[0]!
    const start = target.indexOf('?')
    return start < 0 ? {} : parse(target.slice(start + 1))
  }

  body(limit: number): Promise<unknown> {
    return readJson(this.#req, limit)
  }

  openStream(limit: number | undefined): void {
    if (limit !== undefined) this.#stream = limitedStream(this.#req, limit)
    const { socket } = this.#req
    // A stalled upload does not hold its connection for ever; one that makes progress may take as long as it needs.
    const cut = () => socket.destroy()
    socket.setTimeout(idleMs, cut)
    // Before the server's own listener, which starts the keep-alive clock of the connection.
    this.#res.prependOnceListener('finish', () => {
      socket.off('timeout', cut)
      socket.setTimeout(0)
    })
  }

  send(status: number, text: string | undefined): void {
    if (text === undefined) {
      this.#res.writeHead(status).end()
      return
    }
    if (status === 401) this.#res.setHeader('www-authenticate', 'Bearer')
    finish(this.#req, this.#res, status, text, this.#keepBytes)
  }

  sendBytes(reply: FileReply | StreamReply, signal: AbortSignal): Promise<number> {
    return sendBinary(reply, this.#req, this.#res, signal)
  }

  cut(): void {
    this.#res.destroy()
  }
}
