/**
 * All sessions of the home, without loading them: an index of the `state.json` files, kept over the end of the process (`IndexFile`) and by
 * this process's own changes, and compared with the disk now and then, because other server processes share the home.
 */
import { type Stats, statSync } from 'node:fs'
import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { acquireLock, type DocumentStore, type Logger, lockHolder, stampAt, yieldToLoop } from '../../kernel/index.ts'
import { IndexFile } from './index-file.ts'
import type { SessionState } from './service.ts'

const parallelReads = 32
/** A list waits so long for what an earlier server left open. */
const takeOverMs = 2000
/** A list waits so long for the comparison with the disk, then answers from the index; the comparison goes on. */
const listWaitMs = 50
/** Where nobody else changes sessions, every file is looked at with each tenth comparison. */
const scansPerWhole = 10
/** After a list the index is kept fresh for so long, so that the next one need not wait. */
const demandMs = 30_000
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
  /** See `Leases.elsewhere`. */
  readonly leasesElsewhere: () => Promise<string | undefined>
  /** Resolves when the sessions that an earlier server left open are loaded: before that their state files may lack what only their journals have. */
  readonly takenOver: Promise<unknown>
  /** Rebuilds the facts of a session whose state file was lost or damaged; undefined when there is nothing to go by. */
  readonly rescue: (workspace_id: string, id: string) => Promise<SessionState | undefined>
}

interface Row {
  state: SessionState
  /** Of the file that holds `state`; empty while that is not known to be on disk. */
  stamp: string
  /** From the index file, not compared with the state file yet: it may have changed since. */
  unproven?: boolean
}

export class Catalog {
  readonly #ports: CatalogPorts
  readonly #file: IndexFile
  readonly #rows = new Map<string, Row>()
  readonly #counts = new Map<string, number>()
  /** What an earlier server left open is loaded. */
  #takenOver = false
  readonly #pinned = new Set<string>()
  /** Newest first, unless `#moved`; may hold rows that went, no more of them than there are rows. */
  #order: Row[] = []
  #moved = false
  #listed: readonly SessionState[] | undefined
  #scanned = Number.NEGATIVE_INFINITY
  /** Of the last comparison: who might have changed sessions before it, and the directories of the workspaces. */
  #elsewhere: string | undefined
  #stamps: ReadonlyMap<string, string> = new Map()
  /** When every file was looked at. */
  #allSeen = Number.NEGATIVE_INFINITY
  #scanning: Promise<void> | undefined
  #complete = false
  #wantedUntil = 0
  #timer: NodeJS.Timeout | undefined
  #closed = false

  constructor(ports: CatalogPorts) {
    this.#ports = ports
    this.#file = new IndexFile(join(ports.root, '.index.jsonl'), ports.log, () => this.#known())
  }

