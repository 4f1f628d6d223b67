/** Builds the context of one pack; every call registers its undo in the pack's scope. */
import { join } from 'node:path'
import { inspect } from 'node:util'
import { Value } from '@sinclair/typebox/value'
import type { AnyRoute, EventSpec, FrameSpec, OutFrameSpec, StoreSpec } from '../contract.ts'
import { assertEvent, assertFrame, assertFunction, assertItem, assertOutFrame } from '../declared.ts'
import type { Environment } from '../environment.ts'
import { developerError } from '../errors.ts'
import { assertRoute, nameOf } from '../http/router.ts'
import { createOperator } from '../log/log.ts'
import type { FrameCheck, FrameHandler, Pack, PackContext, RouteHandler, Undo } from '../pack.ts'
import type { Hub } from '../realtime/hub.ts'
import type { EventTarget, Listener, Streams } from '../realtime/types.ts'
import { fillDefaults, problems, stripUnknown } from '../schema.ts'
import { isRecord } from '../shapes.ts'
import type { FenceRules } from '../storage/fences.ts'
import type { Storage, StoreOf } from '../storage/ports.ts'
import { guardedItems, membersOf, type PointTable } from './faces.ts'
import { isTappable, ownedTap, type TapOptions, type TapPoints, type Tappable, type TappedHooks } from './hooks.ts'
import type { Lifecycle } from './lifecycle.ts'
import { startChild, startTimer } from './scope.ts'
import { type Accounts, type Contribution, type Derived, derived, type ExtensionPoint, type ServiceToken } from './services.ts'
import type { AnySlot } from './slot.ts'
import type { Registrations, Unit } from './unit.ts'
import { waitAtMost } from './wait.ts'

/** What contexts share: one per kernel. */
export interface ContextParts {
  readonly storage: Storage
  readonly fences: FenceRules
  readonly hub: Hub
  readonly hooks: TapPoints
  /** The hook `started` was called, or is just being called. */
  readonly hasStarted: () => boolean
  readonly tapped: TappedHooks
  readonly points: PointTable
  readonly lifecycle: Pick<Lifecycle, 'withdrawService' | 'absence' | 'comesBack'>
  /** Puts registrations made after activation on the wire. Throws, with the clash named, when they cannot go there. */
  readonly remount: (added?: Registrations) => void
  /** Takes an active pack out as Failed. */
  readonly fail: (pack: string, error: Error) => void
}

