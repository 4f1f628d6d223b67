/** Live work of one session, folded from its agents; announces every change of the folded tuple once. */
import type { SessionWork, TurnReason } from './service.ts'

export interface WorkPorts {
  /** Announces the tuple (event.session.work_changed). */
  announce(work: { busy: boolean; main_turn_active: boolean; pending_interaction: SessionWork['pending_interaction'] }): void
  /** The reason now in the session's state. */
  reason(): TurnReason | undefined
  /** Changes the reason, as of `at` (now by default); `undefined` is not written. */
  setReason(reason: TurnReason | undefined, at?: Date): void
  /** Nothing is going on any more. */
  idle(): void
}

export class Work implements SessionWork {
  readonly #ports: WorkPorts
  readonly #turns = new Set<string>()
  readonly #pending = { approval: 0, question: 0 }
  #background = 0
  #last: string

  constructor(ports: WorkPorts) {
    this.#ports = ports
    this.#last = this.#key()
  }

  get busy(): boolean {
    return this.#turns.size > 0 || this.#background > 0
  }

  get main_turn_active(): boolean {
    return this.#turns.has('main')
  }

  get pending_interaction(): SessionWork['pending_interaction'] {
    return this.#pending.approval > 0 ? 'approval' : this.#pending.question > 0 ? 'question' : 'none'
  }

  activeTurns(): readonly string[] {
    return [...this.#turns]
  }

  turnStarted(agent_id: string): void {
    this.#turns.add(agent_id)
    if (agent_id === 'main') this.#ports.setReason(undefined)
    this.#changed()
  }

  turnEnded(agent_id: string, reason: TurnReason, options: Parameters<SessionWork['turnEnded']>[2] = {}): void {
    if (options.goesOn) this.#turns.add(agent_id)
    else this.#turns.delete(agent_id)
    if (agent_id === 'main') this.#ports.setReason(reason, options.at)
    this.#changed(options.announce)
  }

  pending(kind: 'approval' | 'question', change: 1 | -1): void {
    this.#pending[kind] = Math.max(0, this.#pending[kind] + change)
    this.#changed()
  }

  background(change: 1 | -1): void {
    this.#background = Math.max(0, this.#background + change)
    this.#changed()
  }

  announce(): void {
    this.#changed(true)
  }

  #changed(announce?: boolean): void {
    const key = this.#key()
    const changed = key !== this.#last
    this.#last = key
    if (announce ?? changed) {
      this.#ports.announce({ busy: this.busy, main_turn_active: this.main_turn_active, pending_interaction: this.pending_interaction })
    }
    if (!this.busy && this.pending_interaction === 'none') this.#ports.idle()
  }

  #key(): string {
    return [this.busy, this.main_turn_active, this.pending_interaction, this.#ports.reason()].join()
  }
}
