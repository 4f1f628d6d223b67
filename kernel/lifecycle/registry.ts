/** What active packs have put on the wire: routes, events, frames, error codes; clashes are found before anything is published. */

import type { AnyRoute, EventSpec, FrameSpec, OutFrameSpec } from '../contract.ts'
import { CredentialRejected, type ErrorSpec, generalErrors } from '../errors.ts'
import { type MountedRoute, routeKey } from '../http/router.ts'
import type { FrameHandler, RouteHandler } from '../pack.ts'
import { Activity } from './activity.ts'

export interface MountedFrame {
  readonly pack: string
  readonly spec: FrameSpec
  readonly handler: FrameHandler<never>
  readonly activity: Activity
}

/** Everything one pack has registered and not yet taken back. */
export class Registrations {
  readonly routes: MountedRoute[] = []
  readonly frames: MountedFrame[] = []
  readonly events: EventSpec[] = []
  readonly outFrames: OutFrameSpec[] = []
  readonly errors: ErrorSpec[] = []
  readonly activity = new Activity()
  readonly pack: string

  constructor(pack: string) {
    this.pack = pack
  }

  route(spec: AnyRoute, handler: RouteHandler<never>): void {
    this.routes.push({ pack: this.pack, spec, handler, activity: this.activity })
    this.errors.push(...(spec.errors ?? []))
  }

  frame(spec: FrameSpec, handler: FrameHandler<never>): void {
    this.frames.push({ pack: this.pack, spec, handler, activity: this.activity })
    this.errors.push(...(spec.errors ?? []))
  }
}

/** The wire surface of all active packs. */
export class Registry {
  readonly #active: Registrations[] = []

  /** Text of the first clash with what is mounted, or within the candidate itself. */
  clash(candidate: Registrations): string | undefined {
    const others = this.#active.filter(entry => entry.pack !== candidate.pack)
    return (
      duplicate(candidate, others, 'route', entry =>
        entry.routes.map(route => [routeKey(route.spec), `${route.spec.method} ${route.spec.path}`])
      ) ??
      duplicate(candidate, others, 'event type', entry => entry.events.map(spec => [spec.type, spec.type])) ??
      duplicate(candidate, others, 'frame type', entry => entry.frames.map(frame => [frame.spec.type, frame.spec.type])) ??
      this.#codeClash(candidate, others)
    )
  }

  publish(entry: Registrations): () => void {
    this.#active.push(entry)
    return () => {
      const index = this.#active.indexOf(entry)
      if (index >= 0) this.#active.splice(index, 1)
    }
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

  #codeClash(candidate: Registrations, others: readonly Registrations[]): string | undefined {
    const known = new Map<number, { spec: ErrorSpec; pack: string }>()
    for (const spec of [...generalErrors, CredentialRejected]) known.set(spec.code, { spec, pack: 'the kernel' })
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
}

function duplicate(
  candidate: Registrations,
  others: readonly Registrations[],
  what: string,
  keysOf: (entry: Registrations) => (readonly [key: string, shown: string])[]
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
