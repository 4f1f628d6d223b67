/** One request through its route: credential, params, body, query, handler, reply, log. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { OptionalKind } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { type Gate, maskAuthorization } from '../access/gate.ts'
import { defaultScope, mayUse, type Principal } from '../access/principal.ts'
import { stripUnknown } from '../clean.ts'
import type { AnyRoute } from '../contract.ts'
import { AppError, generalErrors, InternalError, invalid, RouteMissing, ScopeMissing, Unauthorized } from '../errors.ts'
import type { Logger } from '../log/log.ts'
import { coerce, problems } from '../schema.ts'
import { isBinary } from './binary.ts'
import { finish, readJson } from './body.ts'
import { failure, successText } from './envelope.ts'
import { sendBinary } from './file-reply.ts'
import { type Exchange, HandlerInput } from './input.ts'
import type { MountedRoute } from './router.ts'

export interface PipelineOptions {
  readonly gate: Gate
  readonly log: Logger
  readonly bodyLimitBytes: number
  readonly strict: boolean
  readonly onViolation: (error: Error) => void
}

/** What routing found: a route with its decoded path values, or the error to answer once the credential is checked. */
export interface Target {
  readonly route: MountedRoute | undefined
  readonly params: Readonly<Record<string, string>>
  readonly error?: AppError | undefined
  /** Served without a credential. */
  readonly open: boolean
}

const generalCodes = new Set(generalErrors.map(spec => spec.code))

/** Uploads: time without a single byte after which the connection is cut, ms. */
const idleMs = 300_000

export class Pipeline {
  readonly #options: PipelineOptions

  constructor(options: PipelineOptions) {
    this.#options = options
  }

  /** Answers one request; never rejects. */
  async serve(target: Target, exchange: Exchange, res: ServerResponse): Promise<void> {
    const req = exchange.raw
    try {
      if (target.open) maskAuthorization(req)
      else exchange.principal = await this.#authenticate(req)
      if (target.error) throw target.error
      if (!target.route) throw routeMissing(exchange)
      if (!target.open) checkScope(exchange.principal, target.route.spec)
      await this.#run(target.route, target.params, exchange, res)
    } catch (error) {
      this.fail(error, exchange, res, target.route)
    }
  }

  /** Answers an error; after the headers were sent only the connection can be cut. */
  fail(error: unknown, exchange: Exchange, res: ServerResponse, route?: MountedRoute): void {
    const expected = AppError.is(error)
    const gone = res.destroyed || res.socket?.destroyed === true
    if (gone) {
      this.#options.log.debug({ err: error, request_id: exchange.id, path: route?.spec.path ?? null }, 'the client went away')
      res.destroy()
      return
    }
    const facts = { err: error, request_id: exchange.id, route: routeName(route?.spec), pack: route?.pack }
    if (!expected) this.#options.log.error(facts, 'a handler failed')
    else if (error.code >= 50_000 && error.code < 60_000) this.#options.log.warn(facts, 'a request could not be served')
    if (expected && route) this.#checkDeclared(error, route)
    const { status, envelope } = failure(error, exchange.id)
    if (res.headersSent) res.destroy()
    else {
      if (status === 401) res.setHeader('www-authenticate', 'Bearer')
      finish(exchange.raw, res, status, JSON.stringify(envelope), this.#options.bodyLimitBytes)
    }
    this.#log(exchange, status, envelope.code, route)
  }

  async #authenticate(req: IncomingMessage): Promise<Principal> {
    const answer = this.#options.gate.authenticate(req)
    const principal = answer instanceof Promise ? await answer : answer
    if (!principal) throw new AppError(Unauthorized)
    return principal
  }

  async #run(route: MountedRoute, raw: Readonly<Record<string, string>>, exchange: Exchange, res: ServerResponse): Promise<void> {
    const { spec } = route
    const params = spec.params ? coerce(spec.params, raw) : raw
    if (spec.params) check(problems(spec.params, params, 'params'))
    const body = spec.body && spec.bodyType !== 'stream' ? await this.#body(spec, exchange.raw) : undefined
    const given = (exchange.raw as IncomingMessage & { query?: Record<string, unknown> }).query ?? {} // parsed by polka
    const query = spec.query ? coerce(spec.query, given) : {}
    if (spec.query) check(problems(spec.query, query, 'query'))

