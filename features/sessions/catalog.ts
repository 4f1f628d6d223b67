/**
 * All sessions of the home, without loading them: an index of the `state.json` files, kept over the end of the process (`IndexFile`) and by
 * this process's own changes, and compared with the disk now and then (`Comparison`).
 */
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type DocumentStore, type Logger, yieldToLoop } from '../../kernel/index.ts'
import { Comparison } from './comparison.ts'
import { directories, directoriesIn, documentId, isSessionId, isThere, names, stateStamp, waitingFile } from './disk.ts'
import { makeFilled } from './filling.ts'
import { IndexFile } from './index-file.ts'
import { KnownSessions } from './known-sessions.ts'
import type { SessionState } from './service.ts'

/** A list waits so long for what an earlier server left open. */
const takeOverMs = 2000
/** A list waits so long for the comparison with the disk, then answers from the index; the comparison goes on. */
const listWaitMs = 50
/** After a list the index is kept fresh for so long, so that the next one need not wait. */
const demandMs = 30_000

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

export class Catalog {
  readonly #ports: CatalogPorts
  readonly #known = new KnownSessions()
  readonly #file: IndexFile
  readonly #comparison: Comparison
  /** What an earlier server left open is loaded. */
  #takenOver = false
  #comparing: Promise<void> | undefined
  #wantedUntil = 0
  #timer: NodeJS.Timeout | undefined
  #closed = false

