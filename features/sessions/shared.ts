/**
 * Sessions of one home at several servers: each tells the others the facts of the sessions that it has, and knows from them what is going
 * on in theirs.
 */
import type { SessionState, WorkTuple } from './service.ts'

/** One session as its server tells it. Without `work` it is not loaded there; `gone`: its data was deleted. */
export interface SessionFact {
  readonly id: string
  /** Number of the lease under which it is told; undefined: of the one before. */
  readonly fence?: number | undefined
  readonly state?: SessionState
  readonly work?: WorkTuple
  readonly gone?: true
}

interface SharedPorts {
  /** Tells all other servers, or one. */
  readonly tell: (facts: readonly SessionFact[], server_id?: string) => void
  /** The facts of a session of this server; undefined when it is not here. */
  readonly own: (id: string) => SessionFact | undefined
  /** Ids of the sessions that are here. */
  readonly all: () => readonly string[]
  readonly show: (state: SessionState) => void
  readonly forget: (id: string) => void
}

export class SharedSessions {
  readonly #ports: SharedPorts
  /** What is going on elsewhere, by session; without `work` it is not loaded there. */
  readonly #known = new Map<string, { readonly server_id: string; readonly fence: number; readonly work: WorkTuple | undefined }>()
  readonly #changed = new Set<string>()
  #timer: NodeJS.Immediate | undefined
  #present = false

  constructor(ports: SharedPorts) {
    this.#ports = ports
  }

  /** Another server has it loaded. */
  isLoaded(id: string): boolean {
    return this.#known.get(id)?.work !== undefined
  }

  /** What is going on in a session of another server. */
  work(id: string): WorkTuple | undefined {
    return this.#known.get(id)?.work
  }

  /** There are other servers, or none any more. */
  present(others: boolean): void {
    this.#present = others
    if (!others) this.#known.clear()
  }

  /** A session of this server has changed; the others hear of it in the next pass of the loop. */
  changed(id: string): void {
    if (!this.#present) return
    this.#changed.add(id)
    this.#timer ??= setImmediate(() => {
      this.#timer = undefined
      const facts = [...this.#changed].map(each => this.#ports.own(each) ?? { id: each })
      this.#changed.clear()
      this.#ports.tell(facts)
    })
  }

  /** A session that nobody has loaded was changed by this server. */
  patched(state: SessionState, fence: number): void {
    if (this.#present) this.#ports.tell([{ id: state.id, fence, state }])
  }

  /** The data of a session is gone. */
  gone(id: string): void {
    if (this.#present) this.#ports.tell([{ id, gone: true }])
  }

  /** Another server knows nothing yet. */
  joined(server_id: string): void {
    const facts = this.#ports.all().flatMap(id => this.#ports.own(id) ?? [])
    if (facts.length > 0) this.#ports.tell(facts, server_id)
  }

  /** Nothing is known of what goes on there. */
  left(server_id: string): void {
    for (const [id, known] of this.#known) if (known.server_id === server_id) this.#known.delete(id)
  }

  told(facts: readonly SessionFact[], server_id: string): void {
    for (const { id, fence, state, work, gone } of facts) {
      const known = this.#known.get(id)
      if (gone) {
        this.#known.delete(id)
        this.#ports.forget(id)
      } else if (!known || known.server_id === server_id || (fence ?? 0) > known.fence) {
        this.#known.set(id, { server_id, fence: fence ?? known?.fence ?? 0, work })
        if (state) this.#ports.show(state)
      } // else it stood still, and tells what it still believes of a session that another one has taken
    }
  }
}
