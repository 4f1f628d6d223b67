/**
 * Events whose pack is between two activations, and all behind them: they wait for it in their order, and count as untold meanwhile, so that who
 * opens the journal next tells what is never told here.
 */
import type { EventDraft } from './service.ts'

interface HeldPorts {
  readonly tell: (draft: EventDraft) => void
  readonly away?: ((draft: EventDraft) => boolean) | undefined
  readonly waits?: ((release: () => boolean) => void) | undefined
}

export class Held {
  readonly #ports: HeldPorts
  #waiting: (EventDraft | (() => void))[] = []
  #whenOver: (() => void)[] = []

  constructor(ports: HeldPorts) {
    this.#ports = ports
  }

  tell(draft: EventDraft): void {
    if (this.#waiting.length === 0 && !this.#ports.away?.(draft)) this.#ports.tell(draft)
    else this.#add(draft)
  }

  /** `done` is called when everything before it is told. */
  behind(done: () => void): void {
    if (this.#waiting.length === 0) done()
    else this.#add(done)
  }

  /** Resolves when nothing waits any more; undefined when nothing does. */
  over(): Promise<void> | undefined {
    return this.#waiting.length === 0 ? undefined : new Promise(resolve => this.#whenOver.push(resolve))
  }

  /** Nothing of it is told any more. */
  drop(): void {
    this.#waiting = []
    this.#ended()
  }

  #ended(): void {
    for (const resolve of this.#whenOver.splice(0)) resolve()
  }

  #add(next: EventDraft | (() => void)): void {
    this.#waiting.push(next)
    if (this.#waiting.length === 1) this.#ports.waits?.(() => this.#release())
  }

  #release(): boolean {
    for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
      if (typeof first !== 'function' && this.#ports.away?.(first)) return true
      this.#waiting.shift()
      if (typeof first === 'function') first()
      else this.#ports.tell(first)
    }
    this.#ended()
    return false
  }
}
