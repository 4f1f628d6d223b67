/** Items of extension points as whoever collects them gets them: functions that may fail are put down to the pack of the item. */
import type { Accounts, Contribution, ExtensionPoint } from './services.ts'

/** By what its collectors get: what its pack contributed. */
const originals = new WeakMap<object, object>()

/** What a pack contributed, of an item that was collected. */
export const asContributed = <T extends object>(item: T): T => (originals.get(item) as T | undefined) ?? item

/** What one pack gets of the points that it collects. */
export class GuardedItems {
  readonly #accounts: Accounts
  /** By their items: an item is the same as long as it is there. */
  readonly #faces = new WeakMap<object, { readonly point: string; readonly pack: string; readonly face: object }>()

  constructor(accounts: Accounts) {
    this.#accounts = accounts
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
    const face = same ?? guarded(point, pack, item, this.#accounts)
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

/**
 * The item with the functions that the point names in `instead` guarded: how long they hold the event loop is counted for the pack, what they
 * throw or reject with is its fault, and never reaches whoever asks. Other members are those of the item itself.
 */
function guarded({ id, instead = {} }: ExtensionPoint<unknown>, pack: string, item: object, accounts: Accounts): object {
  const face = {}
  originals.set(face, asContributed(item))
  const label = Object.getOwnPropertyDescriptor(item, 'name')?.value
  for (let at: object | null = item; at !== null && at !== Object.prototype; at = Object.getPrototypeOf(at) as object | null) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(at))) {
      if (name === 'constructor' || Object.hasOwn(face, name)) continue
      const what = `${name} of ${id}${typeof label === 'string' ? ` ${label}` : ''}`
      const member =
        typeof value !== 'function'
          ? { get: () => (item as Record<string, unknown>)[name] }
          : { value: name in instead ? guardedFunction(value as Fn, instead[name] as Fn, item, pack, what, accounts) : value.bind(item) }
      Object.defineProperty(face, name, { enumerable: true, ...member })
    }
  }
  return face
}

function guardedFunction(fn: Fn, instead: Fn, item: object, pack: string, what: string, accounts: Accounts): Fn {
  return (...args) => {
    const failed = (error: unknown) => {
      accounts.blame(pack, what, error)
      return instead.apply(item, args)
    }
    try {
      const answer = accounts.onAccountOf(pack, what, () => fn.apply(item, args))
      return answer instanceof Promise ? answer.catch(failed) : answer
    } catch (error) {
      return failed(error)
    }
  }
}
