/** Typed state that hangs on a host (a session, an agent, a connection) and is closed with it. */
import type { StoreSpec } from '../contract.ts'
import { developerError } from '../errors.ts'
import type { StoreOf } from '../storage/ports.ts'
import type { Guard } from './guard.ts'
import { type Dispose, Scope } from './scope.ts'
import { isPromise } from './wait.ts'

/** Per-host state; the object itself is the key, so that slots of one name never meet. */
export interface Slot<T, H extends SlotHost = SlotHost> {
  readonly kind: 'slot'
  /** For messages. */
  readonly name: string
  /** Called once per host, at the first `get`. May return a promise; `get` then returns that promise, and once it has rejected opens anew. */
  readonly open: (host: H) => T
  /** See `defineSlot`. */
  readonly basis?: () => unknown
}

/** A slot whatever it holds and wherever it hangs. */
export type AnySlot = Slot<unknown, never>

/**
 * Declares per-host state. A value (or awaited value) with a `close()` method is closed with its host or with the pack that owns the slot.
 * `basis`: what values are made of that may be another one while they live, such as an optional service; who looks for a value that was made
 * of another gets a new one, and the old one is closed.
 */
export function defineSlot<T, H extends SlotHost = SlotHost>(name: string, open: (host: H) => T, basis?: () => unknown): Slot<T, H> {
  return { kind: 'slot', name, open, ...(basis && { basis }) }
}

interface SlotFacts {
  /** The pack that owns it. One that no pack claimed lives with its hosts. */
  owner: string | undefined
  /** That pack is gone. */
  withdrawn: boolean
  /** Those that hold a value of it. */
  readonly hosts: Set<SlotHost>
}

/** The hosts of one kernel, by the slots they hold values of: a slot is emptied everywhere when the pack that owns it unloads. */
export class Hosts {
  readonly #guard: Guard
  readonly #limitMs: number
  readonly #slots = new WeakMap<AnySlot, SlotFacts>()

  /** `limitMs`: how long a value may take to close. */
  constructor(guard: Guard, limitMs: number) {
    this.#guard = guard
    this.#limitMs = limitMs
  }

  of(slot: AnySlot): SlotFacts {
    const facts = this.#slots.get(slot) ?? { owner: undefined, withdrawn: false, hosts: new Set<SlotHost>() }
    this.#slots.set(slot, facts)
    return facts
  }

  /** Until the undo, the pack owns the slot; then its values are closed on all hosts, and no more are opened until it is admitted again. */
  admit(slot: AnySlot, owner: string): () => Promise<unknown> {
    const facts = this.of(slot)
    facts.owner = owner
    facts.withdrawn = false
    return () => {
      facts.withdrawn = true
      return Promise.all([...facts.hosts].map(host => host.drop(slot)))
    }
  }

  /** Closes a value, or what its promise resolves to. Never rejects: faults are put down to the pack that owns the slot. */
  async close(slot: AnySlot, value: unknown): Promise<void> {
    const close = async () => {
      const opened = (await Promise.resolve(value).catch(() => undefined)) as { close?: () => unknown } | undefined // an open that failed has nothing to close
      if (typeof opened?.close === 'function') await opened.close()
    }
    await this.#guard.settle(this.of(slot).owner ?? 'the kernel', `close of slot ${slot.name}`, close, this.#limitMs)
  }
}

interface Filled {
  readonly value: unknown
  readonly basis: unknown
  /** What `value` promised, once somebody has waited for it by `whenOpen`. */
  opened?: unknown
  readonly forget: () => Promise<void>
}

/** Carrier of slots. Sessions, agents and connections extend it. */
export abstract class SlotHost {
  readonly #filled = new Map<AnySlot, Filled>()
  readonly #hosts: Hosts
  readonly scope = new Scope(() => this.refusal())

  /** `hosts`: those of the kernel that the host lives in (`ctx.hosts`). */
  constructor(hosts: Hosts) {
    this.#hosts = hosts
  }

  /** Opens a store in this host's own directory; hosts without one throw. */
  abstract store<S extends StoreSpec>(spec: S): StoreOf<S>

  /** The slot's value, opened at the first call. Throws once the host is closed, and while the pack that owns the slot is gone. */
  get<T, H extends SlotHost>(slot: Slot<T, H>): T {
    const filled = this.#current(slot)
    if (filled) return filled.value as T
    if (this.scope.closed) throw this.refusal()
    const { withdrawn, hosts } = this.#hosts.of(slot)
    if (withdrawn) throw developerError('slot_withdrawn', slot.name)
    const basis = slot.basis?.()
    const value = slot.open(this as unknown as H) // a slot names the host type it hangs on
    hosts.add(this)
    const forget = this.own(() => {
      this.#filled.delete(slot)
      hosts.delete(this)
      return this.#hosts.close(slot, value)
    })
    this.#filled.set(slot, { value, basis, forget })
    if (isPromise(value)) value.then(undefined, forget) // whoever asks next opens it anew
    return value
  }

  #current<T, H extends SlotHost>(slot: Slot<T, H>): Filled | undefined {
    const filled = this.#filled.get(slot)
    if (!filled || filled.basis === slot.basis?.()) return filled
    void filled.forget()
    return undefined
  }

  /** The value if it was opened already. */
  peek<T, H extends SlotHost>(slot: Slot<T, H>): T | undefined {
    return this.#current(slot)?.value as T | undefined
  }

  /** What the slot's promise has resolved to, when that is known by now. */
  opened<T, H extends SlotHost>(slot: Slot<Promise<T>, H>): T | undefined {
    return this.#current(slot)?.opened as T | undefined
  }

  /** Hands what the slot's promise resolves to over to `use`: at once where it is known, so that nobody has to wait. */
  whenOpen<T, R, H extends SlotHost>(slot: Slot<Promise<T>, H>, use: (opened: T) => R | Promise<R>): R | Promise<R> {
    const known = this.opened(slot)
    if (known !== undefined) return use(known)
    const value = this.get(slot)
    const filled = this.#filled.get(slot)
    return value.then(opened => {
      if (filled) filled.opened = opened
      return use(opened)
    })
  }

  /** Closes the value of a slot; the next `get` opens a new one. */
  async drop(slot: AnySlot): Promise<void> {
    await this.#filled.get(slot)?.forget()
  }

  own(dispose: Dispose): () => Promise<void> {
    return this.scope.own(dispose)
  }

  /** What whoever still uses the host is told once it is closed. Default: a mistake of the pack. */
  protected refusal(): Error {
    return developerError('owner_closed')
  }

  /** Closes all slots and owned resources in reverse order; resolves to the errors met. `why`: see `Scope.close`. */
  closeHost(why?: () => unknown): Promise<unknown[]> {
    return this.scope.close(why)
  }
}
