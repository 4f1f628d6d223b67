/** Builds the context of one pack; every call registers its undo in the pack's scope. */
import { join } from 'node:path'
import type { AnyRoute, EventSpec, FrameSpec, OutFrameSpec, StoreSpec } from '../contract.ts'
import { assertRoute } from '../http/router.ts'
import type { Logger } from '../log/log.ts'
import type { FrameHandler, PackContext, RouteHandler } from '../pack.ts'
import type { Hub } from '../realtime/hub.ts'
import type { Emit, EventTarget, Listener } from '../realtime/types.ts'
import type { Storage, StoreOf } from '../storage/ports.ts'
import { type KernelHooks, ownedTap, type TapOptions } from './hooks.ts'
import type { PointTable } from './services.ts'
import { emptySlot, type Slot } from './slot.ts'
import type { ExtensionPoint, ServiceToken } from './token.ts'
import type { Unit } from './unit.ts'

/** What contexts share: one per kernel. */
export interface ContextParts {
  readonly home: string
  readonly log: (pack: string) => Logger
  readonly storage: Storage
  readonly hub: Hub
  readonly hooks: KernelHooks
  readonly points: PointTable
  readonly now: () => Date
  readonly newId: () => string
  readonly graceMs: number
  /** Puts registrations made after activation on the wire. */
  readonly remount: () => void
}

export function createContext(unit: Unit, config: unknown, parts: ContextParts): PackContext<never> {
  const { scope, name } = { scope: unit.scope, name: unit.name }
  const log = parts.log(name)

  /** During setup the effect is staged and becomes visible with the others; afterwards it happens at once. */
  const publish = (effect: () => void) => {
    if (scope.closed) throw new Error(`pack ${name} is not active any more`)
    if (unit.state === 'Activating') unit.staged.push(effect)
    else effect()
  }
  const mounted = (register: () => void) => {
    if (scope.closed) throw new Error(`pack ${name} is not active any more`)
    register()
    if (unit.state === 'Active') parts.remount()
  }
  const storeAt = <S extends StoreSpec>(spec: S, dir: string): StoreOf<S> => parts.storage.open(spec, { namespace: name, dir })

  const context: PackContext<never> = {
    name,
    config: config as never,
    log,
    home: parts.home,
    signal: scope.signal,
    hooks: parts.hooks,
    streams: parts.hub,
    now: parts.now,
    newId: parts.newId,
    route(spec: AnyRoute, handler: unknown) {
      assertRoute(spec)
      mounted(() => unit.registrations.route(spec, handler as RouteHandler<never>))
    },
    event<E extends EventSpec>(spec: E): Emit<E> {
      mounted(() => unit.registrations.events.push(spec))
      const emit = (payload: unknown, target?: string | EventTarget) => parts.hub.emit(spec, payload, target)
      return emit as Emit<E>
    },
    on<E extends EventSpec>(spec: E, listener: Listener<E>) {
      publish(() => scope.own(parts.hub.on(spec.type, listener as Listener<EventSpec>)))
    },
    frame(spec: FrameSpec, handler: unknown) {
      mounted(() => unit.registrations.frame(spec, handler as FrameHandler<never>))
    },
    outFrame(spec: OutFrameSpec) {
      mounted(() => unit.registrations.outFrames.push(spec))
    },
    store: (spec, place) => storeAt(spec, place ? join(parts.home, place.dir) : join(parts.home, 'packs', name, spec.name)),
    storeAt,
    provide<T>(token: ServiceToken<T>, impl: T) {
      if (!unit.declares().includes(token.id)) throw new Error(`pack ${name} provides '${token.id}' without declaring it`)
      if (unit.provided.has(token.id)) throw new Error(`pack ${name} provides '${token.id}' twice`)
      if (unit.state !== 'Activating') throw new Error(`pack ${name} provides '${token.id}' after its setup`)
      unit.provided.set(token.id, impl)
    },
    contribute<T>(point: ExtensionPoint<T>, item: T) {
      publish(() => scope.own(parts.points.add(point.id, unit.order, item)))
    },
    collect: <T>(point: ExtensionPoint<T>) => parts.points.collection<T>(point.id, undo => scope.own(undo)),
    slot(slot: Slot<unknown, never> | Slot<unknown>) {
      scope.own(() => emptySlot(slot.name))
    },
    tap(hook: unknown, fn: unknown, options: TapOptions = {}) {
      publish(() =>
        scope.own(
          ownedTap(
            hook as Parameters<typeof ownedTap>[0],
            fn as (...args: never[]) => unknown,
            { ...options, name: options.name ?? name },
            log
          )
        )
      )
    },
    own: dispose => scope.own(dispose),
    background(work) {
      const running = work(scope.signal).catch((err: unknown) => {
        if (!scope.signal.aborted) log.error({ err }, 'background work failed')
      })
      scope.own(() => settled(running, parts.graceMs))
    }
  }
  return context
}

/** Waits for the work, at most `ms`. */
async function settled(work: Promise<unknown>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  await Promise.race([
    work,
    new Promise<void>(resolve => {
      timer = setTimeout(resolve, ms)
    })
  ])
  clearTimeout(timer)
}
