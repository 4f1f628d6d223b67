/** The model directory: fetched at most every ten minutes, one fetch for all who wait, with two ways back when it fails. */
import type { ResolvedEntry } from './resolve.ts'

export type Entries = ReadonlyMap<string, ResolvedEntry>

export interface DirectoryParts {
  /** Asks the live directory; undefined when none is configured. */
  readonly fetch: (() => Promise<Entries>) | undefined
  readonly snapshot: () => Promise<Entries>
  readonly now: () => Date
  /** Hears why the live directory could not be used. */
  readonly onFailure: (error: unknown) => void
}

const FRESH_MS = 600_000
/** After a failure the older content serves for a while before the live directory is asked again. */
const RETRY_MS = 60_000

export class Directory {
  readonly #parts: DirectoryParts
  #entries: Entries | undefined
  #until = 0
  #running: Promise<Entries> | undefined

  constructor(parts: DirectoryParts) {
    this.#parts = parts
  }

  /** Cache, else live, else what was there before, else the snapshot, which then counts as fresh. Rejects when all of them fail. */
  get(): Promise<Entries> {
    if (this.#entries && this.#parts.now().getTime() < this.#until) return Promise.resolve(this.#entries)
    this.#running ??= this.#load().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  async #load(): Promise<Entries> {
    const { fetch, snapshot, now, onFailure } = this.#parts
    let entries = fetch && (await fetch().catch(error => onFailure(error)))
    const older = entries ? undefined : this.#entries
    entries ??= older ?? (await snapshot())
    this.#entries = entries
    this.#until = now().getTime() + (older ? RETRY_MS : FRESH_MS)
    return entries
  }
}
