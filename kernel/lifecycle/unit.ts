/**
 * One pack inside a kernel: its state, what it provides and registers, and the undo of all of it; and the registry of what all active
 * packs have on the wire, where clashes are found before anything is published.
 */

import type { AnyRoute, EventSpec, FrameSpec, OutFrameSpec } from '../contract.ts'
import type { ErrorSpec } from '../errors.ts'
import { type MountedRoute, routeKey } from '../http/router.ts'
import type { PackFacts, PackState } from '../info.ts'
import type { FrameCheck, FrameHandler, Pack, RouteHandler } from '../pack.ts'
import { type NamedShape, shapesIn } from '../schema.ts'
import { Activity } from './activity.ts'
import { Scope } from './scope.ts'

export interface MountedFrame {
  readonly pack: string
  readonly spec: FrameSpec
  readonly handler: FrameHandler<never>
  /** Runs before the payload is checked, so that other refusals can come first. */
  readonly before?: FrameCheck | undefined
  readonly activity: Activity
}

/** What one owner has on the wire, as declared. */
export interface Surface {
  readonly pack: string
  readonly routes: readonly AnyRoute[]
  readonly events: readonly EventSpec[]
  readonly frames: readonly FrameSpec[]
  readonly outFrames: readonly OutFrameSpec[]
  readonly errors: readonly ErrorSpec[]
}

/** What an owner takes for itself: no other may have the same. */
interface Claims {
  /** Key to its name in words, `route GET /api/v1/meta`. */
  readonly names: ReadonlyMap<string, string>
  /** The first that it takes twice, in words. */
  readonly twice: string | undefined
  /** Each spec once. */
  readonly errors: readonly ErrorSpec[]
  /** The first spec of each code. */
  readonly codes: ReadonlyMap<number, ErrorSpec>
  readonly shapes: readonly NamedShape[]
  /** The first shape of each name. */
  readonly shapeOf: ReadonlyMap<string, NamedShape>
}

function claimsOf(surface: Surface): Claims {
  const { routes, events, frames, outFrames } = surface
  const names = new Map<string, string>()
  let twice: string | undefined
  const take = (key: string, words: string) => {
    if (names.has(key)) twice ??= words
    else names.set(key, words)
  }
  for (const spec of routes) take(`route ${clashKey(spec)}`, `route ${spec.method} ${spec.path}`)
  for (const { type } of events) take(`event type ${type}`, `event type ${type}`)
  for (const { type } of frames) take(`frame type ${type}`, `frame type ${type}`)
  for (const { type } of outFrames) take(`sent frame type ${type}`, `sent frame type ${type}`)
  for (const { operationId: id } of routes) if (id !== undefined) take(`operation id ${id}`, `operation id ${id}`)
  const errors = [...new Set(surface.errors)]
  const shapes = shapesOf(surface)
  return { names, twice, errors, codes: firsts(errors, spec => spec.code), shapes, shapeOf: firsts(shapes, shape => shape.name) }
}

function firsts<T, K>(items: readonly T[], key: (item: T) => K): Map<K, T> {
  const found = new Map<K, T>()
  for (const item of items) if (!found.has(key(item))) found.set(key(item), item)
  return found
}

/** The named shapes in what an owner has on the wire. */
function shapesOf({ routes, events, frames, outFrames }: Surface): NamedShape[] {
  const schemas = [
    ...routes.flatMap(({ params, query, body, data }) => [params, query, body, data]),
    ...[...events, ...outFrames].map(({ payload }) => payload),
    ...frames.flatMap(({ payload, ack }) => [payload, ack])
  ]
  return [...new Set(schemas.flatMap(schema => (schema ? shapesIn(schema) : [])))]
}

/** Everything one pack has registered and not yet taken back. Each registration returns its undo. */
export class Registrations {
  readonly routes: MountedRoute[] = []
  readonly frames: MountedFrame[] = []
  readonly events: EventSpec[] = []
  readonly outFrames: OutFrameSpec[] = []
  readonly activity = new Activity()
  readonly facts: PackFacts
  readonly #ownErrors: readonly ErrorSpec[]
  /** Of the lists as they are now. */
  #claims: Claims | undefined

  /** `errors` of the pack: specs that no route lists. */
  constructor(pack: PackFacts & Pick<Pack, 'errors'>) {
    this.facts = pack
    this.#ownErrors = pack.errors
  }

  get pack(): string {
    return this.facts.name
  }

  route(spec: AnyRoute, handler: RouteHandler<never>): () => void {
    return this.#added(this.routes, { pack: this.pack, spec, handler, activity: this.activity })
  }

