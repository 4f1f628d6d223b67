/** Typed state that hangs on a host (a session, an agent, a connection) and is closed with it. */
import type { StoreSpec } from '../contract.ts'
import { developerError } from '../errors.ts'
import type { StoreOf } from '../storage/ports.ts'
import type { Guard } from './guard.ts'
import { type Dispose, Scope } from './scope.ts'

/** Per-host state; the object itself is the key, so that slots of one name never meet. */
export interface Slot<T, H extends SlotHost = SlotHost> {
  readonly kind: 'slot'
  /** For messages. */
  readonly name: string
  /** Called once per host, at the first `get`. May return a promise; `get` then returns that promise. */
  readonly open: (host: H) => T
}

/** A slot whatever it holds and wherever it hangs. */
export type AnySlot = Slot<unknown, never>

/** Declares per-host state. A value (or awaited value) with a `close()` method is closed with its host or with the pack that owns the slot. */
export function defineSlot<T, H extends SlotHost = SlotHost>(name: string, open: (host: H) => T): Slot<T, H> {
  return { kind: 'slot', name, open }
}

/** The hosts of one kernel, by the slots they hold values of: a slot is emptied everywhere when the pack that owns it unloads. */
export class Hosts {
  readonly #guard: Guard
  readonly #limitMs: number
  readonly #holding = new Map<AnySlot, Set<SlotHost>>()
  /** The pack that owns a slot. */
  readonly #owners = new WeakMap<AnySlot, string>()
  readonly #withdrawn = new WeakSet<AnySlot>()

  /** `limitMs`: how long a value may take to close. */
  constructor(guard: Guard, limitMs: number) {
    this.#guard = guard
    this.#limitMs = limitMs
  }

  /** A slot whose owner is active (again). */
  admit(slot: AnySlot, pack: string): void {
    this.#owners.set(slot, pack)
    this.#withdrawn.delete(slot)
  }

  /** Closes a slot's values on all hosts and opens no more until it is admitted again. */
  async withdraw(slot: AnySlot): Promise<void> {
    this.#withdrawn.add(slot)
    await Promise.all([...(this.#holding.get(slot) ?? [])].map(host => host.drop(slot)))
  }

  /** True while the pack that owns the slot is gone. A slot that no pack claimed lives with its hosts. */
  isWithdrawn(slot: AnySlot): boolean {
    return this.#withdrawn.has(slot)
  }

  /** Closes a value, or what its promise resolves to. Never rejects: faults are put down to the pack that owns the slot. */
  async close(slot: AnySlot, value: unknown): Promise<void> {
    const pack = this.#owners.get(slot) ?? 'the kernel'
    const close = async () => {
      const opened = (await Promise.resolve(value).catch(() => undefined)) as { close?: () => unknown } | undefined // an open that failed has nothing to close
      if (typeof opened?.close === 'function') await opened.close()
    }
    await this.#guard.settle(pack, `close of slot ${slot.name}`, close, this.#limitMs, undefined)
  }

  /** Notes that a host holds a value; returns the undo. */
  hold(slot: AnySlot, host: SlotHost): () => void {
    const hosts = this.#holding.get(slot) ?? new Set()
    this.#holding.set(slot, hosts)
    hosts.add(host)
    return () => {
      hosts.delete(host)
      if (hosts.size === 0) this.#holding.delete(slot)
    }
  }
}

interface Filled {
  readonly value: unknown
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
    const filled = this.#filled.get(slot)
    if (filled) return filled.value as T
    if (this.scope.closed) throw this.refusal()
    if (this.#hosts.isWithdrawn(slot)) throw developerError('slot_withdrawn', slot.name)
    const value = slot.open(this as unknown as H) // a slot names the host type it hangs on
    const released = this.#hosts.hold(slot, this)
    const forget = this.own(() => {
      this.#filled.delete(slot)
      released()
      return this.#hosts.close(slot, value)
    })
    this.#filled.set(slot, { value, forget })
    return value
  }

  /** The value if it was opened already. */
  peek<T, H extends SlotHost>(slot: Slot<T, H>): T | undefined {
    return this.#filled.get(slot)?.value as T | undefined
  }

  /** What the slot's promise has resolved to, when that is known by now. */
  opened<T, H extends SlotHost>(slot: Slot<Promise<T>, H>): T | undefined {
    return this.#filled.get(slot)?.opened as T | undefined
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
