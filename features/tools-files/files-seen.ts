/** Stale guard: an agent changes an existing file only as it knows it from its last Read, Write or Edit. */
import type { Logger } from '../../kernel/index.ts'
import type { History } from '../history/index.ts'
import { ToolRefusal } from '../tools/index.ts'
import type { FileFacts } from './file-ops.ts'

const RECORD = 'file.seen'
const KEEP = 5_000

/** What one agent has seen, by real path; the last 5000 files. Kept in the agent's history where there is one. */
export class FilesSeen {
  readonly #history: History | undefined
  readonly #log: Logger
  readonly #seen = new Map<string, number>()
  /** Files that calls which are prepared will read or change: one behind them in the same response will find them so. */
  #planned = { turn: -1, paths: new Set<string>() }

  constructor(history: History | undefined, log: Logger) {
    this.#history = history
    this.#log = log
    for (const { path, mtime_ms } of history?.records(RECORD) ?? []) {
      if (typeof path === 'string' && typeof mtime_ms === 'number') this.#keep(path, mtime_ms)
    }
  }

  plan(path: string, turn: number): void {
    if (this.#planned.turn !== turn) this.#planned = { turn, paths: new Set() }
    this.#planned.paths.add(path)
  }

  /** Whether a call before will read or change the file. */
  isPlanned(path: string, turn: number | undefined): boolean {
    return this.#planned.turn === turn && this.#planned.paths.has(path)
  }

  /** A call has read or changed the file. */
  record(path: string, mtimeMs: number): void {
    this.#planned.paths.delete(path)
    if (this.#seen.get(path) === mtimeMs) return
    this.#keep(path, mtimeMs)
    this.#history?.append({ type: RECORD, path, mtime_ms: mtimeMs }).catch((error: unknown) => {
      this.#log.error({ err: error }, 'a file could not be recorded as seen')
    })
  }

  /** Throws ToolRefusal when an existing file was not seen, or was changed since. `turn`: what is planned in it counts. */
  check(path: string, shown: string, facts: FileFacts | undefined, turn?: number): void {
    if (!facts) return
    if (this.isPlanned(path, turn)) return
    const known = this.#seen.get(path)
    if (known === undefined) throw new ToolRefusal(`The file ${shown} has not been read yet. Read it first, then change it.`)
    if (known !== facts.mtimeMs)
      throw new ToolRefusal(`The file ${shown} has changed since it was last read. Read it again, then change it.`)
  }

  #keep(path: string, mtimeMs: number): void {
    this.#seen.delete(path)
    this.#seen.set(path, mtimeMs)
    if (this.#seen.size > KEEP) this.#seen.delete(this.#seen.keys().next().value ?? '')
  }
}
