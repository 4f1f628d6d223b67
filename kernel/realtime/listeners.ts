/** In-process listeners of events: called at emission, one event after the other, also when a listener emits. */
import type { Environment } from '../environment.ts'
import type { KernelHooks } from '../lifecycle/hooks.ts'
import type { EmittedEvent } from './types.ts'

interface Entry {
  readonly hear: (event: EmittedEvent) => void
}

export class Listeners {
  readonly #env: Environment
  readonly #hooks: KernelHooks
  readonly #byType = new Map<string, Set<Entry>>()
  readonly #all = new Set<Entry>()
  readonly #queue: EmittedEvent[] = []
  #running = false

  constructor(env: Environment, hooks: KernelHooks) {
    this.#env = env
    this.#hooks = hooks
  }

  /** Hears one type, or everything when `type` is undefined; returns the undo. */
  on(type: string | undefined, hear: (event: EmittedEvent) => void): () => void {
    const entry: Entry = { hear } // one registration each, even of the same function
    const set = type === undefined ? this.#all : (this.#byType.get(type) ?? new Set())
    if (type !== undefined) this.#byType.set(type, set)
    set.add(entry)
    return () => {
      set.delete(entry)
      if (type !== undefined && set.size === 0 && this.#byType.get(type) === set) this.#byType.delete(type)
    }
  }

  /** Runs the listeners now, or after the event whose listener emitted this one. */
  notify(event: EmittedEvent): void {
    this.#queue.push(event)
    if (this.#running) return
    this.#running = true
    for (let next = this.#queue.shift(); next; next = this.#queue.shift()) this.#tell(next)
    this.#running = false
  }

  #tell(event: EmittedEvent): void {
    const { guard } = this.#env
    for (const { hear } of [...(this.#byType.get(event.type) ?? []), ...this.#all]) {
      guard.call('kernel', `listener of ${event.type}`, () => hear(event), undefined)
    }
    const { event: hook } = this.#hooks
    if (hook.taps.length > 0) guard.call('kernel', `tap of ${event.type}`, () => hook.call(event), undefined)
  }
}
