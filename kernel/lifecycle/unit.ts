/**
 * One pack inside a kernel: its state, what it provides and registers, and the undo of all of it; and the registry of what all active
 * packs have on the wire, where clashes are found before anything is published.
 */

import type { AnyRoute, EventSpec, FrameSpec, OutFrameSpec } from '../contract.ts'
import type { ErrorSpec } from '../errors.ts'
import { type MountedRoute, routeKey } from '../http/router.ts'
import type { PackFacts, PackState } from '../info.ts'
import type { FrameCheck, FrameHandler, Pack, RouteHandler } from '../pack.ts'
import { type NamedShape, shapesIn } from '../shapes.ts'
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

interface Owner {
  readonly pack: string
  claims(): Claims
}

/** The wire surface of all active packs. */
export class Registry {
  readonly #active: Registrations[] = []
  readonly #kernel: Owner

  /** `kernel`: what the kernel itself answers and sends; packs must not clash with it either. */
  constructor(kernel: Surface) {
    const claims = claimsOf(kernel)
    this.#kernel = { pack: kernel.pack, claims: () => claims }
  }

  /** Text of the first clash with what is mounted, or within the candidate itself. What is mounted was held against the others when it came. */
  clash(candidate: Registrations): string | undefined {
    const others = [this.#kernel, ...this.#active.filter(entry => entry.pack !== candidate.pack)]
    const { names, twice } = candidate.claims()
    for (const [key, words] of names) {
      const owner = others.find(other => other.claims().names.has(key))
      if (owner) return `${words} of ${candidate.pack} clashes with ${owner.pack}`
    }
    if (twice !== undefined) return `${twice} of ${candidate.pack} clashes with ${candidate.pack}`
    return codeClash(candidate, others) ?? shapeClash(candidate, others)
  }

  publish(entry: Registrations): () => void {
    return added(this.#active, entry)
  }

  routes(): MountedRoute[] {
    return this.#active.flatMap(entry => entry.routes)
  }

  frames(): MountedFrame[] {
    return this.#active.flatMap(entry => entry.frames)
  }

  events(): EventSpec[] {
    return this.#active.flatMap(entry => entry.events)
  }

  outFrames(): OutFrameSpec[] {
    return this.#active.flatMap(entry => entry.outFrames)
  }

  owners(): Map<object, PackFacts> {
    const owners = new Map<object, PackFacts>()
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

function codeClash(candidate: Owner, others: readonly Owner[]): string | undefined {
  const owners = [...others, candidate]
  for (const { code, name } of candidate.claims().errors) {
    const owner = owners.find(one => (one.claims().codes.get(code)?.name ?? name) !== name)
    if (owner) return `error code ${code} is '${owner.claims().codes.get(code)?.name}' of ${owner.pack} and '${name}' of ${candidate.pack}`
  }
  return undefined
}

/** One name, one shape: clients are generated from it. Copies that say the same are fine. */
function shapeClash(candidate: Owner, others: readonly Owner[]): string | undefined {
  const owners = [...others, candidate]
  for (const { name, shape } of candidate.claims().shapes) {
    const owner = owners.find(one => {
      const first = one.claims().shapeOf.get(name)?.shape
      return first !== undefined && first !== shape && JSON.stringify(first) !== JSON.stringify(shape)
    })
    if (owner) return `shape ${name} of ${candidate.pack} differs from that of ${owner.pack}`
  }
  return undefined
}