  constructor(ports: CatalogPorts) {
    this.#ports = ports
    this.#file = new IndexFile(join(ports.root, '.index.jsonl'), ports.log, () => this.#known.saved())
    this.#comparison = new Comparison({ ...ports, read: (workspace_id, id) => this.#read(workspace_id, id) }, this.#known, this.#file)
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
    const row = this.#known.row(id)
    const there = row && (this.#known.isPinned(id) || (await isThere(this.dir(row.state))))
    if (there && !row.unproven) return row.state
    if (row && !there && this.#known.row(id) === row) this.forgetForeign(id) // another process has deleted it
    if (!isSessionId(id)) return undefined
    for (const workspace_id of await directoriesIn(this.#ports.root)) {
      if (!(await isThere(join(this.#ports.root, workspace_id, id)))) continue
      const before = this.#known.copy(id)
      const state = await this.#read(workspace_id, id)
      if (state) return this.#known.takeRead(before, state) ? state : this.#known.row(id)?.state
    }
    return undefined
  }

  /** Reads the facts from the disk again: another process may have changed them, or (undefined) deleted the session. */
  async refresh(state: SessionState): Promise<SessionState | undefined> {
    const fresh = await this.#read(state.workspace_id, state.id)
    return fresh && this.#known.take(fresh)
  }

  /** Sessions of this home that are open in some process, were left behind by one that died, or were closed with work that waits. */
  async unfinished(): Promise<readonly string[]> {
    const found: string[] = []
    for (const workspace_id of await directories(this.#ports.root)) {
      for (const id of await names(join(this.#ports.root, workspace_id))) {
        const dir = join(this.#ports.root, workspace_id, id)
        const isLeft = async (file: string) => await isThere(join(dir, file), this.#ports.root).catch(() => true) // who looks closer finds out
        if (isSessionId(id) && ((await isLeft('lock')) || (await isLeft(waitingFile)))) found.push(id)
        await yieldToLoop()
      }
    }
    return found
  }

  /** Newest `updated_at` first, then id descending. The same array as long as nothing changes. */
  async list(): Promise<readonly SessionState[]> {
    await this.#fresh()
    return this.#known.list()
  }

  /** How many sessions each workspace has; changes with them. */
  async counts(): Promise<ReadonlyMap<string, number>> {
    await this.#fresh()
    return this.#known.counts
  }

  /** Reads the index, so that the first list need not wait for it. */
  async warm(): Promise<void> {
    this.#compare()
    await this.#comparing
  }

  /** Writes down what is known. */
  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    await this.#comparing?.catch(() => undefined) // whoever waits for it hears
    await this.#file.flush()
  }

  /** Shows a changed state of a session that is loaded and owned here. */
  show(state: SessionState): void {
    this.#known.take(state)
  }

  /** Shows a session no more. */
  forget(id: string): void {
    this.#known.forget(id)
  }

  /** Shows the state of a session of another server, as that one tells it. */
  showForeign(state: SessionState): void {
    if (!this.#known.isPinned(state.id)) this.#known.take(state)
  }

  /** Another server has deleted it. */
  forgetForeign(id: string): void {
    if (!this.#known.isPinned(id)) this.#known.forget(id)
  }

  /** Resolves when the state is on disk; the caller owns the session. */
  async put(state: SessionState): Promise<void> {
    await this.#ports.store.put(documentId(state.workspace_id, state.id), state, { guarded: true })
    const stamp = await this.#stampOf(state)
    const row = this.#known.row(state.id)
    if (row?.state === state) row.stamp = stamp
  }

  /** Shows a new session, or a change of one that is not loaded, once it is on disk; the caller owns the session. */
  async change(state: SessionState): Promise<void> {
    await this.#ports.store.put(documentId(state.workspace_id, state.id), state, { guarded: true })
    const stamp = await this.#stampOf(state)
    this.#known.take(state, stamp)
    this.#file.keep({ state, stamp })
  }

  /** Shows a new session once its directory is whole: `fill` puts files into it, beside the state. When that rejects nothing is left. */
  async createFilled(state: SessionState, fill: (dir: string) => Promise<void>): Promise<void> {
    await makeFilled(join(this.#ports.root, state.workspace_id), state.id, async dir => {
      await fill(dir)
      await this.#ports.storeAt(dir).put('state', state, { guarded: true })
    })
    this.#known.take(state, await this.#stampOf(state))
  }

  /** While pinned, memory is the truth: the session is loaded and owned here. */
  pin(id: string): void {
    this.#known.pin(id)
  }

  unpin(id: string): void {
    const row = this.#known.unpin(id) ? this.#known.row(id) : undefined
    if (row && row.stamp !== '') this.#file.keep({ ...row })
  }

  /** Compares with the disk when that was long ago; waits for it, at the first time to its end. */
  async #fresh(): Promise<void> {
    const { scanMs, takenOver } = this.#ports
    if (!this.#takenOver) await Promise.race([this.#afterTakeOver(takenOver), delay(takeOverMs, undefined, { ref: false })])
    // One that began before may have passed what came since.
    if (scanMs === 0) await this.#comparing
    const age = performance.now() - this.#comparison.endedAt
    if (age >= scanMs) this.#compare()
    this.#wantedUntil = performance.now() + demandMs
    if (!this.#comparison.isComplete) await this.#comparing
    else if (this.#comparing && (scanMs === 0 || age >= 2 * scanMs))
      await Promise.race([this.#comparing, delay(listWaitMs, undefined, { ref: false })])
  }

  async #afterTakeOver(takenOver: Promise<unknown>): Promise<void> {
    await takenOver
    this.#takenOver = true
  }

  /** Unless one is under way. It comes again as long as somebody looks at lists. */
  #compare(): void {
    if (this.#closed) return
    if (this.#comparing) return
    this.#comparing = this.#comparison.run().finally(() => {
      this.#comparing = undefined
      if (this.#closed || this.#ports.scanMs === 0 || performance.now() > this.#wantedUntil) return
      clearTimeout(this.#timer)
      this.#timer = setTimeout(() => this.#compare(), this.#ports.scanMs).unref()
    })
    // Not everybody who asks waits for it.
    this.#comparing.catch(err => this.#ports.log.warn({ err }, 'the sessions on disk could not be compared with the list'))
  }

  async #read(workspace_id: string, id: string): Promise<SessionState | undefined> {
    return (await this.#ports.store.get(documentId(workspace_id, id))) ?? (await this.#ports.rescue(workspace_id, id))
  }

  #stampOf({ workspace_id, id }: SessionState): string | Promise<string> {
    return stateStamp(this.#ports.root, workspace_id, id)
  }
}
