/**
 * All sessions of the home, without loading them: an index of the `state.json` files, read lazily, kept by this process's own changes
 * and compared with the disk now and then, because other server processes share the home.
 */
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { acquireLock, type DocumentStore, type Logger, lockHolder } from '../../kernel/index.ts'
import type { SessionState } from './service.ts'

const parallelReads = 32
/** A list waits so long for the comparison with the disk, then answers from the index; the comparison goes on. */
const listWaitMs = 50
/** In the directory of a session: it was closed while something waited in it. */
export const waitingFile = 'waiting'
/** Of directories that are no sessions yet. */
const unfinishedPrefix = '.new-'
const idForm = /^session_[A-Za-z0-9_-]{1,128}$/

/** Where all sessions live. */
export const sessionsRoot = (home: string): string => join(home, 'sessions')

export interface CatalogPorts {
  /** Absolute path of `<home>/sessions`. */
  readonly root: string
  readonly store: DocumentStore<SessionState>
  /** The same in another directory. */
  readonly storeAt: (dir: string) => DocumentStore<SessionState>
  readonly log: Logger
  /** The index is compared with the disk at most this often. */
  readonly scanMs: number
  /** Rebuilds the facts of a session whose state file was lost or damaged; undefined when there is nothing to go by. */
  readonly rescue: (workspace_id: string, id: string) => Promise<SessionState | undefined>
}

interface Row {
  state: SessionState
  /** Modification time of the file when it was read; -1 after a change of our own. */
  mtime: number
}

export class Catalog {
  readonly #ports: CatalogPorts
  readonly #rows = new Map<string, Row>()
  readonly #pinned = new Set<string>()
  #sorted: readonly SessionState[] | undefined
  #scanned = Number.NEGATIVE_INFINITY
  #scanning: Promise<void> | undefined
  #complete = false

  constructor(ports: CatalogPorts) {
    this.#ports = ports
  }

