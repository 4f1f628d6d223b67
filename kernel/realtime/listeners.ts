/** In-process listeners of events: called at emission, one event after the other, also when a listener emits. */
import type { KernelHooks } from '../lifecycle/hooks.ts'
import type { Logger } from '../log/log.ts'
import type { EmittedEvent } from './types.ts'

type Hear = (event: EmittedEvent) => void

export class Listeners {
  readonly #byType = new Map<string, Set<Hear>>()
  readonly #all = new Set<Hear>()
  readonly #hooks: KernelHooks
  readonly #log: Logger
  readonly #queue: EmittedEvent[] = []
  #running = false

  constructor(hooks: KernelHooks, log: Logger) {
    this.#hooks = hooks
    this.#log = log
  }

  /** Hears one type; returns the undo. */
  on(type: string, listener: Hear): () => void {
    const hear: Hear = event => listener(event) // one registration each, even of the same function
    let set = this.#byType.get(type)
    if (!set) {
      set = new Set()
      this.#byType.set(type, set)
    }
    set.add(hear)
    return () => {
      set.delete(hear)
      if (set.size === 0 && this.#byType.get(type) === set) this.#byType.delete(type)
    }
  }

  /** Hears everything; returns the undo. */
  tap(listener: Hear): () => void {
    const hear: Hear = event => listener(event)
    this.#all.add(hear)
    return () => {
      this.#all.delete(hear)
    }
  }

  /** Runs the listeners now, or after the event whose listener emitted this one. A listener's failure is logged. */
  notify(event: EmittedEvent): void {
    this.#queue.push(event)
    if (this.#running) return
    this.#running = true
    try {
      for (let next = this.#queue.shift(); next; next = this.#queue.shift()) this.#tell(next)
    } finally {
      this.#running = false
    }
  }

  #tell(event: EmittedEvent): void {
    const hook: Hear = heard => this.#hooks.event.call(heard)
    const hooked = this.#hooks.event.taps.length > 0 ? [hook] : []
    for (const hear of [...(this.#byType.get(event.type) ?? []), ...this.#all, ...hooked]) {
      try {
        hear(event)
      } catch (err) {
        this.#log.error({ err, event: event.type }, 'an event listener failed')
      }
    }
  }
}
