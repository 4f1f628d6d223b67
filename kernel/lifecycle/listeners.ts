/** Services as packs get them: listeners that a pack hands in are guarded, put down to it, and go with it. */
import { assertFunction } from '../declared.ts'
import { developerError } from '../errors.ts'
import type { Guard } from './guard.ts'
import { membersOf } from './guarded.ts'
import type { Scope } from './scope.ts'
import type { Listening, ServiceToken } from './services.ts'
import { isPromise } from './wait.ts'

interface Listener {
  readonly pack: string
  readonly guard: Guard
  /** The listeners leave with it. */
  readonly scope: Scope
  /** Time limit of listeners that are awaited, ms. */
  readonly awaitMs: number
}

type Fn = (...args: unknown[]) => unknown

/** What one activation of a pack gets of the services that it uses. */
export class HeardServices {
  readonly #listener: Listener
  /** By the service: it is the same object as long as it is there. */
  readonly #faces = new WeakMap<object, object>()

  constructor(listener: Listener) {
    this.#listener = listener
  }

  /** The service as its provider made it, should it take no listeners. */
  of({ id, listening }: ServiceToken<unknown>, service: unknown): unknown {
    if (!listening || typeof service !== 'object' || service === null) return service
    const face = this.#faces.get(service) ?? heard(service, id, listening, this.#listener)
    this.#faces.set(service, face)
    return face
  }
}

/** The service, with the functions that `listening` names as this pack calls them. */
function heard(service: object, id: string, listening: Listening, listener: Listener): object {
  const same = sharedFace(service) as Record<string, unknown>
  const face: object = Object.create(same)
  for (const [name, kind] of Object.entries(listening)) {
    const take = Object.hasOwn(same, name) ? same[name] : undefined // what a stand-in of a test lacks, it may refuse to be asked for
    if (kind && typeof take === 'function')
      Object.defineProperty(face, name, { enumerable: true, value: taking(take as Fn, `listener of ${id}.${name}`, kind, listener) })
  }
  return face
}

/** By service: what is the same for all packs. */
const sharedFaces = new WeakMap<object, object>()

/** The service, whose functions have it as `this` whoever they are called on. */
function sharedFace(service: object): object {
  const known = sharedFaces.get(service)
  if (known) return known
  const face: object = Object.create(service)
  for (const [name, { value }] of membersOf(service)) {
    const member = typeof value === 'function' ? { value: value.bind(service) } : { get: () => (service as Record<string, unknown>)[name] }
    Object.defineProperty(face, name, { enumerable: true, ...member })
  }
  sharedFaces.set(service, face)
  return face
}

/** A function that takes a listener as its last argument and answers its undo, or a promise of that. */
function taking(take: Fn, what: string, kind: 'notify' | 'promise', { pack, guard, scope, awaitMs }: Listener): Fn {
  const guarded = (fn: Fn, self?: object): Fn =>
    kind === 'notify'
      ? (...args) => guard.tell(pack, what, () => fn.apply(self, args))
      : (...args) => guard.settle(pack, what, () => fn.apply(self, args), awaitMs, undefined)
  const own = (undo: unknown) => {
    const drop = scope.own(undo as () => void)
    return () => void drop()
  }
  const run: Fn = (...args) => {
    if (scope.closed) throw developerError('pack_inactive', pack)
    const given = args.at(-1)
    const undo = take(...args.slice(0, -1), isObject(given) ? guardedObject(given, guarded) : guarded(checked(what, given)))
    return isPromise(undo) ? undo.then(own) : own(undo)
  }
  return isAsync(take) ? async (...args) => await run(...args) : run
}

/** A listener of several functions. */
function guardedObject(given: object, guarded: (fn: Fn, self: object) => Fn): object {
  const listener = {}
  for (const [name, { value }] of membersOf(given)) {
    const member =
      typeof value === 'function' ? { value: guarded(value as Fn, given) } : { get: () => (given as Record<string, unknown>)[name] }
    Object.defineProperty(listener, name, { enumerable: true, ...member })
  }
  return listener
}

const isObject = (given: unknown): given is object => typeof given === 'object' && given !== null

/** Also of the server's side of a process: what it answers with is known by it. */
const isAsync = (fn: Fn) => fn.constructor.name === 'AsyncFunction'

function checked(what: string, given: unknown): Fn {
  assertFunction(`the ${what}`, given)
  return given as Fn
}
