/** Items of extension points as whoever collects them gets them: functions that may fail are put down to the pack of the item. */
import { inTime } from './guard.ts'
import type { Accounts, Contribution, ExtensionPoint } from './services.ts'

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

  lists<T>(point: ExtensionPoint<T>, given: readonly Contribution<T>[]): Lists<T> {
    const entries = point.instead ? Object.freeze(given.map(each => this.#guarded(point, each))) : given
    return { entries, items: Object.freeze(entries.map(({ item }) => item)) }
  }

  #guarded<T>(point: ExtensionPoint<T>, contribution: Contribution<T>): Contribution<T> {
    const { pack, item } = contribution
    if (typeof item !== 'object' || item === null) return contribution
    const known = this.#faces.get(item)
    const same = known?.point === point.id && known.pack === pack ? known.face : undefined
    const face = same ?? guarded(point, item, { pack, accounts: this.#accounts, answerMs: this.#answerMs })
    if (!same) this.#faces.set(item, { point: point.id, pack, face })
    return {
      pack,
      item: face as T,
      get signal() {
        return contribution.signal
      }
    }
  }
}

interface Lists<T> {
  readonly entries: readonly Contribution<T>[]
  readonly items: readonly T[]
}

type Fn = (...args: unknown[]) => unknown

interface Owner {
  readonly pack: string
  readonly accounts: Accounts
  readonly answerMs: number
}

/**
 * The item with the functions that the point names in `instead` guarded: how long they hold the event loop is counted for the pack, what they
 * throw or reject with is its fault, as is a promise that does not settle in time, and never reaches whoever asks. Other members are those of
 * the item itself.
 */
function guarded({ id, instead = {} }: ExtensionPoint<unknown>, item: object, owner: Owner): object {
  const face = {}
  originals.set(face, asContributed(item))
  const label = Object.getOwnPropertyDescriptor(item, 'name')?.value
  for (const [name, { value }] of membersOf(item)) {
    const what = `${name} of ${id}${typeof label === 'string' ? ` ${label}` : ''}`
    const member =
      typeof value !== 'function'
        ? { get: () => (item as Record<string, unknown>)[name] }
        : { value: name in instead ? guardedFunction(value as Fn, instead[name] as Fn, item, what, owner) : value.bind(item) }
    Object.defineProperty(face, name, { enumerable: true, ...member })
  }
  return face
}

/** What an object has by name, of its own and of its classes; of two with one name the nearer one. */
export function membersOf(target: object): Map<string, PropertyDescriptor> {
  const members = new Map<string, PropertyDescriptor>()
  for (let at: object | null = target; at !== null && at !== Object.prototype; at = Object.getPrototypeOf(at) as object | null) {
    for (const [name, member] of Object.entries(Object.getOwnPropertyDescriptors(at)))
      if (name !== 'constructor' && !members.has(name)) members.set(name, member)
  }
  return members
}

function guardedFunction(fn: Fn, instead: Fn, item: object, what: string, { pack, accounts, answerMs }: Owner): Fn {
  return (...args) => {
    const failed = (error: unknown) => {
      accounts.blame(pack, what, error)
      return instead.apply(item, args)
    }
    try {
      const answer = accounts.onAccountOf(pack, what, () => fn.apply(item, args))
      return answer instanceof Promise ? inTime(answer, answerMs).catch(failed) : answer
    } catch (error) {
      return failed(error)
    }
  }
}
