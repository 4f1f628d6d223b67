/** Stale guard: an agent changes an existing file only as it knows it from its last Read, Write or Edit. */
import type { Logger } from '../../kernel/index.ts'
import type { History } from '../history/index.ts'
import { type ToolAccess, type ToolEnv, ToolRefusal } from '../tools/index.ts'
import type { FileFacts } from './file-ops.ts'

const RECORD = 'file.seen'
const KEEP = 5_000

const knowing: readonly string[] = ['Read', 'Write', 'Edit']

/** Whether a call before this one in the same response reads or changes the file, so that it will be known when this one runs. */
export function isPlanned(path: string, { earlier }: Pick<ToolEnv, 'earlier'>): boolean {
  const touches = (access: ToolAccess) => access.kind !== 'exclusive' && access.path === path
  return earlier.some(({ tool, accesses }) => knowing.includes(tool) && accesses.some(touches))
}

/** What one agent has seen, by real path; the last 5000 files. Kept in the agent's history where there is one. */
export class FilesSeen {
  readonly #history: History | undefined
  readonly #log: Logger
  readonly #seen = new Map<string, number>()

  constructor(history: History | undefined, log: Logger) {
    this.#history = history
    this.#log = log
    for (const { path, mtime_ms } of history?.records(RECORD) ?? []) {
      if (typeof path === 'string' && typeof mtime_ms === 'number') this.#keep(path, mtime_ms)
    }
  }

  /** A call has read or changed the file. */
  record(path: string, mtimeMs: number): void {
    if (this.#seen.get(path) === mtimeMs) return
    this.#keep(path, mtimeMs)
    this.#history?.append({ type: RECORD, path, mtime_ms: mtimeMs }).catch((error: unknown) => {
      this.#log.error({ err: error }, 'a file could not be recorded as seen')
    })
  }

  /** Throws ToolRefusal when an existing file was not seen, or was changed since. */
  check(path: string, shown: string, facts: FileFacts | undefined): void {
    if (!facts) return
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