  frame(spec: FrameSpec, handler: FrameHandler<never>, before?: FrameCheck): () => void {
    return this.#added(this.frames, { pack: this.pack, spec, handler, before, activity: this.activity })
  }

  event(spec: EventSpec): () => void {
    return this.#added(this.events, spec)
  }

  outFrame(spec: OutFrameSpec): () => void {
    return this.#added(this.outFrames, spec)
  }

  surface(): Surface {
    const { pack, events, outFrames } = this
    const routes = this.routes.map(route => route.spec)
    const frames = this.frames.map(frame => frame.spec)
    const invalid = frames.flatMap(spec => spec.invalid ?? [])
    const errors = [...this.#ownErrors, ...[...routes, ...frames].flatMap(spec => spec.errors ?? []), ...invalid]
    return { pack, routes, events, frames, outFrames, errors }
  }

  claims(): Claims {
    this.#claims ??= claimsOf(this.surface())
    return this.#claims
  }

  #added<T>(list: T[], item: T): () => void {
    this.#claims = undefined
    const remove = added(list, item)
    return () => {
      this.#claims = undefined
      remove()
    }
  }
}

function added<T>(list: T[], item: T): () => void {
  list.push(item)
  let live = true
  return () => {
    if (live) list.splice(list.lastIndexOf(item), 1)
    live = false
  }
}

/** One pack and its current activation. */
export class Unit {
  pack: Pack
  state: PackState = 'Pending'
  /** False once the pack was unloaded on purpose. */
  wanted = true
  error: Error | undefined
  /** It is set up again when this is due. */
  again: NodeJS.Timeout | undefined
  /** When that is, on the clock of `performance`. */
  againAt: number | undefined
  scope = new Scope()
  registrations: Registrations
  /** Services by token id, staged by setup. */
  provided = new Map<string, unknown>()
  /** Registrations that become visible together when the pack turns Active. */
  staged: (() => void)[] = []
  /** Activation sequence number; dependents have higher ones. */
  activated = 0
  /** How long the last setup took. */
  setupMs: number | undefined
  /** When it turned Active for the last time. */
  activeSince: Date | undefined

  constructor(pack: Pack) {
    this.pack = pack
    this.registrations = new Registrations(pack)
  }

  get name(): string {
    return this.pack.name
  }

  /** Fresh scope and lists for the next activation. */
  reset(): void {
    this.scope = new Scope()
    this.registrations = new Registrations(this.pack)
    this.provided = new Map()
    this.staged = []
    this.error = undefined
  }

  /** Ids of needed services. */
  needs(): string[] {
    return Object.values(this.pack.needs).map(token => token.id)
  }

  declares(): string[] {
    return this.pack.provides.map(token => token.id)
  }
}

/** The wire surface of all active packs. */
export class Registry {
  readonly #active: Registrations[] = []
  /** What packs had that are away, by their names. */
  readonly #away = new Map<string, Pick<Registrations, 'facts' | 'routes' | 'frames'>>()
  readonly #taken = new Taken()

  /** `kernel`: what the kernel itself answers and sends; packs must not clash with it either. */
  constructor(kernel: Surface) {
    this.#taken.put(kernel, kernel.pack, claimsOf(kernel))
  }

