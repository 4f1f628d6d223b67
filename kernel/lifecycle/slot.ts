/** Typed state that hangs on a host (a session, an agent, a connection) and is closed with it. */
import type { StoreSpec } from '../contract.ts'
import type { StoreOf } from '../storage/ports.ts'
import { type Dispose, Scope } from './scope.ts'

export interface Slot<T, H extends SlotHost = SlotHost> {
  readonly kind: 'slot'
  readonly name: string
  /** Called once per host, at the first `get`. May return a promise; `get` then returns that promise. */
  readonly open: (host: H) => T
}

/** Declares per-host state. A value (or awaited value) with a `close()` method is closed with its host or with the pack that owns the slot. */
export function defineSlot<T, H extends SlotHost = SlotHost>(name: string, open: (host: H) => T): Slot<T, H> {
  return { kind: 'slot', name, open }
}

/** Hosts that hold a value, by slot name: a slot is emptied everywhere when the pack that owns it unloads. */
const holders = new Map<string, Set<SlotHost>>()

/** Closes a slot's values on all hosts; failures are reported together. */
export async function emptySlot(name: string): Promise<void> {
  const results = await Promise.allSettled([...(holders.get(name) ?? [])].map(host => host.drop(name)))
  const errors = results.flatMap(result => (result.status === 'rejected' ? [result.reason] : []))
  if (errors.length > 0) throw new AggregateError(errors, `slot ${name} could not be closed everywhere`)
}

function holding(name: string, host: SlotHost): () => void {
  const hosts = holders.get(name) ?? new Set()
  holders.set(name, hosts)
  hosts.add(host)
  return () => {
    hosts.delete(host)
    if (hosts.size === 0) holders.delete(name)
  }
}

interface Filled {
  readonly value: unknown
  readonly forget: () => Promise<void>
}

/** Carrier of slots. Sessions, agents and connections extend it. */
export abstract class SlotHost {
  readonly #filled = new Map<string, Filled>()
  readonly scope = new Scope()

  /** Opens a store in this host's own directory; hosts without one throw. */
  abstract store<S extends StoreSpec>(spec: S): StoreOf<S>

  /** The slot's value, opened at the first call. Throws once the host is closed. */
  get<T, H extends SlotHost>(slot: Slot<T, H>): T {
    const filled = this.#filled.get(slot.name)
    if (filled) return filled.value as T
    const value = slot.open(this as unknown as H) // a slot names the host type it hangs on
    const released = holding(slot.name, this)
    const forget = this.own(async () => {
      this.#filled.delete(slot.name)
      released()
      const settled = (await Promise.resolve(value).catch(() => undefined)) as { close?: () => unknown } | undefined // an open that failed has nothing to close
      if (typeof settled?.close === 'function') await settled.close()
    })
    this.#filled.set(slot.name, { value, forget })
    return value
  }

  /** The value if it was opened already. */
  peek<T, H extends SlotHost>(slot: Slot<T, H>): T | undefined {
    return this.#filled.get(slot.name)?.value as T | undefined
  }

  /** Closes the value of the slot of that name; the next `get` opens a new one. */
  async drop(slot: string): Promise<void> {
    await this.#filled.get(slot)?.forget()
  }

  own(dispose: Dispose): () => Promise<void> {
    return this.scope.own(dispose)
  }

  /** Closes all slots and owned resources in reverse order; resolves to the errors met. */
  closeHost(): Promise<unknown[]> {
    return this.scope.close()
  }
}
