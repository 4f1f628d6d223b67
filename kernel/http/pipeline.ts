/**
 * The way of a request: from a connection through the gate, or from inside this process; then route, scope, params, body, query, handler,
 * reply and log.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { parse } from 'node:querystring'
import { OptionalKind } from '@sinclair/typebox'
import { type Gate, takeAuthorization } from '../access/gate.ts'
import { requireScope } from '../access/principal.ts'
import type { AnyRoute, Method, RequestInfo } from '../contract.ts'
import { type Asker, type Elsewhere, movedStatus, SessionMoved } from '../elsewhere.ts'
import { checkDeclared, checkShape, detailsOf, type Environment } from '../environment.ts'
import { AppError, developerError, InternalError, invalid, PackAway, RouteMissing, Unauthorized } from '../errors.ts'
import type { KernelHooks } from '../lifecycle/hooks.ts'
import type { Work } from '../lifecycle/scope.ts'
import { firstAbort, isPromise, untilAborted, yieldToLoop } from '../lifecycle/wait.ts'
import { coerce, problems, tidy } from '../schema.ts'
import type { TObject, TSchema } from '../shapes.ts'
import { refusedByDisk } from '../storage/refusals.ts'
import { isBinary } from './bytes.ts'
import { type Exchange, HttpExchange } from './exchange.ts'
import { type Injected, InjectedExchange, type InjectInput } from './inject.ts'
import { answerText } from './large-json.ts'
import { type MountedRoute, RouteTable, type Target } from './router.ts'

export class Pipeline {
  /** See `Relays.setElsewhere`. */
  elsewhere: Elsewhere | undefined
  readonly #env: Environment
  readonly #gate: Gate
  readonly #hooks: KernelHooks
  #table = new RouteTable([])

  constructor(env: Environment, { gate, hooks }: { gate: Gate; hooks: KernelHooks }) {
    this.#env = env
    this.#gate = gate
    this.#hooks = hooks
  }

  /** Replaces the whole route table at once. Requests that are under way finish on the old one. */
  mount(routes: readonly MountedRoute[]): void {
    this.#table = new RouteTable(routes)
  }

  routeAt(method: Method, path: string): AnyRoute | undefined {
    return this.#table.find(method, path).route?.spec
  }

  /** The request listener; may be passed around on its own. Never rejects: that would end the process. */
  readonly handler = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const exchange = new HttpExchange(req, res, this.#env)
    let route: MountedRoute | undefined
    try {
      const { headers, refusal } = this.#gate.check(req)
      for (const name in headers) res.setHeader(name, headers[name]!)
      if (refusal) throw refusal
      if (req.method === 'OPTIONS') {
        if (req.headers.origin === undefined) throw routeMissing(exchange)
        res.writeHead(204).end()
        return
      }
      const others = yieldToLoop() // of many that come at once, each is served beside what is under way
      if (others) await others
      const target = this.#table.find(exchange.method, exchange.url)
      route = target.route
      if (target.open) takeAuthorization(req)
      else {
        const principal = await this.#gate.authenticate(req)
        if (!principal) throw new AppError(Unauthorized)
        exchange.principal = principal
      }
      await this.#serve(target, exchange)
    } catch (error) {
      this.#fail(error, exchange, route)
    }
  }

  /** Answers what another server passes on: see `Relays.serve`. Never rejects. */
  serveFor(asker: Asker, req: IncomingMessage, res: ServerResponse): Promise<void> {
    return this.#serveInside(new HttpExchange(req, res, this.#env, asker))
  }

  /** Asks a route without a socket; see `Kernel.inject`. */
  async inject<R extends AnyRoute>(route: R, input: InjectInput): Promise<Injected<R>> {
    const exchange = new InjectedExchange(this.#env.newId(), route, input)
    await this.#serveInside(exchange)
    return exchange.answer() as Injected<R> // the pipeline answered as the route declares
  }

  /** Of a request that has passed a gate already, or needs none. */
  async #serveInside(exchange: Exchange): Promise<void> {
    const target = this.#table.find(exchange.method, exchange.url)
    try {
      await this.#serve(target, exchange)
    } catch (error) {
      this.#fail(error, exchange, target.route)
    }
  }

  async #serve({ route, error, open, params: raw }: Target, exchange: Exchange): Promise<void> {
    if (error) throw error
    if (!route) throw routeMissing(exchange)
    const { spec } = route
    if (!open) requireScope(exchange.principal, spec.scope)
    const mayRelay = !exchange.relayed && this.elsewhere?.others
    const session_id = mayRelay ? (raw.session_id ?? (await this.#about(spec, exchange))) : undefined
    if (session_id !== undefined && (await this.#relay(session_id, route, exchange))) return
    if (route.activity.closed) throw notThere(route, exchange)
    const instead = this.#hooks.beforeRequest.isUsed() ? await this.#before(exchange, spec) : undefined
    const params = spec.params ? checked(spec.params, coerce(spec.params, raw), 'params') : raw
    if (spec.bodyType === 'stream') exchange.openStream(spec.bodyLimit)
    const body = hasJson(spec) ? await this.#body(spec, exchange) : undefined
    if (spec.bodyCheck !== 'late') body?.()
    const query = spec.query ? checkedQuery(spec.query, queryOf(exchange.url)) : {}

    const { guard, options } = this.#env
    const work = route.activity.enter()
    if (!work) throw notThere(route, exchange)
    const { input, close } = inputOf({ params, query }, body, exchange, work)
    let answer: unknown
    try {
      answer = instead ? instead.data : guard.run(route.pack, route.name, () => route.handler(input as never)) // the checks made the values fit the spec
      if (isPromise(answer)) answer = await untilAborted(answer, work.over)
      if (exchange.gone) return
      if (isBinary(answer)) {
        this.#done(exchange, route, await exchange.sendBytes(answer.reply, input.signal))
        return
      }
      const { status = 200, successCode: code = 0 } = spec
      const envelope = { code, msg: 'success', data: answer === undefined ? null : answer, request_id: exchange.id }
      const text = status === 204 ? undefined : guard.run(route.pack, route.name, () => answerText(envelope), 0)
      if (text !== undefined && options.strict) {
        const json = typeof text === 'string' ? text : await text.whole()
        checkShape(options, `reply of ${route.name}`, spec.data, (JSON.parse(json) as { data: unknown }).data, 'data')
      }
      if (exchange.gone) return
      const sending = exchange.send(status, text, error => guard.report(route.pack, route.name, error))
      if (sending) await sending
      this.#done(exchange, route, status, code)
    } catch (failed) {
      // A stream that was read cannot be passed on any more: the client tries again.
      if (failed instanceof SessionMoved && spec.bodyType !== 'stream' && !exchange.begun && session_id !== undefined) {
        if (await this.#relay(session_id, route, exchange)) return
      }
      if (!work.signal.aborted || AppError.is(failed)) throw failed
      if (isPromise(answer) && work.over.aborted) this.#giveUp(answer, route)
      this.#env.log.debug({ err: failed, request_id: exchange.id, pack: route.pack }, 'a request ended with its pack')
      throw notThere(route, exchange)
    } finally {
      close()
      work.leave()
    }
  }

  /** The session that a request is about whose path names none. */
  async #about(spec: AnyRoute, exchange: Exchange): Promise<string | undefined> {
    const isNamed = (spec.query as TObject | undefined)?.properties?.session_id !== undefined
    const { session_id } = isNamed ? queryOf(exchange.url) : {}
    return typeof session_id === 'string' ? session_id : await this.#hooks.about.promise(spec)
  }

  /** False: the session is here. */
  async #relay(session_id: string, route: MountedRoute, exchange: Exchange): Promise<boolean> {
    const way = await this.elsewhere?.way(session_id)
    const status = way && (await exchange.relay(way, hasJson(route.spec) ? this.#limitOf(route.spec) : undefined))
    if (status !== undefined) this.#done(exchange, route, status)
    return status !== undefined
  }

  /** Answers an error; after the headers were sent only the connection can be cut. */
  #fail(thrown: unknown, exchange: Exchange, route: MountedRoute | undefined): void {
    const { log, guard } = this.#env
    const error = refusedByDisk(thrown) ?? thrown
    if (exchange.gone) {
      log.debug({ err: error, request_id: exchange.id, path: route?.spec.path ?? null }, 'the client went away')
      exchange.cut()
      return
    }
    if (exchange.relayed && error instanceof SessionMoved && !exchange.begun) {
      void exchange.send(movedStatus, undefined)
      this.#done(exchange, route, movedStatus)
      return
    }
    const expected = AppError.is(error)
    const facts = { request_id: exchange.id }
    if (!expected && route) guard.report(route.pack, route.name, error, facts)
    else if (!expected) log.error({ err: error, ...facts }, 'a request failed')
    else if (error.code >= 50_000 && error.code < 60_000 && error.code !== PackAway.code) {
      log.warn(
        { err: error, pack: route?.pack, route: route && `${route.spec.method} ${route.spec.path}`, ...facts },
        'a request could not be served'
      )
    }
    if (route) checkDeclared(this.#env.options, route.name, error, route.spec.errors ?? [])
    const { status, code, text } = failure(error, exchange.id)
    if (exchange.begun) exchange.cut()
    else void exchange.send(status, text)
    this.#done(exchange, route, status, code)
  }

  /** A tap that fails was put down to its pack already: the request ends as a bug that is not its route's. */
  async #before(exchange: Exchange, spec: AnyRoute): Promise<{ readonly data: unknown } | undefined> {
    try {
      return await this.#hooks.beforeRequest.promise(factsOf(exchange), spec)
    } catch (cause) {
      throw AppError.is(cause) ? cause : new AppError(InternalError, { cause })
    }
  }

  /** The handler has ignored its signal after an unload: its request ends as unknown. */
  #giveUp(answer: Promise<unknown>, { pack, name }: MountedRoute): void {
    this.#env.guard.report(pack, name, developerError('handler_deaf'))
    const discard = (late: unknown) => isBinary(late) && 'stream' in late.reply && late.reply.stream.destroy() // nobody waits for it any more
    answer.then(discard, () => undefined)
  }

  /** Reads the body; the answer checks it, once. */
  async #body(spec: WithJson, exchange: Exchange): Promise<() => unknown> {
    let body = await exchange.body(this.#limitOf(spec))
    let isChecked = body === undefined && OptionalKind in spec.body
    return () => {
      if (isChecked) return body
      body = tidy(spec.body, body, 'body', invalid)
      isChecked = true
      return body
    }
  }

  #limitOf({ bodyLimit = this.#env.options.bodyLimitBytes }: AnyRoute): number {
    return bodyLimit
  }

  /** The answer is out: hook and access log. */
  #done(exchange: Exchange, route: MountedRoute | undefined, status: number, code?: number): void {
    const { log } = this.#env
    const { afterRequest } = this.#hooks
    const bad = (status >= 500 && code !== PackAway.code) || code === InternalError.code
    const logged = bad || log.isLevelEnabled('debug')
    if (!logged && !afterRequest.isUsed()) return
    const duration_ms = Math.round((performance.now() - exchange.began) * 10) / 10
    if (afterRequest.isUsed()) afterRequest.call(factsOf(exchange), { route: route?.spec, status, code, duration_ms })
    if (!logged) return
    const fields = { request_id: exchange.id, method: exchange.method, path: route?.spec.path ?? null, status, code, duration_ms }
    if (bad) log.info(fields, 'request failed')
    else log.debug(fields, 'request')
  }
}

