/**
 * What packs get of what others have made: the items of extension points, whose functions that may fail are put down to the pack of the item, and
 * services, whose listeners are put down to the pack that hands them in and go with it.
 */
import { assertFunction } from '../declared.ts'
import { developerError } from '../errors.ts'
import { type Guard, inTime } from './guard.ts'
import { LazySignal, type Scope } from './scope.ts'
import type { Accounts, Contribution, ExtensionPoint, Listening, ServiceToken } from './services.ts'
import { isPromise } from './wait.ts'

interface Entry extends Contribution<unknown> {
  /** When the pack of the item was activated. */
  readonly order: number
}

interface Point {
  readonly listeners: Set<() => void>
  entries: readonly Entry[]
  away: readonly Entry[]
}

/** Extension points by id; items keep the activation order of their packs. */
export class PointTable {
  readonly #points = new Map<string, Point>()

  /** Adds an item; returns its withdrawal. `comesBack`: asked then, the pack is expected to bring it again. */
  add(id: string, pack: string, order: number, item: unknown, comesBack = () => false): () => void {
    const point = this.#point(id)
    if (point.away.length > 0) point.away = Object.freeze(point.away.filter(other => other.pack !== pack))
    const end = new LazySignal()
    const entry: Entry = {
      pack,
      order,
      item,
      get signal() {
        return end.signal
      }
    }
    const at = point.entries.findIndex(other => other.order > order)
    this.#change(point, point.entries.toSpliced(at < 0 ? point.entries.length : at, 0, entry))
    return () => {
      if (!point.entries.includes(entry)) return
      if (comesBack()) point.away = Object.freeze([entry, ...point.away]) // they go in reverse
      this.#change(
        point,
        point.entries.filter(other => other !== entry)
      )
      end.abort(() => developerError('pack_inactive', pack))
    }
  }

  /** What is there, and what went with packs that are between two activations. */
  lists(id: string): Readonly<Pick<Point, 'entries' | 'away'>> {
    return this.#point(id)
  }

  /** What is away now does not come back. Items of one point may depend on those of another: everybody hears of it. */
  forgetAway(): void {
    const points = [...this.#points.values()]
    if (points.every(({ away }) => away.length === 0)) return
    for (const point of points) point.away = []
    for (const point of points) this.#change(point, point.entries)
  }

  /** Hears of changes; returns the undo. The listener must not throw. */
  onChange(id: string, listener: () => void): () => void {
    const { listeners } = this.#point(id)
    const entry = () => listener() // a listener may be registered twice
    listeners.add(entry)
    return () => {
      listeners.delete(entry)
    }
  }

  /** Number of contributed items and of listeners over all points, for leak checks. */
  size(): number {
    let size = 0
    for (const point of this.#points.values()) size += point.entries.length + point.listeners.size
    return size
  }

  #point(id: string): Point {
    const point = this.#points.get(id) ?? { entries: [], away: [], listeners: new Set() }
    this.#points.set(id, point)
    return point
  }

  #change(point: Point, entries: readonly Entry[]): void {
    point.entries = Object.freeze(entries) // all readers get the same list: one that sorts its own takes a copy
    for (const listener of [...point.listeners]) listener()
  }
}

type Fn = (...args: unknown[]) => unknown

/** What an object has by name, of its own and of its classes; of two with one name the nearer one. */
export function membersOf(target: object): Map<string, PropertyDescriptor> {
  const members = new Map<string, PropertyDescriptor>()
  for (let at: object | null = target; at !== null && at !== Object.prototype; at = Object.getPrototypeOf(at) as object | null) {
    for (const [name, member] of Object.entries(Object.getOwnPropertyDescriptors(at)))
      if (name !== 'constructor' && !members.has(name)) members.set(name, member)
  }
  return members
}

/** An object with the members of another one: functions as `made` makes them, everything else as it is when it is asked for. */
function faceOf(target: object, made: (fn: Fn, name: string) => Fn, face: object = {}): object {
  for (const [name, { value }] of membersOf(target)) {
    const member = typeof value === 'function' ? { value: made(value, name) } : { get: () => (target as Record<string, unknown>)[name] }
    Object.defineProperty(face, name, { enumerable: true, ...member })
  }
  return face
}

/** By what its collectors get: what its pack contributed. */
const originals = new WeakMap<object, object>()

/** What a pack contributed, of an item that was collected. */
export const asContributed = <T extends object>(item: T): T => (originals.get(item) as T | undefined) ?? item

/**
 * What one pack gets of the points that it collects; an item is the same as long as it is there. `answerMs`: time limit of functions that are
 * awaited.
 */
