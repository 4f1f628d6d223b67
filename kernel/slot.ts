/** Typed state that hangs on a host (a session, an agent, a connection) and is closed with it. */
import type { StoreSpec } from './contract.ts'
import { type Dispose, Scope } from './scope.ts'
import type { StoreOf } from './storage/ports.ts'

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
    const forget = this.own(async () => {
      this.#filled.delete(slot.name)
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

  /** Closes one slot's value; the next `get` opens a new one. */
  async drop(slot: Slot<unknown, never> | Slot<unknown>): Promise<void> {
    await this.#filled.get(slot.name)?.forget()
  }

  own(dispose: Dispose): () => Promise<void> {
    return this.scope.own(dispose)
  }

  /** Closes all slots and owned resources in reverse order; resolves to the errors met. */
  closeHost(): Promise<unknown[]> {
    return this.scope.close()
  }
}
