/** The model directory: fetched at most every ten minutes, one fetch for all who wait, with two ways back when it fails or takes long. */
import { late, waitAtMost } from '../../kernel/index.ts'
import { FetchProblem } from '../providers/index.ts'
import type { ResolvedEntry } from './resolve.ts'

/** Entries by id, in the order of the document. */
export type Entries = ReadonlyMap<string, ResolvedEntry>

/** Where entries come from, and who is told when they do not. */
export interface DirectoryParts {
  /** Asks the live directory; undefined when there is none. */
  readonly fetch: (() => Promise<Entries>) | undefined
  /** The built-in directory; undefined when it is switched off. */
  readonly snapshot: (() => Promise<Entries>) | undefined
  readonly now: () => Date
  /** How long anybody waits for the live directory while there is something else to answer. */
  readonly patience_ms: number
  /** Hears why the live directory could not be used. Not called when the server runs offline: nothing was asked then. */
  readonly onFailure: (error: unknown) => void
}

/** Of the document. A longer one would be a list that holds the event loop when it is sent to a client. */
export const DIRECTORY_LIMIT_BYTES = 4 * 1024 * 1024
const FRESH_MS = 600_000
/** After a failure the older content serves for a while before the live directory is asked again. */
const RETRY_MS = 60_000

interface Round {
  /** The outcome. */
  readonly loaded: Promise<Entries>
  /** The outcome, or after the patience what there is without it. */
  readonly soon: Promise<Entries>
}

/** The entries that count now. */
export class Directory {
  readonly #parts: DirectoryParts
  /** Last answer of the live directory. */
  #live: Entries | undefined
  /** What serves until `#until`. */
  #fresh: Entries | undefined
  #until = 0
  #round: Round | undefined

  constructor(parts: DirectoryParts) {
    this.#parts = parts
  }

  /** Cache, else live, else what was live before, else the snapshot, which then counts as fresh. Rejects when all of them fail. */
  get(): Promise<Entries> {
    const left = this.#until - this.#parts.now().getTime()
    // More than that is left where the clock was set back: then nobody knows how old it is.
    if (this.#fresh && left > 0 && left <= FRESH_MS) return Promise.resolve(this.#fresh)
    this.#round ??= this.#begin()
    return this.#round.soon
  }

  /** One entry. What the answer at hand does not know is worth waiting for the fetch that is under way. */
  async find(id: string): Promise<ResolvedEntry | undefined> {
    const found = (await this.get()).get(id)
    return found ?? (await (this.#round?.loaded ?? this.get())).get(id)
  }

  #begin(): Round {
    const loaded = this.#load().finally(() => {
      this.#round = undefined
    })
    return { loaded, soon: this.#parts.fetch ? this.#soon(loaded) : loaded }
  }

  async #load(): Promise<Entries> {
    const { fetch, onFailure } = this.#parts
    let refused = false
    try {
      if (fetch) {
        this.#live = await fetch()
        return this.#keep(this.#live, FRESH_MS)
      }
    } catch (error) {
      refused = error instanceof FetchProblem && error.offline
      if (!refused) onFailure(error)
    }
    const entries = await this.#fallback()
    // Offline nobody was asked, so the next caller may try again: the switch may be off by then.
    if (refused) return entries
    return this.#keep(entries, entries === this.#live ? RETRY_MS : FRESH_MS)
  }

  #keep(entries: Entries, ms: number): Entries {
    this.#fresh = entries
    this.#until = this.#parts.now().getTime() + ms
    return entries
  }

  async #soon(loaded: Promise<Entries>): Promise<Entries> {
    const entries = await waitAtMost(loaded, this.#parts.patience_ms)
    return entries !== late ? entries : await this.#fallback().catch(() => loaded)
  }

  async #fallback(): Promise<Entries> {
    if (this.#live) return this.#live
    if (!this.#parts.snapshot) throw new Error('there is no built-in model directory')
    return await this.#parts.snapshot()
  }
}

/**
 * `SVC_CODE_CATALOG_URL`, else the deployment option: the root of a directory, or its document when the path ends in `.json`. Undefined
 * for `off` and nothing: no live directory. What is no URL stays as it is, the request then says so.
 */
export function directoryUrl(env: NodeJS.ProcessEnv, configured: string): string | undefined {
  const given = (env.SVC_CODE_CATALOG_URL ?? configured).trim()
  if (given === '' || given.toLowerCase() === 'off') return undefined
  if (!URL.canParse(given)) return given
  const url = new URL(given)
  if (!url.pathname.endsWith('.json')) url.pathname = `${url.pathname.replace(/\/+$/, '')}/api.json`
  return url.href
}