export function createContext(env: Environment, unit: Unit, config: unknown, parts: ContextParts): PackContext<never> {
  const { scope, name, registrations, staged, provided } = unit // of this activation: the unit gets new ones for the next
  const { activity } = registrations
  const { home, graceMs, setupTimeoutMs, frameTimeoutMs } = env.options
  const log = env.log.child({ pack: name })
  const starter = { pack: name, guard: env.guard, scope }
  const absence = () => parts.lifecycle.absence(name)
  const tapOwner = { pack: name, guard: env.guard, tapped: parts.tapped, notifyMs: setupTimeoutMs, answerMs: frameTimeoutMs, absence }

  /** What was collected, which is let go of behind all clean-ups: else each activation would keep those of its neighbours, and they the ones before. */
  const collected: Derived<unknown>[] = []
  scope.own(() => {
    for (const each of collected) each.forget()
  })
  /** What was opened works until the clean-up is through. */
  const use = () => {
    if (scope.ended) throw developerError('pack_inactive', name)
  }
  const usable =
    <A extends unknown[], T>(fn: (...args: A) => T) =>
    (...args: A): T => {
      use()
      return fn(...args)
    }
  const open = () => {
    if (scope.closed) throw developerError('pack_inactive', name)
  }
  /** During setup the effect is staged and becomes visible with the others; afterwards it happens at once. */
  const publish = (effect: () => () => void): Undo => {
    let undo: (() => void) | undefined
    let gone = false
    const take = scope.ownUndo(() => {
      gone = true
      undo?.()
    })
    const run = () => {
      if (!gone) undo = effect()
    }
    if (unit.state === 'Activating') staged.push(run)
    else run()
    return take
  }
  const mount = (register: () => () => void): Undo => {
    open()
    if (unit.state === 'Unloading') throw developerError('pack_inactive', name)
    const remove = register()
    try {
      if (unit.state === 'Active') parts.remount(registrations)
    } catch (error) {
      remove()
      throw error
    }
    return () => {
      remove()
      if (unit.state === 'Active' && !scope.closed) parts.remount()
    }
  }
  const accounts: Accounts = {
    onAccountOf: (pack, what, work) => env.guard.run(pack, what, work),
    blame: (pack, what, error, facts) => env.guard.report(pack, what, error, facts)
  }
  const guarded = guardedItems(accounts, frameTimeoutMs)
  const storeAt = <S extends StoreSpec>(spec: S, dir: string): StoreOf<S> => {
    use()
    const store = parts.storage.open(spec, { namespace: name, dir })
    return whileUsable(store, [...membersOf(store).keys()], use)
  }

  return {
    name,
    config: config as never,
    log,
    operator: createOperator(log, env.options.onOperatorLine),
    home,
    get signal() {
      return scope.signal
    },
    hooks: parts.hooks,
    streams: whileUsable<Streams>(parts.hub, streamMethods, use),
    hosts: env.hosts,
    now: env.now,
    newId: env.newId,
    route(spec: AnyRoute, handler: unknown) {
      assertRoute(spec)
      assertFunction(`the handler of ${spec.method} ${spec.path}`, handler)
      const route = { pack: name, name: nameOf(spec), spec, handler: handler as RouteHandler<never>, activity }
      return mount(() => registrations.add('routes', route))
    },
    event(spec: EventSpec) {
      assertEvent(spec)
      let live = true
      const remove = mount(() => registrations.add('events', spec))
      const emit = (payload: unknown, target?: string | EventTarget) => {
        use()
        if (!live) throw developerError('event_withdrawn', spec.type)
        parts.hub.emit(spec, payload, target)
      }
      const undo = () => {
        live = false
        remove()
      }
      return Object.assign(emit, { undo }) as never // typed by the spec, in PackContext
    },
    on<E extends EventSpec>(spec: E, listener: Listener<E>) {
      const { type } = spec
      assertFunction(`the listener of ${type}`, listener)
      return publish(() => parts.hub.on(type, listener as Listener<EventSpec>, name))
    },
    frame(spec: FrameSpec, handler: unknown, before?: FrameCheck) {
      assertFrame(spec)
      assertFunction(`the handler of ${spec.type}`, handler)
      if (before !== undefined) assertFunction(`the check of ${spec.type}`, before)
      const frame = { pack: name, name: `handler of frame ${spec.type}`, spec, handler: handler as FrameHandler<never>, before, activity }
      return mount(() => registrations.add('frames', frame))
    },
    outFrame(spec: OutFrameSpec) {
      assertOutFrame(spec)
      return mount(() => registrations.add('outFrames', spec))
    },
    store: (spec, place) => storeAt(spec, place ? join(home, place.dir) : join(home, 'packs', name, spec.name)),
    storeAt,
    fence(of) {
      assertFunction('a rule of fences', of)
      return scope.ownUndo(parts.fences.add(name, of))
    },
    provide<T>(token: ServiceToken<T>, impl: T) {
      open()
      if (!unit.declares().includes(token.id)) throw developerError('service_undeclared', name, token.id)
      if (provided.has(token.id)) throw developerError('service_twice', name, token.id)
      if (unit.state !== 'Activating') throw developerError('service_late', name, token.id)
      provided.set(token.id, impl)
      return async () => {
        if (unit.state === 'Activating') provided.delete(token.id)
        else if (unit.provided === provided) await parts.lifecycle.withdrawService(unit, token.id)
      }
    },
    contribute<T>(point: ExtensionPoint<T>, item: T) {
      assertItem(point, item)
      return publish(() => parts.points.add(point.id, name, unit.activated, item, () => parts.lifecycle.comesBack(unit)))
    },
    collect<T>(point: ExtensionPoint<T>) {
      open()
      const what = `change listener of ${point.id}`
      const faced = (which: 'entries' | 'away') => {
        const given = () => parts.points.lists(point.id)[which] as readonly Contribution<T>[]
        const make = () => guarded(point, given())
        const lists = derived(() => [given()], make)
        collected.push(lists)
        return lists
      }
      const there = faced('entries')
      const away = faced('away')
      return {
        items: usable(() => there().items),
        entries: usable(() => there().entries),
        away: usable(() => away().entries),
        onChange: (listener: () => void) => {
          assertFunction(`the ${what}`, listener)
          return scope.ownUndo(parts.points.onChange(point.id, () => env.guard.tell(name, what, listener)))
        }
      }
    },
    slot(slot: AnySlot) {
      open()
      return scope.own(env.hosts.admit(slot, name))
    },
    tap(hook: Tappable, fn: unknown, options: TapOptions = {}) {
      if (!isTappable(hook)) throw developerError('argument_odd', 'ctx.tap', 'a hook', inspect(hook, { depth: 0 }))
      assertFunction('a tap', fn)
      return publish(() => {
        const undo = ownedTap(hook, fn as (...args: never[]) => unknown, options, tapOwner)
        if (hook !== parts.hooks.started || !parts.hasStarted()) return undo
        let live = true
        queueMicrotask(() => {
          if (live) void env.guard.settle(name, 'tap of started', fn as () => unknown, setupTimeoutMs)
        })
        return () => {
          live = false
          undo()
        }
      })
    },
    own(dispose) {
      assertFunction('a clean-up', dispose)
      return scope.own(dispose)
    },
    timer(ms, work) {
      assertFunction('a timer', work)
      return startTimer(starter, ms, work)
    },
    spawn(command, args = [], options = {}) {
      open()
      return startChild(starter, command, args, options, graceMs / 2)
    },
    onAccountOf: usable(accounts.onAccountOf) as Accounts['onAccountOf'], // of any type
    blame: usable(accounts.blame),
    fail(error) {
      if (unit.scope !== scope || scope.closed) return
      if (unit.state === 'Activating') unit.error = error
      else if (unit.state === 'Active') parts.fail(name, error)
    },
    background(work) {
      open()
      const running = env.guard
        .run(name, 'background work', async () => await work(scope.signal))
        .catch((err: unknown) => {
          if (!scope.signal.aborted) env.guard.report(name, 'background work', err)
        })
      const done = scope.own(() => waitAtMost(running, graceMs))
      void running.then(done)
    }
  }
}

