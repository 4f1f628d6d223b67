/**
 * One pack inside a kernel: its state, what it provides and registers, and the undo of all of it; and the registry of what all active
 * packs have on the wire, where clashes are found before anything is published.
 */

import type { AnyRoute, EventSpec, FrameSpec, OutFrameSpec } from '../contract.ts'
import { developerError, type ErrorSpec } from '../errors.ts'
import { type MountedRoute, nameOf, routeKey } from '../http/router.ts'
import type { Declarations, PackFacts, PackState } from '../info.ts'
import type { FrameCheck, FrameHandler, Pack } from '../pack.ts'
import { shapesIn } from '../schema.ts'
import type { NamedShape } from '../shapes.ts'
import { Activity, Scope } from './scope.ts'

export interface MountedFrame {
  readonly pack: string
  /** For logs and accounts: `handler of frame look`. */
  readonly name: string
  readonly spec: FrameSpec
  readonly handler: FrameHandler<never>
  /** Runs before the payload is checked, so that other refusals can come first. */
  readonly before?: FrameCheck | undefined
  readonly activity: Activity
}

/** What one owner has on the wire, as declared. */
export interface Surface extends Pick<Declarations, 'routes' | 'events' | 'frames' | 'outFrames'> {
  readonly pack: string
  readonly errors: readonly ErrorSpec[]
}

/** What an owner takes on the wire. Of an error or a shape others may have a copy that says the same; everything else is for one alone. */
interface Claim {
  readonly pack: string
  readonly key: string
  readonly what: string | ErrorSpec | NamedShape
}

/** By their keys, of several with one key the first. Throws `wire_clash` when two of them cannot both be. */
type Claims = ReadonlyMap<string, Claim>

function claimsOf(surface: Surface): Claims {
  const { pack, routes, events, frames, outFrames, errors } = surface
  const alone = (what: string, key = what): Claim => ({ pack, key, what })
  const claims = new Map<string, Claim>()
  for (const claim of [
    ...routes.map(spec => alone(nameOf(spec), `route ${clashKey(spec)}`)),
    ...events.map(({ type }) => alone(`event type ${type}`)),
    ...frames.map(({ type }) => alone(`frame type ${type}`)),
    ...outFrames.map(({ type }) => alone(`sent frame type ${type}`)),
    ...routes.flatMap(({ operationId: id }) => (id === undefined ? [] : [alone(`operation id ${id}`)])),
    ...[...new Set(errors)].map(what => ({ pack, key: `error code ${what.code}`, what })),
    ...shapesOf(surface).map(what => ({ pack, key: `shape ${what.name}`, what }))
  ]) {
    assertBoth(claim, claims)
    if (!claims.has(claim.key)) claims.set(claim.key, claim)
  }
  return claims
}

function assertBoth(claim: Claim, taken: Claims): void {
  const other = taken.get(claim.key)
  const clash = other && clashOf(claim, other)
  if (clash !== undefined) throw developerError('wire_clash', clash)
}