type WithJson = AnyRoute & { readonly body: TSchema }

/** The body is read before the handler runs. */
const hasJson = (spec: AnyRoute): spec is WithJson => spec.body !== undefined && spec.bodyType !== 'stream'

/** What a handler gets: values, the body (checked when it is read first), request facts and a signal, which cost nothing until they are read. */
function inputOf(
  values: { readonly params: unknown; readonly query: unknown },
  body: (() => unknown) | undefined,
  exchange: Exchange,
  work: Work
) {
  let request: RequestInfo | undefined
  let either: ReturnType<typeof firstAbort> | undefined
  const input = {
    ...values,
    get body() {
      return body?.()
    },
    get request() {
      request ??= factsOf(exchange)
      return request
    },
    /** Aborts when the client goes away before the reply is complete, or when the pack unloads. */
    get signal() {
      either ??= firstAbort(work.signal, exchange.signal)
      return either.signal
    }
  }
  /** The reply is complete: nothing aborts any more. */
  const close = () => either?.end()
  return { input, close }
}

/** The envelope of a failure and its HTTP status. Anything but an AppError becomes 50001 with a fixed text: no message, no stack. */
function failure(error: unknown, request_id: string): { readonly status: number; readonly code: number; readonly text: string } {
  const told = AppError.is(error) ? error : new AppError(InternalError)
  const { status, code } = told.spec
  const { message: msg, data = null } = told
  return { status, code, text: JSON.stringify({ code, msg, data, request_id, details: detailsOf(told) }) }
}