/** Methods of streams that answer at once, as `scan` of a store does; the others of both answer with a promise. */
const streamFacts = ['watermark', 'written', 'backwards', 'subscribers', 'followed', 'resync']
const streamMethods = ['open', 'openForeign', 'takeOver', 'lost', 'flushed', 'close', 'remove', 'read', ...streamFacts]
const atOnce = [...streamFacts, 'scan']

/** These methods alone, as long as `use` does not throw. Those that answer with a promise fail by rejecting it. */
function whileUsable<T extends object>(target: T, names: readonly string[], use: () => void): T {
  const face: Record<string, unknown> = {}
  const methods = target as Readonly<Record<string, (...args: unknown[]) => unknown>>
  for (const name of names) {
    face[name] = (...args: unknown[]) => {
      try {
        use()
      } catch (error) {
        if (atOnce.includes(name)) throw error
        return Promise.reject(error)
      }
      return methods[name]?.(...args)
    }
  }
  return face as T
}

/** The deployment options of a pack, checked against its schema, defaults filled in. Throws with the offending fields named; the pack then fails. */
export function deploymentConfig(pack: Pack, given: unknown): unknown {
  if (given !== undefined && !isRecord(given)) throw developerError('config_rejected', pack.name, 'must be a table')
  const unknown = Object.keys(given ?? {}).filter(key => !(pack.config && Object.hasOwn(pack.config.properties, key)))
  if (unknown.length > 0) {
    const known = Object.keys(pack.config?.properties ?? {}).join(', ') || 'none'
    throw developerError('config_rejected', pack.name, `unknown ${unknown.join(', ')} (known: ${known})`)
  }
  if (!pack.config) return {}
  const value = fillDefaults(pack.config, structuredClone(given ?? {}))
  const details = Value.Check(pack.config, value) ? [] : problems(pack.config, value) // once per activation: compiling the check would take longer
  if (details.length === 0) return stripUnknown(pack.config, value)
  throw developerError('config_rejected', pack.name, details.map(detail => `${detail.path || 'config'}: ${detail.message}`).join('; '))
}