/** Why two claims to one key cannot both be; undefined when they can. */
function clashOf({ pack, what }: Claim, other: Claim): string | undefined {
  if (typeof what === 'string') return `${what} of ${pack} clashes with ${other.pack}`
  if ('code' in what) {
    const { name } = other.what as ErrorSpec
    return what.name === name ? undefined : `error code ${what.code} is '${name}' of ${other.pack} and '${what.name}' of ${pack}`
  }
  const { shape } = other.what as NamedShape // one name, one shape: clients are generated from it
  const differs = what.shape !== shape && JSON.stringify(what.shape) !== JSON.stringify(shape)
  return differs ? `shape ${what.name} of ${pack} differs from that of ${other.pack}` : undefined
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

/** What packs have on the wire, as it is answered. */
type Wire = Readonly<Pick<Registrations, 'routes' | 'frames' | 'events' | 'outFrames'>>

/** Everything one pack has registered and not yet taken back. Each registration returns its undo. */
export class Registrations {
  readonly routes: MountedRoute[] = []
  readonly frames: MountedFrame[] = []
  readonly events: EventSpec[] = []
  readonly outFrames: OutFrameSpec[] = []
  readonly activity = new Activity()
  readonly facts: PackFacts & Pick<Pack, 'errors'>
  /** Of the lists as they are now. */
  #claims: Claims | undefined

  constructor(pack: Registrations['facts']) {
    this.facts = pack
  }

  get pack(): string {
    return this.facts.name
  }

  /** Puts something on one of the lists; returns its undo. */
  add<L extends 'routes' | 'frames' | 'events' | 'outFrames'>(list: L, item: Registrations[L][number]): () => void {
    this.#claims = undefined
    const remove = added<unknown>(this[list], item)
    return () => {
      this.#claims = undefined
      remove()
    }
  }

  surface(): Surface {
    const { pack, events, outFrames } = this
    const routes = this.routes.map(route => route.spec)
    const frames = this.frames.map(frame => frame.spec)
    const invalid = frames.flatMap(spec => spec.invalid ?? [])
    const errors = [...this.facts.errors, ...[...routes, ...frames].flatMap(spec => spec.errors ?? []), ...invalid]
    return { pack, routes, events, frames, outFrames, errors }
  }

  claims(): Claims {
    this.#claims ??= claimsOf(this.surface())
    return this.#claims
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
  scope!: Scope
  registrations!: Registrations
  /** Services by token id, staged by setup. */
  provided!: Map<string, unknown>
  /** Registrations that become visible together when the pack turns Active. */
  staged!: (() => void)[]
  /** Activation sequence number; dependents have higher ones. */
  activated = 0
  setupMs: number | undefined
  activeSince: Date | undefined

  constructor(pack: Pack) {
    this.pack = pack
    this.reset()
  }

  get name(): string {
    return this.pack.name
  }

  /** Fresh scope and lists for the next activation. */
  reset(): void {
    this.scope = new Scope(() => developerError('pack_inactive', this.name))
    this.registrations = new Registrations(this.pack)
    this.provided = new Map()
    this.staged = []
    this.error = undefined
  }

  /** Ids of needed services. */
  needs(): string[] {
    return Object.values(this.pack.needs).map(token => token.id)
  }

  /** Ids of needed services, and of those that it can do without. */
  uses(): string[] {
    return [...this.needs(), ...Object.values(this.pack.optional).map(token => token.id)]
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
  readonly #kernel: Claims

  /** `kernel`: what the kernel itself answers and sends; packs must not clash with it either. */
  constructor(kernel: Surface) {
    this.#kernel = claimsOf(kernel)
  }

  /** Throws `wire_clash` for a clash with what is mounted, or within the candidate itself. What is mounted was held against the others when it came. */
  assertFree(candidate: Registrations): void {
    const claims = candidate.claims()
    const others = this.#active.filter(entry => entry !== candidate).map(entry => entry.claims())
    for (const taken of [this.#kernel, ...others]) {
      const [few, many] = taken.size < claims.size ? [taken, claims] : [claims, taken] // every pack is held against every other one
      for (const key of few.keys()) if (many.has(key)) assertBoth(claims.get(key) as Claim, taken)
    }
  }

  /** A pack goes, and may come back: until then its routes and frames answer that it is away (`Activity.absence`). */
  leaves({ pack, facts, routes, frames }: Registrations): void {
    const handler = (() => undefined) as never // nothing of the pack is kept
    this.#away.set(pack, {
      facts,
      routes: routes.map(route => ({ ...route, handler })),
      frames: frames.map(frame => ({ ...frame, handler, before: undefined }))
    })
  }

  publish(entry: Registrations): () => void {
    this.#away.delete(entry.pack)
    return added(this.#active, entry)
  }

  /** What is on the wire now. Of packs that are away what is asked of them, where nobody else has taken its place. */
  wire(): Wire {
    const routes = this.#active.flatMap(entry => entry.routes)
    const frames = this.#active.flatMap(entry => entry.frames)
    const events = this.#active.flatMap(entry => entry.events)
    const outFrames = this.#active.flatMap(entry => entry.outFrames)
    for (const [pack, { routes, frames }] of this.#away) if (!(routes[0] ?? frames[0])?.activity.absence) this.#away.delete(pack)
    const taken = new Set([...routes.map(({ spec }) => clashKey(spec)), ...frames.map(({ spec }) => spec.type)])
    const away = [...this.#away.values()]
    return {
      routes: [...routes, ...away.flatMap(({ routes }) => routes).filter(({ spec }) => !taken.has(clashKey(spec)))],
      frames: [...frames, ...away.flatMap(({ frames }) => frames).filter(({ spec }) => !taken.has(spec.type))],
      events,
      outFrames
    }
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