export function guardedItems(accounts: Accounts, answerMs: number) {
  const faces = new WeakMap<object, { readonly point: string; readonly pack: string; readonly face: object }>()

  function guardedFunction(fn: Fn, instead: Fn, item: object, pack: string, what: string): Fn {
    return (...args) => {
      const failed = (error: unknown) => {
        accounts.blame(pack, what, error)
        return instead.apply(item, args)
      }
      try {
        const answer = accounts.onAccountOf(pack, what, () => fn.apply(item, args))
        return isPromise(answer) ? inTime(Promise.resolve(answer), answerMs).catch(failed) : answer
      } catch (error) {
        return failed(error)
      }
    }
  }

  /**
   * The item with the functions that the point names in `instead` guarded: how long they hold the event loop is counted for the pack, what they
   * throw or reject with is its fault, as is a promise that does not settle in time, and never reaches whoever asks.
   */
  function guardedFace({ id, instead = {} }: ExtensionPoint<unknown>, item: object, pack: string): object {
    const known = faces.get(item)
    if (known?.point === id && known.pack === pack) return known.face
    const label = Object.getOwnPropertyDescriptor(item, 'name')?.value
    const face = faceOf(item, (fn, name) => {
      if (!(name in instead)) return fn.bind(item)
      return guardedFunction(fn, instead[name] as Fn, item, pack, `${name} of ${id}${typeof label === 'string' ? ` ${label}` : ''}`)
    })
    originals.set(face, asContributed(item))
    faces.set(item, { point: id, pack, face })
    return face
  }

  function guarded<T>(point: ExtensionPoint<T>, contribution: Contribution<T>): Contribution<T> {
    const { pack, item } = contribution
    if (typeof item !== 'object' || item === null) return contribution
    return {
      pack,
      item: guardedFace(point, item, pack) as T,
      get signal() {
        return contribution.signal
      }
    }
  }

  return <T>(point: ExtensionPoint<T>, given: readonly Contribution<T>[]) => {
    const entries = point.instead ? Object.freeze(given.map(each => guarded(point, each))) : given
    return { entries, items: Object.freeze(entries.map(({ item }) => item)) }
  }
}

/** By service: what is the same for all packs. */
const sharedFaces = new WeakMap<object, object>()

/** The service, whose functions have it as `this` whoever they are called on. */
function sharedFace(service: object): object {
  const face = sharedFaces.get(service) ?? faceOf(service, fn => fn.bind(service), Object.create(service))
  sharedFaces.set(service, face)
  return face
}

/**
 * What one activation of a pack gets of the services that it uses: each as its provider made it, should it take no listeners, and the same object
 * as long as it is there. Listeners leave with `scope`. `awaitMs`: time limit of those that are awaited.
 */
export function heardServices(pack: string, guard: Guard, scope: Scope, awaitMs: number) {
  const faces = new WeakMap<object, object>()

  /** A function that takes a listener, or an object of several, as its last argument and answers its undo, or a promise of that. */
  function taking(take: Fn, what: string, kind: 'notify' | 'promise'): Fn {
    const guarded =
      (fn: Fn, self?: object): Fn =>
      (...args) => {
        const run = () => fn.apply(self, args)
        return kind === 'notify' ? guard.tell(pack, what, run) : guard.settle(pack, what, run, awaitMs)
      }
    const own = (undo: unknown) => scope.ownUndo(() => guard.settle(pack, `undo of the ${what}`, undo as () => void, awaitMs))
    const run: Fn = (...args) => {
      if (scope.closed) throw developerError('pack_inactive', pack)
      const given = args.at(-1)
      const isObject = typeof given === 'object' && given !== null
      if (!isObject) assertFunction(`the ${what}`, given)
      const listener = isObject ? faceOf(given, fn => guarded(fn, given)) : guarded(given as Fn)
      const undo = take(...args.slice(0, -1), listener)
      return isPromise(undo) ? undo.then(own) : own(undo)
    }
    // Also of the server's side of a process: what it answers with is known by it.
    return take.constructor.name === 'AsyncFunction' ? async (...args) => await run(...args) : run
  }

  /** The service, with the functions that `listening` names as this pack calls them. */
  function heard(service: object, id: string, listening: Listening): object {
    const same = sharedFace(service) as Record<string, unknown>
    const face: object = Object.create(same)
    for (const [name, kind] of Object.entries(listening)) {
      const take = Object.hasOwn(same, name) ? same[name] : undefined // what a stand-in of a test lacks, it may refuse to be asked for
      if (kind && typeof take === 'function')
        Object.defineProperty(face, name, { enumerable: true, value: taking(take as Fn, `listener of ${id}.${name}`, kind) })
    }
    return face
  }

  return ({ id, listening }: ServiceToken<unknown>, service: unknown): unknown => {
    if (!listening || typeof service !== 'object' || service === null) return service
    const face = faces.get(service) ?? heard(service, id, listening)
    faces.set(service, face)
    return face
  }
}