  /** `<home>/sessions/<workspace_id>/<id>` */
  dir(state: SessionState): string {
    return join(this.#ports.root, state.workspace_id, state.id)
  }

  /** Facts of one session from the index, else from the disk. */
  async find(id: string): Promise<SessionState | undefined> {
    const row = this.#rows.get(id)
    if (row && (this.#pinned.has(id) || (await isThere(this.dir(row.state))))) return row.state
    if (row) this.forget(id) // another process has deleted it
    if (!idForm.test(id)) return undefined
    const places = await Promise.all(
      (await directories(this.#ports.root)).map(async workspace_id =>
        (await isThere(join(this.#ports.root, workspace_id, id))) ? workspace_id : undefined
      )
    )
    for (const workspace_id of places) {
      if (workspace_id === undefined) continue
      const state = await this.#read(workspace_id, id)
      if (state) return this.#index(id, { state, mtime: -1 }).state
    }
    return undefined
  }

  /** Reads the facts from the disk again: another process may have changed them, or (undefined) deleted the session. */
  async refresh(state: SessionState): Promise<SessionState | undefined> {
    const fresh = await this.#read(state.workspace_id, state.id)
    return fresh && this.#index(state.id, { state: fresh, mtime: -1 }).state
  }

  /** Shows a session no more. */
  forget(id: string): void {
    this.#rows.delete(id)
    this.#sorted = undefined
  }

  /** Sessions of this home that are open in some process, were left behind by one that died, or were closed with work that waits. */
  async unfinished(): Promise<readonly string[]> {
    const found: string[] = []
    for (const workspace_id of await directories(this.#ports.root)) {
      for (const id of await directories(join(this.#ports.root, workspace_id))) {
        const dir = join(this.#ports.root, workspace_id, id)
        if (idForm.test(id) && ((await isThere(join(dir, 'lock'))) || (await isThere(join(dir, waitingFile))))) found.push(id)
      }
    }
    return found
  }

  /** Newest `updated_at` first, then id descending. */
  async list(): Promise<readonly SessionState[]> {
    if (performance.now() - this.#scanned >= this.#ports.scanMs) {
      this.#scanning ??= this.#scan().finally(() => {
        this.#scanning = undefined
      })
    }
    if (this.#scanning) await (this.#complete ? Promise.race([this.#scanning, timeout(listWaitMs)]) : this.#scanning)
    this.#sorted ??= [...this.#rows.values()].map(row => row.state).sort(newestFirst)
    return this.#sorted
  }

  /** Shows a changed state of a session that is loaded and owned here. */
  show(state: SessionState): void {
    this.#index(state.id, { state, mtime: -1 })
  }

  /** Resolves when the state is on disk. */
  async put(state: SessionState): Promise<void> {
    await this.#ports.store.put(documentId(state.workspace_id, state.id), state)
  }

  /** Shows a new session once it is on disk. */
  async create(state: SessionState): Promise<void> {
    await this.#ports.store.put(documentId(state.workspace_id, state.id), state)
    this.#index(state.id, { state, mtime: -1 })
  }

  /**
   * Shows a new session once its directory is whole: made under another name, which nobody takes for a session, and renamed. When `fill`
   * rejects nothing is left; what a dead process left, `removeUnfinished` takes away.
   */
  async createFilled(state: SessionState, fill: (dir: string) => Promise<void>): Promise<void> {
    const name = `${unfinishedPrefix}${state.id}`
    const dir = join(this.#ports.root, state.workspace_id, name)
    const lock = await acquireLock(`${dir}.lock`, {}) // first: without it the directory counts as left behind
    try {
      await mkdir(dir, { recursive: true, mode: 0o700 })
      await fill(dir)
      await this.#ports.storeAt(dir).put('state', state)
      await rename(dir, this.dir(state))
    } catch (error) {
      await rm(dir, { recursive: true, force: true, maxRetries: 3 })
      throw error
    } finally {
      await lock?.release()
    }
    this.#index(state.id, { state, mtime: -1 })
  }

  /** Directories of sessions that were being made by a process that is gone. */
  async removeUnfinished(): Promise<void> {
    for (const workspace_id of await directories(this.#ports.root)) {
      const names = await readdir(join(this.#ports.root, workspace_id)).catch(() => []) // it left while we looked
      const unfinished = names.filter(name => name.startsWith(unfinishedPrefix)).map(name => name.replace(/\.lock$/, ''))
      for (const name of new Set(unfinished)) {
        const dir = join(this.#ports.root, workspace_id, name)
        if (await lockHolder(`${dir}.lock`)) continue
        await rm(dir, { recursive: true, force: true, maxRetries: 3 })
        await rm(`${dir}.lock`, { force: true })
      }
    }
  }

  /** While pinned, memory is the truth: the session is loaded and owned here. */
  pin(id: string): void {
    this.#pinned.add(id)
  }

  unpin(id: string): void {
    this.#pinned.delete(id)
  }

  #index(id: string, row: Row): Row {
    this.#rows.set(id, row)
    this.#sorted = undefined
    return row
  }

  async #read(workspace_id: string, id: string): Promise<SessionState | undefined> {
    return (await this.#ports.store.get(documentId(workspace_id, id))) ?? (await this.#ports.rescue(workspace_id, id))
  }

  async #scan(): Promise<void> {
    const seen = new Set<string>()
    const found: { workspace_id: string; id: string }[] = []
    for (const workspace_id of await directories(this.#ports.root)) {
      for (const id of await directories(join(this.#ports.root, workspace_id))) {
        if (!idForm.test(id)) continue
        seen.add(id)
        if (!this.#pinned.has(id)) found.push({ workspace_id, id })
      }
    }
    let next = 0
    const worker = async () => {
      for (let item = found[next++]; item; item = found[next++]) await this.#compare(item.workspace_id, item.id)
    }
    await Promise.all(Array.from({ length: parallelReads }, worker))
    for (const id of this.#rows.keys()) {
      if (!seen.has(id) && !this.#pinned.has(id) && !(await this.#stillThere(id))) this.forget(id)
    }
    this.#scanned = performance.now()
    this.#complete = true
  }

  /** A session made while the scan ran is not in its listing. */
  async #stillThere(id: string): Promise<boolean> {
    const row = this.#rows.get(id)
    return row !== undefined && (await isThere(this.dir(row.state)))
  }

  async #compare(workspace_id: string, id: string): Promise<void> {
    const before = this.#rows.get(id)
    try {
      const mtime = await modified(join(this.#ports.root, workspace_id, id, 'state.json'))
      if (before && mtime !== undefined && before.mtime === mtime) return
      const state = await this.#read(workspace_id, id)
      // A change of our own that came while the file was read is newer than what was read.
      if (!state || this.#rows.get(id) !== before || this.#pinned.has(id)) return
      this.#index(id, { state, mtime: mtime ?? -1 })
    } catch (err) {
      this.#ports.log.warn({ err, session_id: id }, 'a session could not be read for the list')
    }
  }
}

function documentId(workspace_id: string, id: string): string {
  return `${workspace_id}/${id}/state`
}

function newestFirst(a: SessionState, b: SessionState): number {
  if (a.updated_at !== b.updated_at) return a.updated_at < b.updated_at ? 1 : -1
  return a.id < b.id ? 1 : a.id > b.id ? -1 : 0
}

async function directories(dir: string): Promise<string[]> {
  try {
    return (await readdir(dir, { withFileTypes: true })).filter(entry => entry.isDirectory()).map(entry => entry.name)
  } catch {
    return [] // no sessions yet, or the directory left while we looked
  }
}

export const isThere = async (path: string): Promise<boolean> => (await modified(path)) !== undefined

async function modified(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).mtimeMs
  } catch {
    return undefined // absent or out of reach: both mean "not here"
  }
}

function timeout(ms: number): Promise<void> {
  return new Promise(resolve => {
    setTimeout(resolve, ms).unref()
  })
}
