/** Stale guard: an agent changes an existing file only as it knows it from its last Read, Write or Edit. */
import { type Logger, Type } from '../../kernel/index.ts'
import { defineRecord, type History, recordTypes, type StateSpec } from '../history/index.ts'
import { type ToolAccess, type ToolEnv, ToolRefusal } from '../tools/index.ts'
import type { FileFacts } from './file-ops.ts'

const seenRecord = defineRecord('file.seen', Type.Object({ path: Type.String(), mtime_ms: Type.Number() }))
const KEEP = 5_000

/** Modification times as they were seen, by real path; those seen last. */
type Seen = Map<string, number>
export const seenState: StateSpec<Seen> = {
  name: 'files.seen',
  version: 1,
  records: recordTypes(seenRecord),
  initial: () => new Map(),
  reduce(seen, record) {
    if (!seenRecord.is(record)) return seen
    seen.delete(record.path)
    seen.set(record.path, record.mtime_ms)
    if (seen.size > KEEP) seen.delete(seen.keys().next().value ?? '')
    return seen
  },
  save: seen => [...seen],
  load: saved => new Map(saved as [string, number][])
}

const knowing: readonly string[] = ['Read', 'Write', 'Edit']

/** Whether a call before this one in the same response reads or changes the file, so that it will be known when this one runs. */
export function isPlanned(path: string, { earlier }: Pick<ToolEnv, 'earlier'>): boolean {
  const touches = (access: ToolAccess) => 'path' in access && access.path === path
  return earlier.some(({ tool, accesses }) => knowing.includes(tool) && accesses.some(touches))
}

/** What one agent has seen, by real path; the last 5000 files. Kept in the agent's history where there is one. */
export class FilesSeen {
  readonly #history: History | undefined
  readonly #log: Logger
  readonly #state: { readonly value: Seen }
  /** What the history has not taken in yet. */
  readonly #fresh: Seen = new Map()

  private constructor(history: History | undefined, state: { readonly value: Seen }, log: Logger) {
    this.#history = history
    this.#state = state
    this.#log = log
  }

  static async open(history: History | undefined, log: Logger): Promise<FilesSeen> {
    return new FilesSeen(history, history ? await history.track(seenState) : { value: new Map() }, log)
  }

  /** A call has read or changed the file. */
  record(path: string, mtimeMs: number): void {
    if (this.#known(path) === mtimeMs) return
    const record = seenRecord.of({ path, mtime_ms: mtimeMs })
    if (!this.#history) seenState.reduce(this.#state.value, record)
    else void this.#append(this.#history, path, record)
  }

  async #append(history: History, path: string, record: ReturnType<typeof seenRecord.of>): Promise<void> {
    this.#fresh.set(path, record.mtime_ms)
    try {
      await history.append(record)
    } catch (error) {
      this.#log.error({ err: error }, 'a file could not be recorded as seen')
    } finally {
      if (this.#fresh.get(path) === record.mtime_ms) this.#fresh.delete(path)
    }
  }

  #known(path: string): number | undefined {
    return this.#fresh.get(path) ?? this.#state.value.get(path)
  }

  /** Throws ToolRefusal when an existing file was not seen, or was changed since. */
  check(path: string, shown: string, facts: FileFacts | undefined): void {
    if (!facts) return
    const known = this.#known(path)
    if (known === undefined)
      throw new ToolRefusal(
        `The file ${shown} has not been read yet. Read it first, then change it; one that Read refuses is no text and has to be removed before ` +
          'Write can take its place.'
      )
    if (known !== facts.mtimeMs)
      throw new ToolRefusal(`The file ${shown} has changed since it was last read. Read it again, then change it.`)
  }
}
