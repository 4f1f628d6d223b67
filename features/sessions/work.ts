/** Live work of one session, folded from its agents; announces every change of the folded tuple once, and of the status that follows from it. */
import type { SessionStatus } from './contract.ts'
import type { HeardWork, SessionWork, ToldWork, TurnReason, WorkTuple } from './service.ts'

export interface WorkPorts {
  /** Announces the tuple (event.session.work_changed). */
  announce(work: ToldWork): void
  /** Announces the status (event.session.status_changed); `prompt_id`: whose turn the main agent runs. */
  statusChanged(change: { status: SessionStatus; previous_status: SessionStatus; prompt_id: string | undefined }): void
  /** The reason now in the session's state. */
  reason(): TurnReason | undefined
  /** Changes the reason, as of `at` (now by default); `undefined` is not written. */
  setReason(reason: TurnReason | undefined, at?: Date): void
  /** Nothing is going on any more. */
  idle(): void
}

const tupleOf = ({ busy, main_turn_active, pending_interaction }: WorkTuple) => [busy, main_turn_active, pending_interaction].join()

const keyOf = (work: ToldWork) => [tupleOf(work), work.last_turn_reason].join()

/** The status that a tuple of work means: what waits for the user first, then what runs, then how the last turn ended. */
export function statusOf({ busy, pending_interaction }: WorkTuple, reason: TurnReason | undefined): SessionStatus {
  if (pending_interaction !== 'none') return `awaiting_${pending_interaction}`
  if (busy) return 'running'
  return reason === 'cancelled' ? 'aborted' : 'idle'
}

const firstOf = ({ approval, question }: Record<'approval' | 'question', number>): WorkTuple['pending_interaction'] =>
  approval > 0 ? 'approval' : question > 0 ? 'question' : 'none'

export class Work implements SessionWork {
  readonly #ports: WorkPorts
  readonly #turns = new Set<string>()
  readonly #pending = { approval: 0, question: 0 }
  /** Requests of an earlier process, told late, whose end is not told yet. */
  readonly #left = new Map<string, 'approval' | 'question'>()
  #background = 0
  #last: string
  #prompt: string | undefined
  /** What clients heard last; undefined: not known yet, and no status is told until then. */
  #heard: HeardWork | undefined

  constructor(ports: WorkPorts) {
    this.#ports = ports
    this.#last = keyOf(this.#now())
  }

  get busy(): boolean {
    return this.#turns.size > 0 || this.#background > 0
  }

  get main_turn_active(): boolean {
    return this.#turns.has('main')
  }

  get pending_interaction(): SessionWork['pending_interaction'] {
    return firstOf(this.#pending)
  }

  activeTurns(): readonly string[] {
    return [...this.#turns]
  }

  turnStarted(agent_id: string, prompt_id?: string): void {
    this.#turns.add(agent_id)
    if (agent_id === 'main') {
      this.#ports.setReason(undefined)
      this.#prompt = prompt_id
    }
    this.#changed()
  }

  turnEnded(agent_id: string, reason: TurnReason, options: Parameters<SessionWork['turnEnded']>[2] = {}): void {
    if (options.goesOn) this.#turns.add(agent_id)
    else this.#turns.delete(agent_id)
    if (agent_id === 'main') {
      this.#ports.setReason(reason, options.at)
      this.#prompt = undefined
    }
    this.#changed(options.announce)
  }

  rests(agent_id: string): void {
    if (!this.#turns.delete(agent_id)) return
    if (agent_id === 'main') this.#prompt = undefined
    this.#changed()
  }

  pending(kind: 'approval' | 'question', change: 1 | -1): void {
    this.#pending[kind] = Math.max(0, this.#pending[kind] + change)
    this.#changed()
  }

  pendingLeft(id: string, kind: 'approval' | 'question' | undefined): void {
    if (kind) this.#left.set(id, kind)
    else if (!this.#left.delete(id)) return
    const work = this.#heard?.work
    if (!work) return
    const left = [...this.#left.values()]
    const count = (of: 'approval' | 'question') => this.#pending[of] + left.filter(each => each === of).length
    const pending_interaction = firstOf({ approval: count('approval'), question: count('question') })
    if (work.pending_interaction === pending_interaction) return
    this.#announce({ ...work, pending_interaction })
    this.#tellStatus({ ...work, pending_interaction })
  }

  background(change: 1 | -1): void {
    this.#background = Math.max(0, this.#background + change)
    this.#changed()
  }

  announce(): void {
    const work = this.#heard?.work
    if (work !== undefined && tupleOf(work) !== tupleOf(this)) this.#changed(true)
    else this.#tellStatus()
  }

  get isHeard(): boolean {
    return this.#heard !== undefined
  }

  heard(heard: HeardWork): void {
    this.#heard = heard
  }

  #announce({ busy, main_turn_active, pending_interaction, last_turn_reason }: ToldWork): void {
    const work = { busy, main_turn_active, pending_interaction, last_turn_reason }
    if (this.#heard) this.#heard = { ...this.#heard, work }
    this.#ports.announce(work)
  }

  #tellStatus(work: WorkTuple = this): void {
    if (this.#heard === undefined) return
    const { status: previous_status } = this.#heard
    const status = statusOf(work, this.#ports.reason())
    if (previous_status === status) return
    this.#heard = { ...this.#heard, status }
    this.#ports.statusChanged({ status, previous_status, prompt_id: this.#prompt })
  }

  #changed(announce?: boolean): void {
    const work = this.#now()
    const key = keyOf(work)
    const changed = key !== this.#last
    this.#last = key
    // An earlier process may have told the same.
    const isNews = key !== (this.#heard?.work && keyOf(this.#heard.work))
    if (isNews && (announce ?? changed)) this.#announce(work)
    if (announce !== false) this.#tellStatus()
    if (!this.busy && this.pending_interaction === 'none') this.#ports.idle()
  }

  #now(): ToldWork {
    const { busy, main_turn_active, pending_interaction } = this
    return { busy, main_turn_active, pending_interaction, last_turn_reason: this.#ports.reason() }
  }
}
