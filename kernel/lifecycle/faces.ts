/**
 * What packs get of what others have made: items of extension points, whose functions that may fail are put down to the pack of the item, and
 * services, whose listeners are put down to the pack that hands them in and go with it.
 */
import { assertFunction } from '../declared.ts'
import { developerError } from '../errors.ts'
import { type Guard, inTime } from './guard.ts'
import type { Scope } from './scope.ts'
import type { Accounts, Contribution, ExtensionPoint, Listening, ServiceToken } from './services.ts'
import { isPromise } from './wait.ts'

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

/** What one pack gets of the points that it collects. */
export class GuardedItems {
  readonly #accounts: Accounts
  readonly #answerMs: number
  /** By their items: an item is the same as long as it is there. */
  readonly #faces = new WeakMap<object, { readonly point: string; readonly pack: string; readonly face: object }>()

  /** `answerMs`: time limit of functions that are awaited. */
  constructor(accounts: Accounts, answerMs: number) {
    this.#accounts = accounts
    this.#answerMs = answerMs
  }

  lists<T>(point: ExtensionPoint<T>, given: readonly Contribution<T>[]) {
    const entries = point.instead ? Object.freeze(given.map(each => this.#guarded(point, each))) : given
    return { entries, items: Object.freeze(entries.map(({ item }) => item)) }
  }

  #guarded<T>(point: ExtensionPoint<T>, contribution: Contribution<T>): Contribution<T> {
    const { pack, item } = contribution
    if (typeof item !== 'object' || item === null) return contribution
    const known = this.#faces.get(item)
    const same = known?.point === point.id && known.pack === pack ? known.face : undefined
    const face = same ?? this.#face(point, item, pack)
    if (!same) this.#faces.set(item, { point: point.id, pack, face })
    return {
      pack,
      item: face as T,
      get signal() {
        return contribution.signal
      }
    }
  }

  /**
   * The item with the functions that the point names in `instead` guarded: how long they hold the event loop is counted for the pack, what they
   * throw or reject with is its fault, as is a promise that does not settle in time, and never reaches whoever asks.
   */
  #face({ id, instead = {} }: ExtensionPoint<unknown>, item: object, pack: string): object {
    const label = Object.getOwnPropertyDescriptor(item, 'name')?.value
    const face = faceOf(item, (fn, name) => {
      if (!(name in instead)) return fn.bind(item)
      const what = `${name} of ${id}${typeof label === 'string' ? ` ${label}` : ''}`
      return this.#function(fn, instead[name] as Fn, item, pack, what)
    })
    originals.set(face, asContributed(item))
    return face
  }

  #function(fn: Fn, instead: Fn, item: object, pack: string, what: string): Fn {
    return (...args) => {
      const failed = (error: unknown) => {
        this.#accounts.blame(pack, what, error)
        return instead.apply(item, args)
      }
      try {
        const answer = this.#accounts.onAccountOf(pack, what, () => fn.apply(item, args))
        return answer instanceof Promise ? inTime(answer, this.#answerMs).catch(failed) : answer
      } catch (error) {
        return failed(error)
      }
    }
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

/** What one activation of a pack gets of the services that it uses. */
export class HeardServices {
  readonly #pack: string
  readonly #guard: Guard
  readonly #scope: Scope
  readonly #awaitMs: number
  /** By the service: it is the same object as long as it is there. */
  readonly #faces = new WeakMap<object, object>()

  /** Listeners leave with `scope`. `awaitMs`: time limit of those that are awaited. */
  constructor(pack: string, guard: Guard, scope: Scope, awaitMs: number) {
    this.#pack = pack
    this.#guard = guard
    this.#scope = scope
    this.#awaitMs = awaitMs
  }

  /** The service as its provider made it, should it take no listeners. */
  of({ id, listening }: ServiceToken<unknown>, service: unknown): unknown {
    if (!listening || typeof service !== 'object' || service === null) return service
    const face = this.#faces.get(service) ?? this.#face(service, id, listening)
    this.#faces.set(service, face)
    return face
  }

  /** The service, with the functions that `listening` names as this pack calls them. */
  #face(service: object, id: string, listening: Listening): object {
    const same = sharedFace(service) as Record<string, unknown>
    const face: object = Object.create(same)
    for (const [name, kind] of Object.entries(listening)) {
      const take = Object.hasOwn(same, name) ? same[name] : undefined // what a stand-in of a test lacks, it may refuse to be asked for
      if (kind && typeof take === 'function')
        Object.defineProperty(face, name, { enumerable: true, value: this.#taking(take as Fn, `listener of ${id}.${name}`, kind) })
    }
    return face
  }

  /** A function that takes a listener, or an object of several, as its last argument and answers its undo, or a promise of that. */
  #taking(take: Fn, what: string, kind: 'notify' | 'promise'): Fn {
    const guarded =
      (fn: Fn, self?: object): Fn =>
      (...args) => {
        const run = () => fn.apply(self, args)
        if (kind === 'notify') this.#guard.tell(this.#pack, what, run)
        else return this.#guard.settle(this.#pack, what, run, this.#awaitMs, undefined)
      }
    const own = (undo: unknown) => this.#scope.ownUndo(undo as () => void)
    const run: Fn = (...args) => {
      if (this.#scope.closed) throw developerError('pack_inactive', this.#pack)
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
}
