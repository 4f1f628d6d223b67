/** The route table: own matching order on top of polka, generations that are swapped whole, action tails. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import polka, { type Polka } from 'polka'
import type { Gate } from '../access/gate.ts'
import { isReserved } from '../access/open.ts'
import type { AnyRoute } from '../contract.ts'
import { AppError, invalid, ValidationFailed } from '../errors.ts'
import type { Activity } from '../lifecycle/activity.ts'
import type { Logger } from '../log/log.ts'
import type { RouteHandler } from '../pack.ts'
import { Exchange } from './input.ts'
import { Pipeline, type PipelineOptions, routeMissing, type Target } from './pipeline.ts'
import { compareShapes, parseTemplate, patternOf, routableTarget } from './template.ts'

export { assertRoute } from './route-check.ts'

export interface MountedRoute {
  readonly pack: string
  readonly spec: AnyRoute
  readonly handler: RouteHandler<never>
  readonly activity: Activity
}

export interface HttpOptions extends PipelineOptions {
  readonly gate: Gate
  readonly log: Logger
  readonly now: () => Date
  /** ULID for requests that bring none. */
  readonly newId: () => string
  /** Default limit of JSON bodies, bytes. */
  readonly bodyLimitBytes: number
  /** Report replies that miss their schema, and undeclared errors, to `onViolation`. */
  readonly strict: boolean
  readonly onViolation: (error: Error) => void
}

export interface HttpSide {
  /** The request listener; may be passed around on its own. */
  readonly handler: (req: IncomingMessage, res: ServerResponse) => void
  /** Replaces the whole route table at once. Requests that are under way finish on the old one. */
  mount(routes: readonly MountedRoute[]): void
}

/** Two routes with equal keys clash: same method, same shape (whatever the parameters are called), same action. */
export function routeKey(spec: AnyRoute): string {
  const { shape, action } = parseTemplate(spec.path)
  return `${spec.method} /${shape.join('/')}${action === undefined ? '' : `:${action}`}`
}

interface Incoming extends IncomingMessage {
  /** Set by polka: the path to match. */
  path?: string
  exchange?: Exchange
}

export function createHttp(options: HttpOptions): HttpSide {
  const pipeline = new Pipeline(options)
  let table = new RouteTable([], pipeline)
  return {
    handler(req: Incoming, res) {
      const exchange = new Exchange(requestId(req, options.newId), req)
      req.exchange = exchange
      try {
        if (!admit(options.gate, pipeline, exchange, res)) return
        req.url = routableTarget(exchange.url)
        table.handle(req, res)
      } catch (error) {
        pipeline.fail(error, exchange, res) // nothing may leave a request listener: it would end the process
      }
    },
    mount(routes) {
      table = new RouteTable(routes, pipeline)
    }
  }
}

/** Ban, Host, Origin, preflight. False: answered already. */
function admit(gate: Gate, pipeline: Pipeline, exchange: Exchange, res: ServerResponse): boolean {
  const req = exchange.raw
  for (const name in gate.securityHeaders) res.setHeader(name, gate.securityHeaders[name]!)
  const verdict = gate.check(req)
  if (verdict.headers) for (const name in verdict.headers) res.setHeader(name, verdict.headers[name]!)
  if (verdict.refusal) {
    pipeline.fail(new AppError(verdict.refusal.spec, { message: verdict.refusal.message }), exchange, res)
    return false
  }
  if (req.method !== 'OPTIONS') return true
  if (req.headers.origin === undefined) pipeline.fail(routeMissing(exchange), exchange, res)
  else res.writeHead(204).end()
  return false
}