/** The face of an exchange that packs see. */
function factsOf({ id, method, url, headers, remote_address, principal, stream }: Exchange): RequestInfo {
  return { id, method, url, headers, remote_address, principal, stream }
}

/** Values of the query string; repeated keys become arrays. */
function queryOf(url: string): Readonly<Record<string, unknown>> {
  const target = url.split('#', 1)[0]!
  const start = target.indexOf('?')
  return start < 0 ? {} : parse(target.slice(start + 1))
}

/** HTTP 404 with an envelope; the contract names no code for it. */
function routeMissing({ url, method }: RequestInfo): AppError {
  const target = url.slice(0, 500)
  const end = target.search(/[?#]/)
  return new AppError(RouteMissing, { message: `no such route: ${method} ${end < 0 ? target : target.slice(0, end)}` })
}

/** For a route whose pack takes no requests. */
function notThere({ activity }: MountedRoute, request: RequestInfo): AppError {
  return activity.absence ?? routeMissing(request)
}

/** The value when it fits; else a 40001 with each field below `root`. */
function checked<T>(schema: TSchema, value: T, root: string): T {
  const details = problems(schema, value, root)
  if (details.length > 0) throw invalid(details)
  return value
}

/** A list of which the client wrote one value is named as it was written, without a number. */
function checkedQuery(schema: TObject, raw: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const value = coerce(schema, raw)
  const details = problems(schema, value)
  if (details.length === 0) return value
  throw invalid(
    details.map(({ path, message }) => {
      const single = /^(.+)\.0$/.exec(path)?.[1]
      return { path: `query.${single !== undefined && typeof raw[single] === 'string' ? single : path}`, message }
    })
  )
}
