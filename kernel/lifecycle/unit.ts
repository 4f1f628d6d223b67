/**
 * One pack inside a kernel: its state, what it provides and registers, and the undo of all of it; and the registry of what all active
 * packs have on the wire, where clashes are found before anything is published.
 */

import type { TSchema } from '@sinclair/typebox'
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
  #shapes: readonly NamedShape[] | undefined

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

  shapes(): readonly NamedShape[] {
    this.#shapes ??= shapesOf(this.surface())
    return this.#shapes
  }

  #added<T>(list: T[], item: T): () => void {
    this.#shapes = undefined
    const remove = added(list, item)
    return () => {
      this.#shapes = undefined
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
  readonly #kernel: Surface
  readonly #kernelShapes: readonly NamedShape[]

  /** `kernel`: what the kernel itself answers and sends; packs must not clash with it either. */
  constructor(kernel: Surface) {
    this.#kernel = kernel
    this.#kernelShapes = shapesOf(kernel)
  }

  /** Text of the first clash with what is mounted, or within the candidate itself. */
  clash(registrations: Registrations): string | undefined {
    const candidate = registrations.surface()
    const others = [this.#kernel, ...this.#active.filter(entry => entry.pack !== candidate.pack).map(entry => entry.surface())]
    return (
      duplicate(candidate, others, 'route', one => one.routes.map(spec => [clashKey(spec), `${spec.method} ${spec.path}`])) ??
      duplicate(candidate, others, 'event type', one => one.events.map(spec => [spec.type, spec.type])) ??
      duplicate(candidate, others, 'frame type', one => one.frames.map(spec => [spec.type, spec.type])) ??
      duplicate(candidate, others, 'sent frame type', one => one.outFrames.map(spec => [spec.type, spec.type])) ??
      duplicate(candidate, others, 'operation id', one =>
        one.routes.flatMap(({ operationId }) => (operationId === undefined ? [] : [[operationId, operationId]]))
      ) ??
      codeClash(candidate, others) ??
      this.#shapeClash(registrations)
    )
  }

  /** One name, one shape: clients are generated from it. Copies that say the same are fine. */
  #shapeClash(candidate: Registrations): string | undefined {
    const others = this.#active.filter(entry => entry.pack !== candidate.pack)
    const known = new Map<string, { readonly shape: TSchema; readonly pack: string }>()
    const all = [
      { pack: this.#kernel.pack, shapes: this.#kernelShapes },
      ...[...others, candidate].map(one => ({ pack: one.pack, shapes: one.shapes() }))
    ]
    for (const { pack, shapes } of all) {
      for (const { name, shape } of shapes) {
        const first = known.get(name)
        if (!first) known.set(name, { shape, pack })
        else if (first.shape !== shape && JSON.stringify(first.shape) !== JSON.stringify(shape)) {
          return `shape ${name} of ${pack} differs from that of ${first.pack}`
        }
      }
    }
    return undefined
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

function codeClash(candidate: Surface, others: readonly Surface[]): string | undefined {
  const known = new Map<number, { spec: ErrorSpec; pack: string }>()
  for (const entry of [...others, candidate]) {
    for (const spec of entry.errors) {
      const first = known.get(spec.code)
      if (!first) known.set(spec.code, { spec, pack: entry.pack })
      else if (first.spec.name !== spec.name) {
        return `error code ${spec.code} is '${first.spec.name}' of ${first.pack} and '${spec.name}' of ${entry.pack}`
      }
    }
  }
  return undefined
}

function duplicate(
  candidate: Surface,
  others: readonly Surface[],
  what: string,
  keysOf: (one: Surface) => (readonly [key: string, shown: string])[]
): string | undefined {
  const taken = new Map<string, string>()
  for (const other of others) for (const [key] of keysOf(other)) taken.set(key, other.pack)
  for (const [key, shown] of keysOf(candidate)) {
    const owner = taken.get(key)
    if (owner !== undefined) return `${what} ${shown} of ${candidate.pack} clashes with ${owner}`
    taken.set(key, candidate.pack)
  }
  return undefined
}