/** Echoed when it has 26 characters of Crockford base 32 in either case; the first of repeated values counts. */
function requestId(req: IncomingMessage, newId: () => string): string {
  const given = req.headers['x-request-id']
  if (given === undefined) return newId()
  const first = String(given).split(',', 1)[0]!.trim()
  return /^[0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{26}$/.test(first) ? first : newId()
}

/** Routes of one method and base path: at most one without action, and those with. */
interface Group {
  readonly method: string
  readonly shape: readonly string[]
  readonly pattern: RegExp
  readonly long: boolean
  /** Declared below the API, where `auth: 'none'` means GET only. */
  readonly api: boolean
  bare: Entry | undefined
  readonly actions: Map<string, Entry>
}

interface Entry {
  readonly route: MountedRoute
  readonly names: readonly string[]
}

/** One immutable generation of routes. */
class RouteTable {
  readonly #app: Polka
  readonly #pipeline: Pipeline
  /** Literal action families such as `/providers:refresh`: method and pattern of the base. */
  readonly #families: { readonly method: string; readonly base: RegExp }[] = []

  constructor(routes: readonly MountedRoute[], pipeline: Pipeline) {
    this.#pipeline = pipeline
    const app = polka({
      onNoMatch: (req, res) => this.#unmatched(req, res),
      onError: (error, req, res) => pipeline.fail(error, (req as Incoming).exchange!, res)
    })
    for (const group of grouped(routes)) {
      // The last segment is literal: `/x:a` makes `/x:b` an unsupported action instead of an unknown path.
      const last = group.shape.at(-1)!
      const colon = last.startsWith('{') ? -1 : last.lastIndexOf(':')
      if (colon > 0) this.#families.push({ method: group.method, base: patternOf([...group.shape.slice(0, -1), last.slice(0, colon)]) })
      app.add(group.method as 'GET', group.pattern, (req: IncomingMessage, res: ServerResponse) => this.#matched(group, req, res))
    }
    this.#app = app
  }

  handle(req: Incoming, res: ServerResponse): void {
    void this.#app.handler(req as never, res, undefined as never) // polka sets the missing fields and its own `next`
  }

  #matched(group: Group, req: Incoming, res: ServerResponse): Promise<void> {
    return this.#pipeline.serve(resolve(group, req.path!, req.method!), req.exchange!, res)
  }

  #unmatched(req: Incoming, res: ServerResponse): Promise<void> {
    const path = req.path ?? ''
    return this.#pipeline.serve(
      { route: undefined, params: {}, error: this.#unsupported(req.method!, path), open: !isReserved(path) },
      req.exchange!,
      res
    )
  }

  #unsupported(method: string, path: string): AppError | undefined {
    const colon = path.lastIndexOf(':')
    if (colon <= path.lastIndexOf('/') + 1) return undefined
    const base = path.slice(0, colon)
    const wanted = method === 'HEAD' ? 'GET' : method
    const family = this.#families.some(entry => entry.method === wanted && entry.base.test(base))
    return family ? unsupportedAction(path.slice(path.lastIndexOf('/') + 1), '') : undefined
  }
}

function grouped(routes: readonly MountedRoute[]): Group[] {
  const groups = new Map<string, Group>()
  for (const route of routes) {
    const { method, path } = route.spec
    const { shape, names, action } = parseTemplate(path)
    const key = `${method} /${shape.join('/')}`
    let group = groups.get(key)
    if (!group) {
      const long = shape.at(-1) === '{+}'
      group = { method, shape, pattern: patternOf(shape), long, api: isReserved(path), bare: undefined, actions: new Map() }
      groups.set(key, group)
    }
    if (action === undefined) group.bare = { route, names }
    else group.actions.set(action, { route, names })
  }
  return [...groups.values()].sort((a, b) => compareShapes(a.shape, b.shape))
}

/** Picks the route of a group and decodes its path values. Errors wait for the credential. */
function resolve(group: Group, path: string, method: string): Target {
  const raw = group.pattern.exec(path)!
  const values: string[] = []
  const fallback = group.bare ?? group.actions.values().next().value!
  for (let i = 1; i < raw.length; i++) {
    const value = decode(raw[i]!)
    if (value === undefined || hasControl(value)) {
      const field = `params.${fallback.names[i - 1]!}`
      const message = value === undefined ? 'is not valid percent-encoded UTF-8' : 'must not contain control characters'
      return { route: undefined, params: {}, error: invalid([{ path: field, message }]), open: false }
    }
    values.push(value)
  }
  let entry = group.bare
  if (group.actions.size > 0) {
    const tail = values.at(-1)!
    const colon = tail.lastIndexOf(':')
    const action = colon > 0 ? group.actions.get(tail.slice(colon + 1)) : undefined
    if (action) {
      entry = action
      values[values.length - 1] = tail.slice(0, colon)
    } else if (!entry || colon >= 0) {
      return { route: undefined, params: {}, error: unsupportedAction(tail, fallback.names.at(-1)!), open: false }
    }
  }
  const params: Record<string, string> = {}
  for (let i = 0; i < values.length; i++) params[entry!.names[i]!] = values[i]!
  const route = entry!.route
  if (route.spec.auth !== 'none') return { route, params, open: false }
  // A catch-all outside the API (web assets) must not answer for unknown API paths; inside it only GET is exempt (contract 1).
  if (group.api) return { route, params, open: method === 'GET' && route.spec.method === 'GET' }
  return isReserved(path) ? { route: undefined, params: {}, open: false } : { route, params, open: true }
}

function decode(text: string): string | undefined {
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined // the caller names the parameter
  }
}

function hasControl(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code < 32 || code === 127) return true
  }
  return false
}

function unsupportedAction(tail: string, path: string): AppError {
  const message = `unsupported action: ${tail.slice(0, 200)}`
  return new AppError(ValidationFailed, { message, details: [{ path, message }] })
}