    const work = route.activity.enter()
    if (!work) throw routeMissing(exchange)
    const input = new HandlerInput({ params, query, body }, exchange, res, work)
    if (spec.bodyType === 'stream') guardUpload(exchange.raw, res)
    try {
      const answer: unknown = await route.handler(input as never)
      if (res.destroyed) return
      if (isBinary(answer)) {
        const status = await sendBinary(answer.reply, exchange.raw, res, input.signal)
        this.#log(exchange, status, undefined, route)
      } else this.#reply(route, answer, exchange, res)
    } catch (error) {
      if (!work.signal.aborted || AppError.is(error)) throw error
      this.#options.log.debug({ err: error, request_id: exchange.id, pack: route.pack }, 'a request ended with its pack')
      throw routeMissing(exchange)
    } finally {
      input.close()
      work.leave()
    }
  }

  async #body(spec: AnyRoute, req: IncomingMessage): Promise<unknown> {
    const schema = spec.body!
    const body = await readJson(req, spec.bodyLimit ?? this.#options.bodyLimitBytes)
    if (body === undefined && OptionalKind in schema) return undefined
    // Defaults first, so that they count as given; unknown keys last, so that a schema which forbids them has seen them.
    const filled = Value.Default(schema, body)
    check(problems(schema, filled, 'body'))
    return stripUnknown(schema, filled)
  }

  #reply(route: MountedRoute, data: unknown, exchange: Exchange, res: ServerResponse): void {
    const { spec } = route
    const status = spec.status ?? 200
    if (status === 204) {
      res.writeHead(204).end()
    } else {
      const text = successText(data, exchange.id, spec.successCode)
      if (this.#options.strict) this.#checkReply(route, text)
      finish(exchange.raw, res, status, text, this.#options.bodyLimitBytes)
    }
    this.#log(exchange, status, spec.successCode ?? 0, route)
  }

  #checkReply({ spec }: MountedRoute, text: string): void {
    const found = problems(spec.data, (JSON.parse(text) as { data: unknown }).data, 'data')
    if (found.length === 0) return
    const list = found.map(detail => `${detail.path}: ${detail.message}`).join('; ')
    this.#options.onViolation(new Error(`the reply of ${routeName(spec)} misses its schema: ${list}`))
  }

  #checkDeclared(error: AppError, { spec }: MountedRoute): void {
    if (!this.#options.strict || generalCodes.has(error.spec.code) || spec.errors?.some(known => known.code === error.spec.code)) return
    this.#options.onViolation(new Error(`${routeName(spec)} does not declare its error ${error.spec.code} (${error.spec.name})`))
  }

  #log(exchange: Exchange, status: number, code: number | undefined, route: MountedRoute | undefined): void {
    const { log } = this.#options
    const bad = status >= 500 || code === InternalError.code
    if (!bad && !log.isLevelEnabled('debug')) return
    const fields = {
      request_id: exchange.id,
      method: exchange.method,
      path: route?.spec.path ?? null,
      status,
      code,
      duration_ms: Math.round((performance.now() - exchange.began) * 10) / 10
    }
    if (bad) log.info(fields, 'request failed')
    else log.debug(fields, 'request')
  }
}

/** HTTP 404 with an envelope; the contract names no code for it. */
export function routeMissing(exchange: Exchange): AppError {
  const target = exchange.url.slice(0, 500)
  const end = target.search(/[?#]/)
  return new AppError(RouteMissing, { message: `no such route: ${exchange.method} ${end < 0 ? target : target.slice(0, end)}` })
}

function checkScope(principal: Principal, { scope = defaultScope }: AnyRoute): void {
  if (!mayUse(principal, scope)) throw new AppError(ScopeMissing, { message: `the credential lacks the scope '${scope}'` })
}

function check(details: ReturnType<typeof problems>): void {
  if (details.length > 0) throw invalid(details)
}

function routeName(spec: AnyRoute | undefined): string | undefined {
  return spec && `${spec.method} ${spec.path}`
}

/** A stalled upload does not hold its connection for ever; one that makes progress may take as long as it needs. */
function guardUpload(req: IncomingMessage, res: ServerResponse): void {
  const { socket } = req
  const cut = () => socket.destroy()
  socket.setTimeout(idleMs, cut)
  // Before the server's own listener, which starts the keep-alive clock of the connection.
  res.prependOnceListener('finish', () => {
    socket.off('timeout', cut)
    socket.setTimeout(0)
  })
}
