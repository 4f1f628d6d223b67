/** The state of a loaded session: changed in memory first, then written, one write at a time. */
import type { SessionState } from './service.ts'

/** How long a change of the state may wait for others, when the journal of an agent implies it. */
const saveDelayMs = 250

type Change = (state: SessionState) => SessionState

export interface SavedStatePorts {
  readonly now: () => Date
  /** False: another server process has the session, and saves it. */
  readonly writable: boolean
  /** Shows the state in lists. */
  readonly show: (state: SessionState) => void
  /** Resolves when the state is on disk. */
  readonly save: (state: SessionState) => Promise<void>
  /** A write nobody waits for failed. */
  readonly failed: (error: unknown) => void
  /** Throws why a change is not made, once there is nothing to write to. */
  readonly refuse: () => void
}

export class SavedState {
  readonly #ports: SavedStatePorts
  #current: SessionState
  /** Changes of `update` that no write has begun with. */
  #changes: Change[] = []
  #later: NodeJS.Timeout | undefined
  /** Something has changed that need not be on disk before the session is closed. */
  #unsaved = false
  #saving: Promise<void> | undefined
  #next: Promise<void> | undefined
  /** Nothing is written or shown any more. */
  #ended = false

  constructor(state: SessionState, ports: SavedStatePorts) {
    this.#current = state
    this.#ports = ports
  }

  get current(): SessionState {
    return this.#current
  }

  /** Resolves when the change is on disk. Rejects with what the disk says; then the change is taken back. */
  async update(change: Change): Promise<void> {
    this.#changes.push(change)
    await this.#save()
  }

  /** Changes it in memory, and writes it a little later: changes of a short while share a write, and a crash before it costs nothing. */
  change(state: SessionState): void {
    this.changeUnsaved(state)
    if (!this.#ports.writable) return // its owner saves it
    this.#later ??= setTimeout(() => void this.#save().catch(this.#ports.failed), saveDelayMs).unref()
  }

  /** Changes it in memory alone. */
  changeUnsaved(state: SessionState): void {
    this.#current = state
    if (!this.#ended) this.#ports.show(state)
  }

  /** Changes it in memory, and writes it with the next write, at the latest when the session is closed. */
  changeAtClose(state: SessionState): void {
    this.changeUnsaved(state)
    this.#unsaved = true
  }

  /** The state with `updated_at` as of `at` (now by default), never earlier than it is. */
  touched(state: SessionState, at = this.#ports.now()): SessionState {
    const time = at.toISOString()
    return { ...state, updated_at: time > state.updated_at ? time : state.updated_at }
  }

  /** The data is gone, or another server's: whoever still has the session changes nothing any more. */
  end(): void {
    this.#ended = true
    clearTimeout(this.#later)
    this.#later = undefined
  }

  /** Resolves when everything is written. */
  async settled(): Promise<void> {
    if (this.#later || this.#unsaved) void this.#save().catch(this.#ports.failed)
    for (let save = this.#next ?? this.#saving; save; save = this.#next ?? this.#saving) await save.catch(() => undefined) // whoever asked for it hears
  }

  /** One write at a time; changes that arrive meanwhile share the next one. */
  #save(): Promise<void> {
    clearTimeout(this.#later)
    this.#later = undefined
    if (this.#next) return this.#next // its changes are not begun with, nor refused, by somebody else: whoever asked for them would not hear it
    if (this.#ended) return this.#refuse()
    if (!this.#saving) {
      this.#saving = this.#write().finally(() => {
        this.#saving = undefined
      })
      return this.#saving
    }
    this.#next = this.#saving
      .catch(() => undefined) // whoever asked for that write has seen its failure
      .then(() => {
        this.#next = undefined
        return this.#save()
      })
    return this.#next
  }

  /** Changes that no write has begun with are not made any more, and whoever asked for them hears it. */
  async #refuse(): Promise<void> {
    if (this.#changes.splice(0).length > 0) this.#ports.refuse()
  }

  /** What the disk refuses is taken back: nobody was told that it is so. What need not be on disk yet waits for the next write. */
  async #write(): Promise<void> {
    const before = this.#current
    const changes = this.#changes
    this.#changes = []
    this.#unsaved = false
    if (changes.length > 0) this.changeUnsaved(changes.reduce((state, change) => change(state), before))
    const written = this.#current
    try {
      await this.#ports.save(written)
    } catch (error) {
      this.#unsaved = true
      if (changes.length > 0) this.changeUnsaved(without(this.#current, written, before))
      throw error
    }
  }
}

/** A state whose fields are what they were before, where they are still what a refused change made of them. */
function without(state: SessionState, refused: SessionState, before: SessionState): SessionState {
  const isRefused = (key: keyof SessionState) => refused[key] !== before[key] && state[key] === refused[key]
  const kept = Object.entries(state).filter(([key]) => !isRefused(key as keyof SessionState))
  const old = Object.entries(before).filter(([key]) => isRefused(key as keyof SessionState))
  return Object.fromEntries([...kept, ...old]) as unknown as SessionState // the fields of three states, each of one of them
}
