/** Sessions that are loaded (single-flight, one owner process per session): loads, changes, unloads and removes them. */
import { rm, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { AppError, LeaseLost, type Logger, SessionMoved, type Streams } from '../../kernel/index.ts'
import type { Catalog } from './catalog.ts'
import { busyElsewhere, SessionMissing } from './contract.ts'
import { isThere, waitingFile } from './disk.ts'
import { mainHeard } from './events.ts'
import { type IdleLimits, IdleSessions } from './idle.ts'
import type { Lease } from './lease.ts'
import { LiveSession, type LiveSessionPorts } from './live.ts'
import type { Owners } from './owners.ts'
import { discard, isNoSession, takeAway } from './removal.ts'
import type { SessionState } from './service.ts'
import { Steps } from './steps.ts'

export interface TablePorts extends IdleLimits {
  readonly catalog: Catalog
  readonly streams: Pick<Streams, 'backwards' | 'openForeign' | 'takeOver' | 'lost' | 'close' | 'remove' | 'subscribers'>
  readonly log: Logger
  /** Takes the session's lock; undefined while another live process holds it. */
  readonly lock: (dir: string) => Promise<Lease | undefined>
  readonly owners: Pick<Owners, 'of' | 'isFree' | 'wasLeft'>
  readonly live: Omit<LiveSessionPorts, 'show' | 'save' | 'idle' | 'failed'>
  /** A session that another process owns is read again when it was loaded longer ago than this. */
  readonly foreignMs: number
  /** What other servers should know of a session has changed: it was shown, loaded or closed, or (gone) deleted. */
  readonly changed?: (id: string, gone?: boolean) => void
  /** The state of a session that is not loaded was changed, under the lease of this number. */
  readonly patched?: (state: SessionState, fence: number) => void
}

/** So often a lock that seems free, and is not had, is tried. */
const maxTries = 100
const takeAgainMs = 10

export class SessionTable {
  /** Before anyone else sees the session. */
  readonly loading: Steps
  /** Before it is archived: its work ends here. */
  readonly archiving: Steps
  /** When it was archived, and goes on. */
  readonly restoring: Steps
  readonly #ports: TablePorts
  /** In order of use, the least recent first. */
  readonly #live = new Map<string, LiveSession>()
  readonly #loading = new Map<string, Promise<LiveSession>>()
  readonly #closing = new Map<string, Promise<void>>()
  /** What takes the data away, of sessions that are closed for good. */
  readonly #removals = new Map<string, (lock: Lease) => Promise<void>>()
  readonly #idle: IdleSessions
  #closed = false

  constructor(ports: TablePorts) {
    this.#ports = ports
    this.loading = new Steps(ports.log, 'loading')
    this.archiving = new Steps(ports.log, 'archiving')
    this.restoring = new Steps(ports.log, 'restoring')
    this.#idle = new IdleSessions({
      ...ports,
      sessions: this.#live,
      closing: () => this.#closing.size,
      used: (session, at) => this.#used(session, at),
      unload: id => this.unload(id)
    })
  }

  loaded(id: string): LiveSession | undefined {
    return this.#live.get(id)
  }

  /** The session if it is loaded here; one that its owner, another process, has deleted is let go of. */
  async stillThere(id: string): Promise<LiveSession | undefined> {
    const live = this.#live.get(id)
    if (!live || live.writable || (await isThere(live.dir))) return live
    if (this.#live.get(id) !== live) return await this.stillThere(id)
    this.#ports.catalog.forget(id)
    live.ends = true
    await this.unload(id)
    return undefined
  }

  isLoading(id: string): boolean {
    return this.#loading.has(id)
  }

  /** Nothing is loaded any more. */
  get closed(): boolean {
    return this.#closed
  }

  all(): readonly LiveSession[] {
    return [...this.#live.values()]
  }

  async load(id: string): Promise<LiveSession> {
    const live = this.#live.get(id)
    if (live) {
      const isUsable = !live.isMoved && (live.writable || !(await this.#outdated(live)))
      if (this.#live.get(id) !== live) return await this.load(id) // it was closed meanwhile, and is loaded anew, perhaps
      if (isUsable) return this.#used(live)
      await this.unload(id)
    }
    return await (this.#loading.get(id) ?? this.#loads(id, this.#load(id)))
  }

  /** Whoever wants the session meanwhile waits for the same. */
  #loads(id: string, work: Promise<LiveSession>): Promise<LiveSession> {
    const loading = work.finally(() => this.#loading.delete(id))
    this.#loading.set(id, loading)
    return loading
  }

  /** Another process owns it: true when that one is gone or may have changed it since. */
  async #outdated({ loadedAt, dir }: LiveSession): Promise<boolean> {
    return performance.now() - loadedAt >= this.#ports.foreignMs || (await this.#ports.owners.isFree(join(dir, 'lock')))
  }

  /**
   * Changes the persisted state of a session that is not loaded, without loading it; `live` does it for one that is. A session with work that
   * waits, or that was left open, is loaded, so that `live` can end that. Throws SessionMissing, and SessionBusy for one of another process.
   */
  async patch(id: string, change: (state: SessionState) => SessionState, live: (session: LiveSession) => Promise<unknown>): Promise<void> {
    await this.#closing.get(id)
    const known = this.#live.has(id) || this.#loading.has(id) ? undefined : await this.#ports.catalog.find(id)
    if (!known || (await isThere(join(this.#ports.catalog.dir(known), waitingFile))) || (await this.#ports.owners.wasLeft(known))) {
      const session = await this.load(id)
      try {
        return void (await live(session))
      } catch (error) {
        if (!session.writable || session.isMoved || this.#live.get(id) === session) throw error
        return await this.patch(id, change, live) // it was closed in between
      }
    }
    if (this.#live.has(id) || this.#loading.has(id) || this.#closing.has(id)) return await this.patch(id, change, live)
    const patching = this.#patch(known, change).finally(() => this.#closing.delete(id))
    const settled = patching.catch(() => undefined) // the caller hears it
    this.#closing.set(id, settled)
    await patching
  }

  async #patch(known: SessionState, change: (state: SessionState) => SessionState): Promise<void> {
    const { catalog } = this.#ports
    const dir = catalog.dir(known)
    const lock = await this.#ports.lock(dir)
    if (!lock) throw busyElsewhere()
    try {
      const state = await catalog.refresh(known)
      if (!state) throw new AppError(SessionMissing)
      const next = change(state)
      if (next !== state) {
        await catalog.change(next)
        this.#ports.patched?.(next, lock.fence)
      }
      await lock.release()
    } catch (error) {
      await lock.release()
      await this.#leftover(known.id, dir, error)
      throw error
    }
  }

  /** Closes slots, journal and lock of a session. A session that is wanted again meanwhile is loaded after that. */
  unload(id: string): Promise<void> {
    const live = this.#live.get(id)
    const closing = this.#closing.get(id)
    if (closing || !live) return closing ?? Promise.resolve()
    this.#live.delete(id)
    const done = this.#close(live).finally(() => this.#closing.delete(id))
    this.#closing.set(id, done)
    return done
  }

  /**
   * Ends the work of a session, closes it and takes its data away, while it is still ours: no process can open it meanwhile. Throws
   * SessionMissing, SessionBusy (another process owns it) and PersistenceFailed (then it is as before, closed).
   */
  async remove(id: string): Promise<void> {
    const session = await this.load(id)
    session.assertWritable()
    await this.archiving.run(session)
    const { catalog, streams } = this.#ports
    let removed: string | undefined
    let failure: unknown
    const take = async (lock: Lease) => {
      try {
        await lock.look() // it may be another server's by now
        session.gone()
        removed = await takeAway(session.dir, id)
        catalog.forget(id)
        this.#ports.changed?.(id, true)
      } catch (error) {
        session.ends = false
        failure = error
      }
    }
    if (this.#removals.has(id)) throw new AppError(SessionMissing)
    this.#removals.set(id, take)
    session.ends = true
    try {
      await this.unload(id)
    } finally {
      this.#removals.delete(id)
    }
    if (failure !== undefined) throw failure
    if (removed === undefined) return await this.remove(id) // somebody else has closed it in between
    await discard(removed, id, streams)
  }

  /** It is here, and is this server's. */
  has(id: string): boolean {
    const live = this.#live.get(id)
    return live?.writable === true && !live.isMoved
  }

  async closeAll(): Promise<void> {
    this.#closed = true
    this.#idle.stop()
    await Promise.allSettled(this.#loading.values())
    await Promise.all([...this.#live.keys()].map(id => this.unload(id)))
    await Promise.all(this.#closing.values())
  }

  /** Makes a session: its lock, its state on disk, then as one that is loaded. Nothing of it is shown when that fails. */
  create(state: SessionState): Promise<LiveSession> {
    return this.#loads(state.id, this.#made(state, this.#create(state)))
  }

  /** Loads a session whose directory was made just now. Nothing of it stays when that fails. */
  begin(state: SessionState): Promise<LiveSession> {
    return this.#made(state, this.load(state.id))
  }

  /** Whoever made it hears that there is none. */
  async #made(state: SessionState, opening: Promise<LiveSession>): Promise<LiveSession> {
    try {
      return await opening
    } catch (error) {
      if (error instanceof SessionMoved || error instanceof LeaseLost) throw error // it is another server's by now
      const { catalog, streams } = this.#ports
      const removed = await takeAway(catalog.dir(state), state.id).catch(() => undefined) // nothing is there, or the disk takes no change
      if (removed !== undefined) {
        catalog.forget(state.id)
        await discard(removed, state.id, streams).catch(() => undefined) // the next start discards the rest
      }
      throw error
    }
  }

  async #create(state: SessionState): Promise<LiveSession> {
    const dir = this.#ports.catalog.dir(state)
    const lock = await this.#ports.lock(dir)
    try {
      await this.#ports.catalog.change(state)
    } catch (error) {
      await lock?.release()
      await rm(dir, { recursive: true, force: true }).catch(() => undefined) // the first error tells more
      throw error
    }
    return await this.#open(state, dir, lock)
  }

  async #load(id: string): Promise<LiveSession> {
    await this.#closing.get(id)
    if (this.#closed) throw new Error('the sessions pack is closing')
    const known = await this.#ports.catalog.find(id)
    if (!known) throw new AppError(SessionMissing)
    const dir = this.#ports.catalog.dir(known)
    const lock = await this.#take(id, dir)
    return await this.#open(known, dir, lock, async () => {
      const fresh = await this.#ports.catalog.refresh(known)
      if (!fresh) throw new AppError(SessionMissing)
      return fresh
    })
  }

  /**
   * The lock of a session; undefined: a process that cannot be asked has it. Throws SessionMoved for one that can. Whoever had it may have
   * gone, or lost it, a moment ago: then it is tried again, because nobody would hear anything of a session that is only read here.
   */
  async #take(id: string, dir: string): Promise<Lease | undefined> {
    for (let tries = maxTries; ; tries--) {
      const lock = await this.#ports.lock(dir)
      if (lock) return lock
      if (await this.#ports.owners.of(id)) throw new SessionMoved()
      if (tries === 0 || !(await this.#ports.owners.isFree(join(dir, 'lock')))) return undefined
      await delay(takeAgainMs)
    }
  }

  /**
   * Opens what was locked, or belongs to another process; `read` answers the state as it is under the lock. When that fails, all of it is closed
   * and the lock goes. Throws SessionMoved when another server takes it meanwhile.
   */
  async #open(known: SessionState, dir: string, lock: Lease | undefined, read?: () => Promise<SessionState>): Promise<LiveSession> {
    const { id } = known
    let session: LiveSession | undefined
    try {
      session = this.#make(read ? await read() : known, dir, lock?.fence)
      await this.#begin(session, lock, read !== undefined)
      return session
    } catch (error) {
      if (session) await this.#close(session)
      await lock?.release()
      await this.#leftover(id, dir, error)
      throw session?.isMoved ? new SessionMoved() : error
    }
  }

  async #begin(session: LiveSession, lock: Lease | undefined, isOld: boolean): Promise<void> {
    const { id, dir } = session
    if (!isOld) session.work.heard({ work: undefined, status: 'idle' })
    if (lock) {
      session.own(async () => {
        await this.#removals.get(id)?.(lock)
        await session.over()
        this.#ports.catalog.unpin(id) // first: what the next owner tells is newer
        await lock.release()
      })
      this.#ports.catalog.pin(id)
    }
    await (lock ? this.#ports.streams.takeOver(id, lock) : this.#ports.streams.openForeign(id))
    lock?.onLost(() => void this.#lost(session))
    if (!lock && !(await isThere(dir))) {
      await this.#ports.streams.remove(id) // its owner deletes it right now
      throw new AppError(SessionMissing)
    }
    if (isOld && !session.agent('main'))
      session.recallMain(await mainHeard(this.#ports.streams, id), await isThere(join(dir, 'agents', 'main')))
    await this.loading.run(session)
    if (lock && isOld)
      await rm(join(dir, waitingFile), { force: true }).catch(err =>
        this.#ports.log.warn({ err, session_id: id }, 'a mark could not be removed')
      )
    await lock?.check()
    this.#live.set(id, session)
    if (lock) this.#ports.changed?.(id)
    this.#idle.sweep()
  }

  /** Deleted by another process a moment ago: the lock has made its directory again. */
  async #leftover(id: string, dir: string, error: unknown): Promise<void> {
    if (!isNoSession(error)) return
    this.#ports.catalog.forget(id)
    await rmdir(dir).catch(() => undefined) // not there, or something is in it
  }

  #make(state: SessionState, dir: string, fence: number | undefined): LiveSession {
    const { catalog, live, log } = this.#ports
    return new LiveSession(state, dir, fence, {
      ...live,
      show: next => {
        catalog.show(next)
        this.#ports.changed?.(next.id)
      },
      save: next => catalog.put(next),
      idle: () => this.#idle.sweep(),
      failed: err => log.error({ err, session_id: state.id }, 'session state could not be saved')
    })
  }

  async #close(session: LiveSession): Promise<void> {
    const errors: unknown[] = []
    await session.settled()
    for (const agent of session.agents()) errors.push(...(await agent.closeHost()))
    await session.settled()
    if (session.writable) await this.#ports.streams.close(session.id).catch(error => errors.push(error))
    if (session.hasLeft && !session.isMoved && !this.#removals.has(session.id))
      await writeFile(join(session.dir, waitingFile), '', { mode: 0o600 }).catch(error => errors.push(error))
    errors.push(...(await session.closeHost()))
    // What its slots said as they went was said to a stream that knows whose it is.
    if (!session.writable && this.#ports.streams.subscribers(session.id) === 0) await this.#ports.streams.close(session.id)
    if (session.writable && !session.isMoved && !this.#removals.has(session.id)) this.#ports.changed?.(session.id)
    for (const err of errors) this.#ports.log.warn({ err, session_id: session.id }, 'closing a session met an error')
  }

  /** Another server has taken it over, because this one stood still: it is let go of, and its clients go on there. */
  async #lost(session: LiveSession): Promise<void> {
    this.#ports.log.warn({ session_id: session.id }, 'another server has taken over a session while this one stood still')
    session.gone({ moved: true })
    await this.#ports.streams.lost(session.id)
    this.#ports.catalog.unpin(session.id)
    if (this.#live.get(session.id) === session) await this.unload(session.id)
  }

  #used(session: LiveSession, at = performance.now()): LiveSession {
    session.usedAt = at
    this.#live.delete(session.id)
    this.#live.set(session.id, session)
    return session
  }
}
