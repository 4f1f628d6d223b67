/**
 * Sessions of one home at several servers: each tells the others the facts of the sessions that it has, and knows from them what is going
 * on in theirs.
 */
import type { SessionState, SessionWork } from './service.ts'

/** What is going on in a session, for lists. */
export type WorkFacts = Pick<SessionWork, 'busy' | 'main_turn_active' | 'pending_interaction'>

/** One session as its server tells it. Without `work` it is at rest there; `gone`: its data was deleted. */
export interface SessionFact {
  readonly id: string
  readonly state?: SessionState
  readonly work?: WorkFacts
  readonly gone?: true
}

export interface SharedPorts {
  /** Tells all other servers, or one. */
  readonly tell: (facts: readonly SessionFact[], server_id?: string) => void
  /** The facts of a session of this server; undefined when it is not here. */
  readonly own: (id: string) => SessionFact | undefined
  /** Ids of the sessions that are here. */
  readonly all: () => readonly string[]
  readonly show: (state: SessionState) => void
  readonly forget: (id: string) => void
}

const atRest = ({ busy, pending_interaction }: WorkFacts) => !busy && pending_interaction === 'none'

export class SharedSessions {
  readonly #ports: SharedPorts
  /** What is going on elsewhere, by session. */
  readonly #work = new Map<string, { readonly server_id: string; readonly work: WorkFacts }>()
  readonly #changed = new Set<string>()
  #timer: NodeJS.Immediate | undefined
  #present = false

  constructor(ports: SharedPorts) {
    this.#ports = ports
  }

  /** What is going on in a session of another server. */
  work(id: string): WorkFacts | undefined {
    return this.#work.get(id)?.work
  }

  /** There are other servers, or none any more. */
  present(others: boolean): void {
    this.#present = others
    if (!others) this.#work.clear()
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
  patched(state: SessionState): void {
    if (this.#present) this.#ports.tell([{ id: state.id, state }])
  }

  /** The data of a session is gone. */
  gone(id: string): void {
    if (this.#present) this.#ports.tell([{ id, gone: true }])
  }

  /** Another server knows nothing yet. */
  joined(server_id: string): void {
    const facts = this.#ports.all().flatMap(id => this.#ports.own(id) ?? [])
    const live = facts.filter(({ work }) => work && !atRest(work))
    if (live.length > 0) this.#ports.tell(live, server_id)
  }

  /** Nothing is known of what goes on there. */
  left(server_id: string): void {
    for (const [id, known] of this.#work) if (known.server_id === server_id) this.#work.delete(id)
  }

  told(facts: readonly SessionFact[], server_id: string): void {
    for (const { id, state, work, gone } of facts) {
      if (work && !atRest(work)) this.#work.set(id, { server_id, work })
      else if (this.#work.get(id)?.server_id === server_id) this.#work.delete(id)
      if (gone) this.#ports.forget(id)
      else if (state) this.#ports.show(state)
    }
  }
}
