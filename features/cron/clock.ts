/** When which session has to be looked at: one timer for all, and on disk, so that sessions that are not loaded are in time. */
import { type DocumentStore, type Logger, longestMs } from '../../kernel/index.ts'

export interface ClockPorts {
  readonly now: () => Date
  readonly log: Logger
  readonly store: DocumentStore<{ due: number }>
  /** How often it is looked, ms; undefined: not at all. */
  readonly interval: () => number | undefined
  /** A session is due. Answers when to look again if its own announcement does not say, ms from now; `gone`: there is none of this id. */
  readonly look: (session_id: string) => Promise<number | 'gone'>
  readonly isGone: (session_id: string) => Promise<boolean>
}

export class Clock {
  readonly #ports: ClockPorts
  readonly #due = new Map<string, number>()
  #timer: NodeJS.Timeout | undefined
  #stopped = false
  #writing: Promise<unknown> = Promise.resolve()

  constructor(ports: ClockPorts) {
    this.#ports = ports
  }

  /** Those of earlier servers. */
  async load(): Promise<void> {
    for (const id of await this.#ports.store.ids()) {
      const known = await this.#ports.store.get(id)
      if (!known || this.#due.has(id)) continue
      this.#due.set(id, known.due)
      await this.forgetGone(id)
    }
    this.#arm()
  }

  /** What a deleted session would be due for may be years away. */
  async forgetGone(session_id: string): Promise<void> {
    if (this.#due.has(session_id) && (await this.#ports.isGone(session_id))) await this.set(session_id, undefined)
  }

  /** The next time of a session, ms; undefined: it has no job. Never rejects. */
  async set(session_id: string, due: number | undefined): Promise<void> {
    const before = this.#due.get(session_id)
    if (before === due) return
    if (due === undefined) this.#due.delete(session_id)
    else this.#due.set(session_id, due)
    this.#arm()
    this.#writing = this.#writing.then(() => this.#write(session_id))
    await this.#writing
  }

  /** What holds when its turn has come. */
  async #write(session_id: string): Promise<void> {
    const due = this.#due.get(session_id)
    try {
      if (due === undefined) await this.#ports.store.delete(session_id)
      else await this.#ports.store.put(session_id, { due })
    } catch (err) {
      this.#ports.log.warn({ err, session_id }, 'when a session is due could not be noted; its jobs fire when it is loaded')
    }
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
  }

  #arm(): void {
    if (this.#timer || this.#stopped || this.#due.size === 0) return
    // Whether it is switched off may change at any time.
    const wait = Math.min(this.#ports.interval() ?? 1000, longestMs) // a longer one would be none
    this.#timer = setTimeout(() => {
      void this.#tick().finally(() => {
        this.#timer = undefined
        this.#arm()
      })
    }, wait)
    this.#timer.unref()
  }

  async #tick(): Promise<void> {
    const now = this.#ports.now().getTime()
    if (this.#ports.interval() === undefined) return
    for (const [id, due] of [...this.#due]) {
      if (this.#stopped) return
      if (due <= now) await this.#look(id, due)
    }
  }

  async #look(session_id: string, due: number): Promise<void> {
    let again: number | 'gone' = 60_000
    try {
      again = await this.#ports.look(session_id)
    } catch (err) {
      if (!this.#stopped) this.#ports.log.error({ err, session_id }, 'scheduled prompts of a session could not be looked after')
    }
    if (again === 'gone') return this.set(session_id, undefined)
    // In memory only: what is on disk is when the job was due.
    if (this.#due.get(session_id) === due) this.#due.set(session_id, this.#ports.now().getTime() + again)
  }
}
