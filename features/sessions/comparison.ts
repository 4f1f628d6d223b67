/** Compares what is known of sessions with their state files, because other server processes share the home. */
import { join } from 'node:path'
import { aFewAtOnce, type Logger, stampAt, yieldToLoop } from '../../kernel/index.ts'
import { directoriesIn, isSessionId, isThere, namesIn, stateStamp } from './disk.ts'
import type { IndexFile } from './index-file.ts'
import type { KnownSessions } from './known-sessions.ts'
import type { SessionState } from './service.ts'

const parallelReads = 32
/** Where nobody else changes sessions, every file is looked at with each tenth comparison. */
const scansPerWhole = 10

interface ComparisonPorts {
  /** Absolute path of `<home>/sessions`. */
  readonly root: string
  readonly log: Logger
  /** It comes at most this often. */
  readonly scanMs: number
  /** See `Leases.elsewhere`. */
  readonly leasesElsewhere: () => Promise<string | undefined>
  readonly read: (workspace_id: string, id: string) => Promise<SessionState | undefined>
}

interface Changed {
  readonly workspace_id: string
  readonly id: string
  readonly stamp: string
}

/** What one look at the directories found. */
interface Found {
  /** Sessions whose files were looked at. */
  readonly seen: Set<string>
  /** Directories of workspaces, with their stamps. */
  readonly stamps: Map<string, string>
  /** Workspaces that were left out. */
  readonly same: Set<string>
  readonly changed: Changed[]
}

export class Comparison {
  readonly #ports: ComparisonPorts
  readonly #known: KnownSessions
  readonly #file: IndexFile
  /** Of the last one: who might have changed sessions before it, and the directories of the workspaces. */
  #elsewhere: string | undefined
  #stamps: ReadonlyMap<string, string> = new Map()
  /** When every file was looked at. */
  #allSeen = Number.NEGATIVE_INFINITY
  #endedAt = Number.NEGATIVE_INFINITY

  constructor(ports: ComparisonPorts, known: KnownSessions, file: IndexFile) {
    this.#ports = ports
    this.#known = known
    this.#file = file
  }

  /** When the last one ended, ms of `performance.now()`; minus infinity before the first. */
  get endedAt(): number {
    return this.#endedAt
  }

  /** One has ended. */
  get isComplete(): boolean {
    return this.#endedAt > Number.NEGATIVE_INFINITY
  }

  /**
   * While no other server has changed sessions since the last comparison, a workspace whose directory is as it was is left out: files there
   * changed by hand alone, which is seen some comparisons later.
   */
  async run(): Promise<void> {
    if (!this.isComplete) await this.#recall()
    const began = performance.now()
    const elsewhere = await this.#ports.leasesElsewhere()
    const isWhole =
      elsewhere === undefined ||
      elsewhere !== this.#elsewhere ||
      began - this.#allSeen >= this.#ports.scanMs * scansPerWhole ||
      !this.isComplete
    const found = await this.#look(isWhole)
    await aFewAtOnce(found.changed, parallelReads, changed => this.#read(changed))
    await this.#forgetGone(found)
    this.#elsewhere = elsewhere
    this.#stamps = found.stamps
    if (isWhole) this.#allSeen = began
    this.#endedAt = performance.now()
  }

  /** What the process before knew; stamps tell what of it still holds. */
  async #recall(): Promise<void> {
    for (const [id, { state, stamp }] of await this.#file.read()) {
      if (this.#known.row(id)) continue
      this.#known.take(state, stamp)
      const row = this.#known.row(id)
      if (row) row.unproven = true
    }
  }

  async #look(isWhole: boolean): Promise<Found> {
    const { root } = this.#ports
    const found: Found = { seen: new Set(), stamps: new Map(), same: new Set(), changed: [] }
    for (const workspace_id of await directoriesIn(root)) {
      const dirStamp = await stampAt(join(root, workspace_id)) // before the names, as the stamps of files before their content
      found.stamps.set(workspace_id, dirStamp)
      if (!isWhole && this.#stamps.get(workspace_id) === dirStamp) {
        found.same.add(workspace_id)
        continue
      }
      const names = await namesIn(join(root, workspace_id))
      if (!names) found.stamps.delete(workspace_id) // the next comparison looks again
      for (const id of names ?? []) {
        const others = yieldToLoop()
        if (others) await others // awaiting nothing would cost as much as a stamp, 10,000 times
        if (!isSessionId(id)) continue
        found.seen.add(id)
        if (this.#known.isPinned(id)) continue
        const asked = stateStamp(root, workspace_id, id)
        const stamp = typeof asked === 'string' ? asked : await asked
        const row = this.#known.row(id)
        if (stamp === '' || row?.stamp !== stamp) found.changed.push({ workspace_id, id, stamp })
        else row.unproven = false
      }
    }
    return found
  }

  async #read({ workspace_id, id, stamp }: Changed): Promise<void> {
    const known = this.#known
    const before = known.copy(id)
    try {
      const state = await this.#ports.read(workspace_id, id)
      if (state && known.takeRead(before, state, stamp) && stamp !== '') this.#file.keep({ state, stamp })
    } catch (err) {
      this.#ports.log.warn({ err, session_id: id }, 'a session could not be read for the list')
    }
  }

  async #forgetGone({ same, seen }: Found): Promise<void> {
    for (const [id, { state }] of this.#known.rows()) {
      if (same.has(state.workspace_id) || seen.has(id) || this.#known.isPinned(id)) continue
      const there = await isThere(join(this.#ports.root, state.workspace_id, id)).catch(() => true)
      if (!there && !this.#known.isPinned(id)) this.#known.forget(id)
    }
  }
}
