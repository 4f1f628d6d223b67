/**
 * One kv database per home, shared by every server process of it. The process that holds `<home>/server/kv.lock` owns the database; the
 * others send their requests to it. When the owner ends, however it ends, the next request makes another process the owner.
 *
 * Within a process there is one object per directory, whatever number of kernels use it: a second open of a LevelDB directory inside one
 * process, although refused, drops the process's file lock and lets another process write beside it.
 */
import { randomUUID } from 'node:crypto'
import { realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { AppError, PersistenceFailed } from '../errors.ts'
import { late, waitAtMost } from '../lifecycle/wait.ts'
import type { Logger } from '../log/log.ts'
import { ensureDir, notSaved } from './files.ts'
import { KvEngine, type KvReply, type KvRequest, type WriteId } from './kv-engine.ts'
import { KvGuest, KvOwner, OwnerGone } from './kv-link.ts'
import { acquireLock, type Lock } from './lock.ts'

/** Longest time a request may take, changes of the owner included. */
const patienceMs = 10_000

type Role = KvOwner | KvGuest

export class SharedKv {
  readonly #dir: string
  readonly #log: Pick<Logger, 'warn'>
  readonly #patienceMs: number
  readonly #client = randomUUID()
  /** Numbers of the requests under way, lowest first. */
  readonly #unanswered = new Set<number>()
  #lastNumber = 0
  #role: Promise<Role> | undefined
  #closed = false

  constructor(dir: string, log: Pick<Logger, 'warn'>, waitMs = patienceMs) {
    this.#dir = dir
    this.#log = log
    this.#patienceMs = waitMs
  }

  /**
   * Sends a request to the owner, whoever it is by now. Requests of this process arrive in the order of the calls. Throws
   * PersistenceFailed when there was no answer within 10 s; a write may then have happened or not.
   */
  async run(request: KvRequest): Promise<KvReply> {
    const waitMs = this.#patienceMs
    const stop = new AbortController()
    try {
      const reply = await waitAtMost(this.#try(request, stop.signal), waitMs)
      if (reply !== late) return reply
      throw new AppError(PersistenceFailed, { message: `the kv database did not answer within ${waitMs} ms` })
    } catch (error) {
      throw notSaved('kv record', error)
    } finally {
      stop.abort()
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    const role = await this.#role?.catch(() => undefined) // nothing was opened
    await role?.close()
  }

  async #try(request: KvRequest, signal: AbortSignal): Promise<KvReply> {
    const n = this.#lastNumber++
    this.#unanswered.add(n)
    try {
      for (let again = false; ; again = true) {
        const joining = this.#role ?? this.#start()
        const role = await joining
        try {
          return await role.run(request.op === 'write' ? { ...request, id: this.#writeId(n, again) } : request)
        } catch (error) {
          if (!(error instanceof OwnerGone) || signal.aborted) throw error
          if (this.#role === joining) this.#role = undefined
        }
      }
    } finally {
      this.#unanswered.delete(n)
    }
  }

  #writeId(n: number, again: boolean): WriteId {
    const [low = n] = this.#unanswered
    return { client: this.#client, n, low, again }
  }

  #start(): Promise<Role> {
    const joining = this.#join()
    this.#role = joining
    joining.catch(() => {
      // The next request tries again from the start.
      if (this.#role === joining) this.#role = undefined
    })
    return joining
  }

  async #join(): Promise<Role> {
    const deadline = performance.now() + this.#patienceMs
    await ensureDir(this.#dir)
    for (;;) {
      if (this.#closed) throw new AppError(PersistenceFailed, { message: 'storage is closed' })
      const lock = await acquireLock(join(this.#dir, 'kv.lock'))
      if (lock) return this.#own(lock)
      const guest = await KvGuest.join(join(this.#dir, 'kv-owner.json'))
      if (guest) return guest
      if (performance.now() > deadline) throw new AppError(PersistenceFailed, { message: 'the owner of the kv database cannot be reached' })
      await delay(5 + Math.random() * 20)
    }
  }

  async #own(lock: Lock): Promise<Role> {
    try {
      const engine = await KvEngine.open(join(this.#dir, 'kv'), this.#log)
      return await KvOwner.start(engine, lock, join(this.#dir, 'kv-owner.json'), this.#log)
    } catch (error) {
      await lock.release()
      throw error
    }
  }
}

interface Entry {
  readonly kv: SharedKv
  users: number
  closing?: Promise<void>
}

/** On `globalThis`, so that two copies of this module in one process (a pack with its own dependency) still share it. */
const entries: Map<string, Entry> = globalSingleton(Symbol.for('kernel.kv'), () => new Map())

/** A process's share in the database of a home. */
export interface KvClaim {
  readonly kv: SharedKv
  /** The last release in the process closes the database or the connection. */
  release(): Promise<void>
}

/** Claims the database below `<home>/server`; it is opened at the first request. */
export async function claimKv(home: string, log: Pick<Logger, 'warn'>): Promise<KvClaim> {
  const made = join(home, 'server')
  await ensureDir(made)
  // The lock of a LevelDB belongs to the directory, not to the path that a link gave it.
  const dir = await realpath(made)
  for (let entry = entries.get(dir); entry?.closing; entry = entries.get(dir)) await entry.closing
  const entry = entries.get(dir) ?? { kv: new SharedKv(dir, log), users: 0 }
  entries.set(dir, entry)
  entry.users++
  let released: Promise<void> | undefined
  const release = async () => {
    entry.users--
    if (entry.users > 0) return
    const closing = entry.kv.close()
    entry.closing = closing
      .catch(() => undefined) // the one who released hears of it
      .then(() => {
        entries.delete(dir)
      })
    await closing
  }
  return {
    kv: entry.kv,
    release: () => {
      released ??= release()
      return released
    }
  }
}

function globalSingleton<T>(key: symbol, make: () => T): T {
  const place = globalThis as unknown as Record<symbol, T | undefined> // globalThis has no index signature
  place[key] ??= make()
  return place[key]
}