  /** `<home>/sessions/<workspace_id>/<id>` */
  dir(state: SessionState): string {
    return join(this.#ports.root, state.workspace_id, state.id)
  }

  /** The file that says which server has it. */
  lock(state: SessionState): string {
    return join(this.dir(state), 'lock')
  }

  /** Facts of one session from the index, else from the disk. */
  async find(id: string): Promise<SessionState | undefined> {
    const row = this.#rows.get(id)
    const there = row && (this.#pinned.has(id) || isThere(this.dir(row.state)))
    if (there && !row.unproven) return row.state
    if (row && !there) this.forget(id) // another process has deleted it
    if (!idForm.test(id)) return undefined
    for (const workspace_id of await directories(this.#ports.root)) {
      if (!isThere(join(this.#ports.root, workspace_id, id))) continue
      const state = await this.#read(workspace_id, id)
      if (state) return this.#index(state)
    }
    return undefined
  }

  /** Reads the facts from the disk again: another process may have changed them, or (undefined) deleted the session. */
  async refresh(state: SessionState): Promise<SessionState | undefined> {
    const fresh = await this.#read(state.workspace_id, state.id)
    return fresh && this.#index(fresh)
  }

  /** Shows a session no more. */
  forget(id: string): void {
    const row = this.#rows.get(id)
    if (!row) return
    this.#rows.delete(id)
    const left = (this.#counts.get(row.state.workspace_id) ?? 1) - 1
    if (left > 0) this.#counts.set(row.state.workspace_id, left)
    else this.#counts.delete(row.state.workspace_id)
    this.#moved = true
    this.#listed = undefined
    if (this.#order.length > 2 * this.#rows.size) this.#order = this.#order.filter(each => this.#isShown(each))
  }

  #isShown(row: Row): boolean {
    return this.#rows.get(row.state.id) === row
  }

  /** Sessions of this home that are open in some process, were left behind by one that died, or were closed with work that waits. */
  async unfinished(): Promise<readonly string[]> {
    const found: string[] = []
    for (const workspace_id of await directories(this.#ports.root)) {
      for (const id of await names(join(this.#ports.root, workspace_id))) {
        const dir = join(this.#ports.root, workspace_id, id)
        if (idForm.test(id) && (isThere(join(dir, 'lock')) || isThere(join(dir, waitingFile)))) found.push(id)
        await yieldToLoop()
      }
    }
    return found
  }

  /** Newest `updated_at` first, then id descending. The same array as long as nothing changes. */
  async list(): Promise<readonly SessionState[]> {
    await this.#fresh()
    if (!this.#listed) {
      if (this.#moved) this.#order = this.#order.filter(row => this.#isShown(row)).sort(newestFirst)
      this.#moved = false
      this.#listed = this.#order.map(row => row.state)
    }
    return this.#listed
  }

  /** How many sessions each workspace has; changes with them. */
  async counts(): Promise<ReadonlyMap<string, number>> {
    await this.#fresh()
    return this.#counts
  }

  /** Reads the index, so that the first list need not wait for it. */
  async warm(): Promise<void> {
    this.#compareAll()
    await this.#scanning
  }

  /** Writes down what is known. */
  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    await this.#scanning?.catch(() => undefined) // whoever waits for it hears
    await this.#file.flush()
  }

  /** Shows a changed state of a session that is loaded and owned here. */
  show(state: SessionState): void {
    this.#index(state)
  }

  /** Shows the state of a session of another server, as that one tells it. */
  showForeign(state: SessionState): void {
    if (!this.#pinned.has(state.id)) this.#index(state)
  }

  /** Another server has deleted it. */
  forgetForeign(id: string): void {
    if (!this.#pinned.has(id)) this.forget(id)
  }

  /** Resolves when the state is on disk; the caller owns the session. */
  async put(state: SessionState): Promise<void> {
    await this.#ports.store.put(documentId(state.workspace_id, state.id), state, { guarded: true })
    const row = this.#rows.get(state.id)
    if (row?.state === state) row.stamp = this.#stampOf(state.workspace_id, state.id)
  }

  /** Shows a new session, or a change of one that is not loaded, once it is on disk; the caller owns the session. */
  async change(state: SessionState): Promise<void> {
    await this.#ports.store.put(documentId(state.workspace_id, state.id), state, { guarded: true })
    const stamp = this.#stampOf(state.workspace_id, state.id)
    this.#index(state, stamp)
    this.#file.keep({ state, stamp })
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
      await this.#ports.storeAt(dir).put('state', state, { guarded: true })
      await rename(dir, this.dir(state))
    } catch (error) {
      await rm(dir, { recursive: true, force: true, maxRetries: 3 })
      throw error
    } finally {
      await lock?.release()
    }
    this.#index(state, this.#stampOf(state.workspace_id, state.id))
  }

  /** Directories of sessions that were being made by a process that is gone. */
  async removeUnfinished(): Promise<void> {
    for (const workspace_id of await directories(this.#ports.root)) {
      const found = await names(join(this.#ports.root, workspace_id))
      const unfinished = found.filter(name => name.startsWith(unfinishedPrefix)).map(name => name.replace(/\.lock$/, ''))
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
    if (!this.#pinned.delete(id)) return
    const row = this.#rows.get(id)
    if (row && row.stamp !== '') this.#file.keep({ ...row })
  }

  /** `stamp`: of the file that holds the state. */
  #index(state: SessionState, stamp = ''): SessionState {
    const row = this.#rows.get(state.id)
    this.#listed = undefined
    if (row) {
      this.#moved ||= row.state.updated_at !== state.updated_at
      Object.assign(row, { state, stamp, unproven: false })
      return state
    }
    const fresh = { state, stamp }
    this.#rows.set(state.id, fresh)
    this.#order.push(fresh)
    this.#moved = true
    this.#counts.set(state.workspace_id, (this.#counts.get(state.workspace_id) ?? 0) + 1)
    return state
  }

  /** Those whose files are as the index says. */
  *#known(): Iterable<Row> {
    for (const row of this.#rows.values()) if (row.stamp !== '' && !this.#pinned.has(row.state.id)) yield row
  }

  async #afterTakeOver(takenOver: Promise<unknown>): Promise<void> {
    await takenOver
    this.#takenOver = true
  }

  /** Compares with the disk when that was long ago; waits for it, at the first time to its end. */
  async #fresh(): Promise<void> {
    const { scanMs, takenOver } = this.#ports
    if (!this.#takenOver) await Promise.race([this.#afterTakeOver(takenOver), timeout(takeOverMs)])
    // One that began before may have passed what came since.
    if (scanMs === 0) await this.#scanning
    const age = performance.now() - this.#scanned
    if (age >= scanMs) this.#compareAll()
    this.#wantedUntil = performance.now() + demandMs
    if (!this.#complete) await this.#scanning
    else if (this.#scanning && (scanMs === 0 || age >= 2 * scanMs)) await Promise.race([this.#scanning, timeout(listWaitMs)])
  }

  #compareAll(): void {
    if (this.#closed) return
    this.#scanning ??= this.#scan().finally(() => {
      this.#scanning = undefined
      if (this.#closed || this.#ports.scanMs === 0 || performance.now() > this.#wantedUntil) return
      clearTimeout(this.#timer)
      this.#timer = setTimeout(() => void this.#compareAgain(), this.#ports.scanMs).unref()
    })
  }

  async #compareAgain(): Promise<void> {
    this.#compareAll()
    await this.#scanning?.catch(err => this.#ports.log.warn({ err }, 'the sessions on disk could not be compared with the list'))
  }

  async #read(workspace_id: string, id: string): Promise<SessionState | undefined> {
    return (await this.#ports.store.get(documentId(workspace_id, id))) ?? (await this.#ports.rescue(workspace_id, id))
  }

  /**
   * While no other server has changed sessions since the last comparison, a workspace whose directory is as it was is left out: files there changed
   * by hand alone, which is seen some comparisons later. Stamps of files are asked synchronously: 3 µs each, where the thread pool would take
   * 50; it yields to the loop in between.
   */
  async #scan(): Promise<void> {
    if (!this.#complete) await this.#recall()
    const began = performance.now()
    const elsewhere = await this.#ports.leasesElsewhere()
    const isWhole =
      elsewhere === undefined ||
      elsewhere !== this.#elsewhere ||
      began - this.#allSeen >= this.#ports.scanMs * scansPerWhole ||
      !this.#complete
    const seen = new Set<string>()
    const stamps = new Map<string, string>()
    const same = new Set<string>()
    const changed: { workspace_id: string; id: string; stamp: string }[] = []
    for (const workspace_id of await directories(this.#ports.root)) {
      const dirStamp = await stampAt(join(this.#ports.root, workspace_id)) // before the names, as the stamps of files before their content
      stamps.set(workspace_id, dirStamp)
      if (!isWhole && this.#stamps.get(workspace_id) === dirStamp) {
        same.add(workspace_id)
        continue
      }
      for (const id of await names(join(this.#ports.root, workspace_id))) {
        const others = yieldToLoop()
        if (others) await others // awaiting nothing would cost as much as a stamp, 10,000 times
        if (!idForm.test(id)) continue
        seen.add(id)
        if (this.#pinned.has(id)) continue
        const stamp = this.#stampOf(workspace_id, id)
        const row = this.#rows.get(id)
        if (stamp === '' || row?.stamp !== stamp) changed.push({ workspace_id, id, stamp })
        else row.unproven = false
      }
    }
    let next = 0
    const worker = async () => {
      for (let item = changed[next++]; item; item = changed[next++]) await this.#compare(item.workspace_id, item.id, item.stamp)
    }
    await Promise.all(Array.from({ length: parallelReads }, worker))
    for (const [id, row] of [...this.#rows]) {
      if (same.has(row.state.workspace_id) || seen.has(id) || this.#pinned.has(id)) continue
      if (!isThere(this.dir(row.state))) this.forget(id)
    }
    this.#elsewhere = elsewhere
    this.#stamps = stamps
    if (isWhole) this.#allSeen = began
    this.#scanned = performance.now()
    this.#complete = true
  }

  /** What the process before knew; stamps tell what of it still holds. */
  async #recall(): Promise<void> {
    for (const [id, { state, stamp }] of await this.#file.read()) {
      if (this.#rows.has(id)) continue
      this.#index(state, stamp)
      const row = this.#rows.get(id)
      if (row) row.unproven = true
    }
  }

  async #compare(workspace_id: string, id: string, stamp: string): Promise<void> {
    const before = this.#rows.get(id)?.state
    try {
      const state = await this.#read(workspace_id, id)
      // A change of our own that came while the file was read is newer than what was read.
      if (!state || this.#rows.get(id)?.state !== before || this.#pinned.has(id)) return
      this.#index(state, stamp)
      if (stamp !== '') this.#file.keep({ state, stamp })
    } catch (err) {
      this.#ports.log.warn({ err, session_id: id }, 'a session could not be read for the list')
    }
  }

  #stampOf(workspace_id: string, id: string): string {
    const found = statNow(`${this.#ports.root}/${workspace_id}/${id}/state.json`) // without `join`, which would take its part of each comparison
    return found?.isFile() ? `${found.ino}.${found.size}.${found.mtimeMs}` : ''
  }
}

function documentId(workspace_id: string, id: string): string {
  return `${workspace_id}/${id}/state`
}

function newestFirst({ state: a }: Row, { state: b }: Row): number {
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

const names = (dir: string): Promise<string[]> => readdir(dir).catch(() => []) // no sessions yet, or the directory left while we looked

/** Synchronous, as `#scan` says why. */
export const isThere = (path: string): boolean => statNow(path) !== undefined

function statNow(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch {
    return undefined // out of reach, which means "not here" as well
  }
}

function timeout(ms: number): Promise<void> {
  return new Promise(resolve => {
    setTimeout(resolve, ms).unref()
  })
}
