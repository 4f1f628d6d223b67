/**
 * One kv database per home, used by one server of it after the other: whoever holds `<home>/server/kv.lock` has it open. It is given back
 * after a second without use, when the disk refused a write, and soon when another one waits for it, which leaves `kv.wanted` beside; a process
 * that dies loses it at once.
 * Two kernels of one process take turns as well: a second open of a LevelDB directory inside one process, although refused, would drop the
 * process's own file lock.
 */
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { AppError, PersistenceFailed } from '../errors.ts'
import { late, waitAtMost } from '../lifecycle/wait.ts'
import type { Logger } from '../log/log.ts'
import { ensureDir, removeFile } from './files.ts'
import { KvEngine } from './kv-engine.ts'
import { acquireLock, type Lock } from './lock.ts'
import { notSaved } from './refused.ts'

interface KvTimes {
  /** Longest time a request may take, waiting for other processes included. */
  readonly patienceMs: number
  /** The database is closed when it was not used for so long. */
  readonly idleMs: number
}
const usual: KvTimes = { patienceMs: 10_000, idleMs: 1000 }
/** So often whoever has it looks whether another process wants it. */
const lookMs = 20
/** Those who wait try to take it at least so often; whoever has given it back tries later. */
const tryMs = 25
/** What may wait for the database and its disk, in UTF-16 units, before requests are refused. */
const waitingChars = 64 * 1024 * 1024

interface Opened {
  readonly engine: KvEngine
  readonly lock: Lock
}

/** The database while this process has it, or waits for it. */
interface Holding {
  readonly opened: Promise<Opened>
  /** Requests that use it or wait for it. */
  readonly users: Set<Promise<unknown>>
  /** When the last of them came or was answered. */
  usedAt: number
}

export class SharedKv {
  readonly #dir: string
  readonly #log: Pick<Logger, 'warn'>
  readonly #times: KvTimes
  #holding: Holding | undefined
  /** The one before is being given back. */
  #leaving: Promise<void> = Promise.resolve()
  #timer: NodeJS.Timeout | undefined
  #waiting = 0
  #closed = false

  constructor(dir: string, log: Pick<Logger, 'warn'>, times = usual) {
    this.#dir = dir
    this.#log = log
    this.#times = times
  }

  /**
   * Works with the database, in the order of the calls. Throws PersistenceFailed when that is not through within 10 s; a write may then have
   * happened or not. `chars`: what the request holds in memory meanwhile.
   */
  async use<T>(work: (engine: KvEngine) => Promise<T>, chars = 0): Promise<T> {
    if (this.#closed) throw new AppError(PersistenceFailed, { message: 'storage is closed' })
    if (this.#waiting > 0 && this.#waiting + chars > waitingChars) {
      throw new AppError(PersistenceFailed, { message: 'kv database: the disk does not keep up' })
    }
    this.#waiting += chars
    this.#holding ??= this.#take()
    const holding = this.#holding
    const using = holding.opened.then(({ engine }) =>
      work(engine).finally(() => {
        if (engine.refused && this.#holding === holding) this.#giveBack()
      })
    )
    const done = () => {
      this.#waiting -= chars
      holding.users.delete(using)
      holding.usedAt = performance.now()
    }
    holding.users.add(using)
    holding.usedAt = performance.now()
    using.then(done, done)
    try {
      const { patienceMs } = this.#times
      const answer = await waitAtMost(using, patienceMs)
      if (answer !== late) return answer
      throw new AppError(PersistenceFailed, { message: `the kv database did not answer within ${patienceMs} ms` })
    } catch (error) {
      throw notSaved('kv record', error)
    }
  }

  /** Answers what was asked, and lets the next process have it. Later requests are refused. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.allSettled(this.#holding?.users ?? []) // with patience, should another process have it
    this.#giveBack()
    await this.#leaving
  }

  #take(): Holding {
    const before = this.#leaving.catch(() => undefined) // what went wrong then shows when it is opened
    const holding: Holding = { opened: before.then(() => this.#open(holding)), users: new Set(), usedAt: 0 }
    const look = () => {
      const isIdle = holding.users.size === 0 && performance.now() - holding.usedAt > this.#times.idleMs
      if (isIdle || this.#isWanted) this.#giveBack()
    }
    holding.opened.then(
      () => {
        if (this.#holding === holding) this.#timer = setInterval(look, lookMs).unref()
      },
      () => {
        // The next request tries again from the start.
        if (this.#holding === holding) this.#holding = undefined
      }
    )
    return holding
  }

  async #open(holding: Holding): Promise<Opened> {
    await ensureDir(this.#dir)
    for (let said = false; ; said = true) {
      const lock = await acquireLock(join(this.#dir, 'kv.lock'))
      if (lock && said) await removeFile(this.#wantedPath).catch(() => undefined) // then it is given back once for nobody
      if (lock) return this.#openUnder(lock)
      if (performance.now() - holding.usedAt > this.#times.patienceMs)
        throw new AppError(PersistenceFailed, { message: 'another server does not give the kv database back' })
      if (!this.#isWanted) await writeFile(this.#wantedPath, '', { mode: 0o600 })
      await delay(tryMs * (0.2 + Math.random() * 0.8))
    }
  }

  async #openUnder(lock: Lock): Promise<Opened> {
    try {
      return { engine: await KvEngine.open(join(this.#dir, 'kv'), this.#log), lock }
    } catch (error) {
      await lock.release()
      throw error
    }
  }

  /** Who asks from here on takes the database anew, behind the others. */
  #giveBack(): void {
    const holding = this.#holding
    if (!holding) return
    this.#holding = undefined
    clearInterval(this.#timer)
    this.#leaving = this.#leave(holding)
    this.#leaving.catch(() => undefined) // whoever closes hears of it
  }

  async #leave({ opened, users }: Holding): Promise<void> {
    const held = await opened.catch(() => undefined) // who asked heard of it
    if (!held) return
    await Promise.allSettled(users)
    const wanted = this.#isWanted
    try {
      await held.engine.close()
      if (wanted) await removeFile(this.#wantedPath)
    } finally {
      await held.lock.release()
    }
    if (wanted && !this.#closed) await delay(tryMs) // those who wait come first
  }

  get #wantedPath(): string {
    return join(this.#dir, 'kv.wanted')
  }

  get #isWanted(): boolean {
    return existsSync(this.#wantedPath)
  }
}
