/** The route table: what a declared path means, own matching order on top of polka, generations that are swapped whole, action tails. */
import polka, { type Middleware } from 'polka'
import { isReserved } from '../access/principal.ts'
import type { AnyRoute, Method } from '../contract.ts'
import { assertRouteParts } from '../declared.ts'
import { AppError, developerError, invalid, ValidationFailed } from '../errors.ts'
import type { Activity } from '../lifecycle/scope.ts'
import type { RouteHandler } from '../pack.ts'
import { headOf } from '../text.ts'

const methods: readonly Method[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

export interface MountedRoute {
  readonly pack: string
  /** For logs and accounts: `route GET /api/v1/x`. */
  readonly name: string
  readonly spec: AnyRoute
  readonly handler: RouteHandler<never>
  readonly activity: Activity
}

/** What routing found: a route with its decoded path values, or the error to answer once the credential is checked. */
export interface Target {
  /** Undefined: there is none, or `error` says what is wrong with the path. */
  readonly route?: MountedRoute | undefined
  readonly params: Readonly<Record<string, string>>
  readonly error?: AppError | undefined
  /** Served without a credential. */
  readonly open: boolean
}

interface Template {
  /** Shape per segment: literal text, `{}` for one segment, `{+}` for the rest of the path, `name:` for a last one with an action. */
  readonly shape: readonly string[]
  readonly pattern: RegExp
  /** Parameter names in order of appearance. */
  readonly names: readonly string[]
  /** Action of the last segment (`{id}:fork`, `providers:refresh`). */
  readonly action: string | undefined
}

const parameter = /^\{(\+?)([A-Za-z_][A-Za-z0-9_]*)\}(?::([A-Za-z0-9_-]+))?$/

/** Templates by path: each is asked for at every activation of a pack. */
const templates = new Map<string, Template>()

/** Throws a developer error naming the path when the template is not one that `RouteSpec.path` describes. */
function parseTemplate(path: string): Template {
  const known = templates.get(path)
  if (known) return known
  const wrong = (why: string) => developerError('route_unusable', `path ${path}`, why)
  if (!path.startsWith('/')) throw wrong('must begin with /')
  const segments = path.slice(1).split('/')
  const shape: string[] = []
  const names: string[] = []
  let action: string | undefined
  for (const [index, segment] of segments.entries()) {
    const match = parameter.exec(segment)
    if (!match) {
      if (segment === '' && path !== '/') throw wrong('has an empty segment or a trailing slash')
      if (/[{}?#%\s]/.test(segment)) throw wrong(`segment '${segment}' is neither literal text nor {name}, {name}:action, {+name}`)
      const colon = index === segments.length - 1 ? segment.lastIndexOf(':') : -1
      if (colon > 0) action = segment.slice(colon + 1)
      shape.push(colon > 0 ? segment.slice(0, colon + 1) : segment)
      continue
    }
    const [, plus, name, tail] = match
    if ((plus || tail) && index !== segments.length - 1) throw wrong('a long tail or an action is only possible in the last segment')
    if (names.includes(name!)) throw wrong(`names the parameter '${name}' twice`)
    names.push(name!)
    shape.push(plus ? '{+}' : '{}')
    action = tail
  }
  const template = { shape, pattern: patternOf(shape), names, action }
  templates.set(path, template)
  return template
}

/** Matches raw paths, case-sensitively and without a trailing slash. One unnamed group per parameter, and one for a literal with an action. */
function patternOf(shape: readonly string[]): RegExp {
  const parts = shape.map(part => {
    if (rank(part) > 0) return part === '{}' ? '([^/]+)' : '(.*)'
    const text = part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
    return part.endsWith(':') ? `(${text}[^/]*)` : text
  })
  return new RegExp(`^/${parts.join('/')}$`)
}

/** Literals before parameters before long tails, segment by segment, so the order of registration never matters. */
function compareShapes(a: readonly string[], b: readonly string[]): number {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    const difference = rank(a[i]!) - rank(b[i]!)
    if (difference !== 0) return difference
    if (a[i] !== b[i]) return a[i]! < b[i]! ? -1 : 1
  }
  return 0 // of two that agree so far no path fits both
}

function rank(part: string): number {
  return part === '{}' ? 1 : part === '{+}' ? 2 : 0
}

export const nameOf = ({ method, path }: AnyRoute): string => `route ${method} ${path}`

/** Throws a developer error that names the route and what is wrong: path template, params that do not fit it, unusable schemas. */
export function assertRoute(spec: AnyRoute): void {
  const name = nameOf(spec)
  if (!methods.includes(spec.method)) throw developerError('route_unusable', name, `the method is none of ${methods.join(', ')}`)
  assertRouteParts(name, spec)
  const { names } = parseTemplate(spec.path)
  if (spec.params) {
    const declared = Object.keys(spec.params.properties)
    const missing = names.filter(key => !declared.includes(key))
    const extra = declared.filter(key => !names.includes(key))
    if (missing.length > 0) throw developerError('route_unusable', name, `the params schema lacks ${missing.join(', ')}`)
    if (extra.length > 0) throw developerError('route_unusable', name, `the path has no parameter ${extra.join(', ')}`)
  }
}

/** Two routes with equal keys clash: same method, same shape (whatever the parameters are called), same action. */
export function routeKey(spec: AnyRoute): string {
  const { shape, action } = parseTemplate(spec.path)
  const base = shape.join('/').replace(/:$/, '')
  return `${spec.method} /${action === undefined ? base : `${base}:${action}`}`
}

/** Routes of one method and base path: at most one without action, and those with. */
interface Group {
  readonly method: Method
  readonly shape: readonly string[]
  readonly pattern: RegExp
  /** Declared below the API, where `auth: 'none'` means GET only. */
  readonly api: boolean
  /** Asked last. */
  readonly fallback: boolean
  bare: Entry | undefined
  readonly actions: Map<string, Entry>
}

interface Entry {
  readonly route: MountedRoute
  readonly names: readonly string[]
}

/** Paths that are remembered with their group, and how long one of them may be. */
const knownPaths = 1000
const knownLength = 256

/** One immutable generation of routes. */
export class RouteTable {
  /** Only asked which route fits first: one handler that is never called stands for each group. */
  readonly #app = polka()
  readonly #groups = new Map<Middleware, Group>()
  /** Groups of paths that were asked for; looking through all patterns takes as long as the rest of a small request. */
  readonly #known = new Map<string, Group>()

  constructor(routes: readonly MountedRoute[]) {
    for (const group of grouped(routes)) {
      const sign: Middleware = () => undefined
      this.#app.add(group.method, group.pattern, sign)
      this.#groups.set(sign, group)
    }
  }

  /** `target`: as received (origin or absolute form, with its query). HEAD finds what GET does. */
  find(method: string, target: string): Target {
    const path = routablePath(target)
    const group = this.#group(method, path)
    return group ? resolve(group, path, method) : { params: {}, open: !isReserved(path) }
  }

  #group(method: string, path: string): Group | undefined {
    const key = `${method} ${path}`
    const known = this.#known.get(key)
    if (known) return known
    const [first] = this.#app.find(method as Method, path).handlers // any other method finds nothing
    const group = first && this.#groups.get(first)
    if (!group || key.length > knownLength) return group
    if (this.#known.size >= knownPaths) this.#known.clear()
    this.#known.set(key, group)
    return group
  }
}

function grouped(routes: readonly MountedRoute[]): Group[] {
  const groups = new Map<string, Group>()
  for (const route of routes) {
    const { method, path, fallback = false } = route.spec
    const { shape, pattern, names, action } = parseTemplate(path)
    const key = `${method} /${shape.join('/')}${fallback ? ' (fallback)' : ''}`
    let group = groups.get(key)
    if (!group) {
      group = { method, shape, pattern, api: isReserved(path), fallback, bare: undefined, actions: new Map() }
      groups.set(key, group)
    }
    if (action === undefined) group.bare = { route, names }
    else group.actions.set(action, { route, names })
  }
  return [...groups.values()].sort((a, b) => Number(a.fallback) - Number(b.fallback) || compareShapes(a.shape, b.shape))
}

/** Picks the route of a group and decodes its path values. Errors wait for the credential. */
function resolve(group: Group, path: string, method: string): Target {
  const match = group.pattern.exec(path)!
  const values: string[] = []
  const fallback = group.bare ?? group.actions.values().next().value!
  for (let i = 1; i < match.length; i++) {
    const found = pathValue(match[i]!, group.shape.at(-1) === '{+}' && i === match.length - 1)
    if ('problem' in found) {
      return { params: {}, error: invalid([{ path: `params.${fallback.names[i - 1] ?? 'action'}`, message: found.problem }]), open: false }
    }
    values.push(found.value)
  }
  let entry = group.bare
  if (group.actions.size > 0) {
    const tail = values.at(-1)!
    const last = group.shape.at(-1)! // of a literal the colon is its own end, so `x:y:action` is no action of `x`
    const colon = rank(last) === 0 ? last.length - 1 : tail.lastIndexOf(':')
    const action = colon > 0 ? group.actions.get(tail.slice(colon + 1)) : undefined
    if (action) {
      entry = action
      values[values.length - 1] = tail.slice(0, colon)
    } else if (!entry || colon >= 0) {
      return { params: {}, error: unsupportedAction(tail, fallback.names[values.length - 1] ?? ''), open: false }
    }
  }
  const params: Record<string, string> = {}
  const { route, names } = entry!
  for (let i = 0; i < names.length; i++) params[names[i]!] = values[i]!
  if (route.spec.auth !== 'none') return { route, params, open: false }
  // A catch-all outside the API (web assets) must not answer for unknown API paths; inside it only GET is exempt (contract 1).
  if (group.api) return { route, params, open: method === 'GET' && route.spec.method === 'GET' }
  return isReserved(path) ? { params: {}, open: false } : { route, params, open: true }
}

/** The decoded value, or what is wrong with it. The rest of a path (`rest`) names a file, and files have names of all kinds. */
function pathValue(raw: string, rest: boolean): { readonly value: string } | { readonly problem: string } {
  let value = raw
  try {
    if (raw.includes('%')) value = decodeURIComponent(raw)
  } catch {
    return { problem: 'is not valid percent-encoded UTF-8' }
  }
  for (let i = 0; i < value.length; i++) {
    const code = value.charCodeAt(i)
    if (rest ? code === 0 : code < 32 || code === 127)
      return { problem: `must not contain ${rest ? 'a null character' : 'control characters'}` }
  }
  return { value }
}

function unsupportedAction(tail: string, path: string): AppError {
  const message = `unsupported action: ${headOf(tail, 200)}`
  return new AppError(ValidationFailed, { message, details: [{ path, message }] })
}

/**
 * The path to route by, without query: of an absolute-form target its path (RFC 9112 §3.2.2), with percent-encoded unreserved
 * characters decoded and nothing else (RFC 3986 §6.2.2.2). Dot segments and doubled slashes stay and match no literal route.
 */
function routablePath(target: string): string {
  const end = target.search(/[?#]/)
  let path = end < 0 ? target : target.slice(0, end)
  if (!path.startsWith('/')) {
    const rest = /^https?:\/\/[^/]*(.*)$/is.exec(path)?.[1]
    if (rest !== undefined) path = rest === '' ? '/' : rest
  }
  return path.includes('%') ? path.replace(/%[0-9a-f]{2}/gi, decodeUnreserved) : path
}

function decodeUnreserved(sequence: string): string {
  const char = String.fromCharCode(Number.parseInt(sequence.slice(1), 16))
  return /[A-Za-z0-9\-._~]/.test(char) ? char : sequence
}