  /** Text of the first clash with what is mounted, or within the candidate itself. What is mounted was held against the others when it came. */
  clash(candidate: Registrations): string | undefined {
    for (const entry of this.#active) this.#taken.put(entry, entry.pack, entry.claims())
    return this.#taken.clash(candidate.pack, candidate.claims())
  }

  /** A pack goes, and may come back: until then its routes and frames answer that it is away (`Activity.absence`). */
  leaves({ pack, facts, routes, frames }: Registrations): void {
    const handler = () => undefined // nothing of the pack is kept
    this.#away.set(pack, {
      facts,
      routes: routes.map(({ spec, activity }) => ({ pack, spec, activity, handler: handler as never })),
      frames: frames.map(({ spec, activity }) => ({ pack, spec, activity, handler: handler as never }))
    })
  }

  publish(entry: Registrations): () => void {
    this.#away.delete(entry.pack)
    const remove = added(this.#active, entry)
    return () => {
      this.#taken.put(entry, entry.pack, undefined)
      remove()
    }
  }

  routes(): MountedRoute[] {
    return this.#active.flatMap(entry => entry.routes)
  }

  frames(): MountedFrame[] {
    return this.#active.flatMap(entry => entry.frames)
  }

  /** What is asked for of packs that are away, where nobody else has taken its place. */
  away(): { readonly routes: readonly MountedRoute[]; readonly frames: readonly MountedFrame[] } {
    for (const [pack, { routes, frames }] of this.#away) if (!(routes[0] ?? frames[0])?.activity.absence) this.#away.delete(pack)
    if (this.#away.size === 0) return { routes: [], frames: [] }
    const taken = new Set([...this.routes().map(({ spec }) => clashKey(spec)), ...this.frames().map(({ spec }) => spec.type)])
    const left = [...this.#away.values()]
    return {
      routes: left.flatMap(({ routes }) => routes).filter(({ spec }) => !taken.has(clashKey(spec))),
      frames: left.flatMap(({ frames }) => frames).filter(({ spec }) => !taken.has(spec.type))
    }
  }

  events(): EventSpec[] {
    return this.#active.flatMap(entry => entry.events)
  }

  outFrames(): OutFrameSpec[] {
    return this.#active.flatMap(entry => entry.outFrames)
  }

  owners(): Map<object, PackFacts> {
    const owners = new Map<object, PackFacts>()
    for (const { facts, routes, frames } of this.#away.values()) for (const { spec } of [...routes, ...frames]) owners.set(spec, facts)
    for (const entry of this.#active) {
      const { routes, events, frames, outFrames } = entry.surface()
      for (const spec of [...routes, ...events, ...frames, ...outFrames]) owners.set(spec, entry.facts)
    }
    return owners
  }
}

/** A route that gives way to others clashes only with another one that does. */
function clashKey(spec: AnyRoute): string {
  return spec.fallback ? `${routeKey(spec)} (fallback)` : routeKey(spec)
}

/** What is taken on the wire, by whom. */
class Taken {
  readonly #claims = new Map<object, Claims>()
  readonly #names = new Claimed<string>()
  readonly #codes = new Claimed<ErrorSpec>()
  readonly #shapes = new Claimed<NamedShape>()

  /** Replaces what an owner had. */
  put(owner: object, pack: string, claims: Claims | undefined): void {
    const old = this.#claims.get(owner)
    if (old === claims) return
    if (old) this.#each(old, (table, key) => table.remove(key, pack))
    this.#claims.delete(owner)
    if (!claims) return
    this.#each(claims, (table, key, value) => table.add(key, pack, value))
    this.#claims.set(owner, claims)
  }

  clash(pack: string, { names, twice, errors, codes, shapes, shapeOf }: Claims): string | undefined {
    for (const [key, words] of names) {
      const owner = this.#names.other(key, pack)
      if (owner) return `${words} of ${pack} clashes with ${owner.pack}`
    }
    if (twice !== undefined) return `${twice} of ${pack} clashes with ${pack}`
    for (const { code, name } of errors) {
      const own = codes.get(code) as ErrorSpec
      const owner = this.#codes.other(code, pack, other => other.name !== name) ?? (own.name === name ? undefined : { pack, value: own })
      if (owner) return `error code ${code} is '${owner.value.name}' of ${owner.pack} and '${name}' of ${pack}`
    }
    for (const { name, shape } of shapes) {
      const own = shapeOf.get(name) as NamedShape
      const owner = this.#shapes.other(name, pack, other => differ(other.shape, shape)) ?? (differ(own.shape, shape) ? { pack } : undefined)
      if (owner) return `shape ${name} of ${pack} differs from that of ${owner.pack}`
    }
    return undefined
  }

  #each({ names, codes, shapeOf }: Claims, work: <T>(table: Claimed<T>, key: unknown, value: T) => void): void {
    for (const [key, words] of names) work(this.#names, key, words)
    for (const [code, spec] of codes) work(this.#codes, code, spec)
    for (const [name, shape] of shapeOf) work(this.#shapes, name, shape)
  }
}

/** Keys, each with those who have it, the first one first. */
class Claimed<T> {
  readonly #owners = new Map<unknown, { readonly pack: string; readonly value: T }[]>()

  add(key: unknown, pack: string, value: T): void {
    const owners = this.#owners.get(key)
    if (owners) owners.push({ pack, value })
    else this.#owners.set(key, [{ pack, value }])
  }

  remove(key: unknown, pack: string): void {
    const owners = this.#owners.get(key)?.filter(owner => owner.pack !== pack) ?? []
    if (owners.length > 0) this.#owners.set(key, owners)
    else this.#owners.delete(key)
  }

  /** The first other pack that has the key, of those that are `wrong`. */
  other(key: unknown, pack: string, wrong: (value: T) => boolean = () => true): { readonly pack: string; readonly value: T } | undefined {
    return this.#owners.get(key)?.find(owner => owner.pack !== pack && wrong(owner.value))
  }
}

/** One name, one shape: clients are generated from it. Copies that say the same are fine. */
function differ(a: object, b: object): boolean {
  return a !== b && JSON.stringify(a) !== JSON.stringify(b)
}
