/** Bounds what all journals of a process hold open: least recently used files are closed, dirty ones are synced once per second. */
import type { Logger } from '../log/log.ts'

/** A journal as the pool sees it. */
export interface Pooled {
  /** Closes the file unless it is being written right now: then undefined. */
  park(): Promise<unknown> | undefined
  /** Asks the operating system to put written lines on the medium. */
  sync(): Promise<void>
}

const syncEveryMs = 1000

export class JournalPool {
  readonly #limit: number
  readonly #log: Logger
  /** Insertion order is order of use. */
  readonly #open = new Set<Pooled>()
  /** Files being closed; these promises never reject. */
  readonly #parking = new Set<Promise<unknown>>()
  #dirty = new Set<Pooled>()
  #timer: NodeJS.Timeout | undefined

  /** `limit` is the number of files kept open between writes. */
  constructor(log: Logger, limit = 128) {
    this.#log = log
    this.#limit = limit
  }

  /** Marks a journal's file as open and just used. Waits only while more files are being closed than may be open. */
  async touch(journal: Pooled): Promise<void> {
    this.#open.delete(journal)
    this.#open.add(journal)
    if (this.#open.size <= this.#limit) return
    for (const oldest of [...this.#open]) {
      if (oldest === journal || this.#open.size <= this.#limit) break
      const parking = oldest.park()
      if (!parking) continue
      this.#open.delete(oldest)
      this.#parking.add(parking)
      void parking.then(() => this.#parking.delete(parking))
    }
    while (this.#parking.size > this.#limit) await Promise.race(this.#parking)
  }

  /** The journal closed its file by itself. */
  forget(journal: Pooled): void {
    this.#open.delete(journal)
    this.#dirty.delete(journal)
  }

  /** Lines were written that the medium may not have yet. A killed process loses nothing; this is about power loss. */
  dirty(journal: Pooled): void {
    this.#dirty.add(journal)
    if (this.#timer) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      const journals = this.#dirty
      this.#dirty = new Set()
      for (const one of journals) one.sync().catch(err => this.#log.warn({ err }, 'a journal could not be synced'))
    }, syncEveryMs)
    this.#timer.unref()
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }
}
