/**
 * Leases: locks of directories that a server which stands still loses, and that refuse every later write of it. README.md (Leases) says why
 * there are never two writers.
 */
import { createReadStream } from 'node:fs'
import { appendFile, type FileHandle, open, readdir, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import {
  acquireLock,
  type Fence,
  type LockHolder,
  type Logger,
  makeDirs,
  ownProcess,
  readIfThere,
  replaceFile,
  stampAt
} from '../../kernel/index.ts'
import { countLength, sweepBeats } from './beats.ts'
import { HeldLease, type Lease, removeTemporaries } from './lease.ts'

/** How often a server that has leases writes a beat. */
const beatMs = 1000
/** How long after the beginning of its last beat a server trusts its leases without a look at the disk. */
const trustMs = 2500
/** A server that another one sees no beat of for so long loses its leases. */
const leaseMs = 4000
/** Number of the last beat of this process. A swapped pack counts on: a watcher must not take a new beat for one that it has seen. */
let beats = 0
/** In a directory that is being taken from somebody who may live: from whom. */
const takingFile = '.taking'

interface Seen {
  readonly text: string
  readonly since: number
}

/** The leases of one server. */
export class Leases {
  readonly #dir: string
  readonly #server_id: string
  readonly #log: Pick<Logger, 'warn'>
  readonly #held = new Map<string, HeldLease>()
  /** Beats of others as they were seen last. */
  readonly #seen = new Map<string, Seen>()
  #beat: FileHandle | undefined
  /** There were no leases for a while: another server may have removed the file. */
  #rested = false
  #beatAt = Number.NEGATIVE_INFINITY
  #beating: Promise<void> | undefined
  #count = 0
  /** Size of the file in which others say that they took something. */
  #told = 0
  #timer: NodeJS.Timeout | undefined

  constructor({ home, server_id, log }: { readonly home: string; readonly server_id: string; readonly log: Pick<Logger, 'warn'> }) {
    this.#dir = join(home, 'server', 'beats')
    this.#server_id = server_id
    this.#log = log
  }

  /** The lease of a directory, which is made; undefined while another server has it. */
  async acquire(dir: string): Promise<Lease | undefined> {
    await this.#begin()
    let lease: HeldLease | undefined
    try {
      const lock = await acquireLock(join(dir, 'lock'), {
        info: { server_id: this.#server_id },
        guarded: true,
        overtake: holder => this.#overtake(dir, holder)
      })
      if (!lock) return undefined
      const ended = () => {
        if (this.#held.get(dir) === lease) this.#held.delete(dir)
        this.#end()
      }
      lease = new HeldLease(lock, dir, () => this.#sure, ended)
      this.#held.set(dir, lease)
      await this.#settle(lease)
      return lease
    } catch (error) {
      await lease?.release()
      throw error
    } finally {
      if (!lease) this.#end()
    }
  }

  /** The lease that guards a file, when one of this process does. */
  of(file: string): Fence | undefined {
    if (this.#held.size === 0) return undefined
    for (let dir = dirname(file); dir.length > 1; dir = dirname(dir)) {
      const lease = this.#held.get(dir)
      if (lease) return lease
    }
    return undefined
  }

  /** A living holder has not beaten for as long as a lease lasts, watched by this process: it can be taken over. */
  async isExpired(holder: LockHolder): Promise<boolean> {
    const { server_id } = (holder.info ?? {}) as { server_id?: unknown }
    if (typeof server_id !== 'string' || server_id === this.#server_id || !/^\w+$/.test(server_id)) return false
    const text = await readIfThere(join(this.#dir, server_id))
    if (text === undefined) return false // of a server that knows no beats
    const seen = this.#seen.get(server_id)
    if (seen?.text === text) return performance.now() - seen.since >= leaseMs
    this.#seen.set(server_id, { text, since: performance.now() })
    return false
  }

  /**
   * Another text when another server may have taken a lease since the last one; undefined while one is there that has, or had, and while the
   * beats cannot be read. Whoever takes a lease has made its beat file before, and keeps it to its end.
   */
  async elsewhere(): Promise<string | undefined> {
    const stamp = await stampAt(this.#dir) // before the names: what comes in between shows in the next one
    const names = await readdir(this.#dir).catch((error: NodeJS.ErrnoException) => (error.code === 'ENOENT' ? [] : undefined))
    return names?.every(name => name.split('.')[0] === this.#server_id) ? stamp : undefined
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#beating
    await this.#beat?.close()
    if (this.#beat) await rm(join(this.#dir, this.#server_id), { force: true })
    await rm(this.#tellPath(this.#server_id), { force: true })
    this.#beat = undefined
  }

  get #sure(): boolean {
    return performance.now() - this.#beatAt < trustMs
  }

  /** One more lease, or one that is being taken. */
  async #begin(): Promise<void> {
    this.#count++
    this.#timer ??= setInterval(() => void this.#doBeat(), beatMs).unref()
    if (!this.#sure) await this.#doBeat()
  }

  #end(): void {
    if (--this.#count > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#rested = true
  }

  #doBeat(): Promise<void> {
    this.#beating ??= this.#beatOnce()
      .catch(err => this.#log.warn({ err }, 'a beat could not be written; another server may take over what this one has'))
      .finally(() => {
        this.#beating = undefined
      })
    return this.#beating
  }

  async #beatOnce(): Promise<void> {
    const start = performance.now()
    if (!this.#beat || this.#rested) {
      await makeDirs(this.#dir, 0o700)
      await this.#beat?.close()
      this.#beat = undefined
      const beat = await open(join(this.#dir, this.#server_id), 'w', 0o600)
      this.#beat = beat
      this.#rested = false
      await beat.write(JSON.stringify(await ownProcess()), countLength)
      await sweepBeats(this.#dir, this.#server_id).catch(err =>
        this.#log.warn({ err }, 'beats of servers that are gone could not be removed')
      )
    }
    await this.#beat.write(String(++beats).padStart(countLength, '0'), 0)
    // After the beat: who took something and told before it is seen now, who does later sees the beat and waits.
    const told = await stat(this.#tellPath(this.#server_id)).then(
      ({ size }) => size,
      () => 0
    )
    if (told !== this.#told) {
      this.#told = told
      for (const lease of [...this.#held.values()]) await lease.look().catch(() => undefined) // it tells its listeners
    }
    this.#beatAt = start
  }

  #tellPath(server_id: string): string {
    return join(this.#dir, `${server_id}.taken`)
  }

  /** Whether a living holder may be overtaken. From whom is on disk before it happens: who comes after a taker that died has to know. */
  async #overtake(dir: string, holder: LockHolder): Promise<boolean> {
    if (!(await this.isExpired(holder))) return false
    const { server_id } = holder.info as { server_id: string }
    await appendFile(join(dir, takingFile), `${server_id}\n`, { mode: 0o600 })
    return true
  }

  /** What was taken from somebody who may still live is made ours alone. */
  async #settle(lease: HeldLease): Promise<void> {
    const taking = join(lease.dir, takingFile)
    const from = ((await readIfThere(taking)) ?? '').split('\n').filter(id => /^\w+$/.test(id))
    if (from.length === 0 && !lease.wasHeld) return
    let awake = false
    for (const server_id of from) {
      await appendFile(this.#tellPath(server_id), `${lease.fence}\n`, { mode: 0o600 })
      const known = this.#seen.get(server_id)
      awake ||= known === undefined || (await readIfThere(join(this.#dir, server_id))) !== known.text
    }
    // It woke up, or nobody here has watched it: its trust ends at the latest when it had to see that something was taken.
    if (awake) await delay(trustMs)
    await removeTemporaries(lease.dir)
    if (from.length === 0) return
    lease.overtaken = true
    await copyLines(lease.dir)
    await rm(taking)
  }
}

/** Puts copies of all files of lines below a directory into their places: what the holder before has open is nobody's file then. */
async function copyLines(dir: string): Promise<void> {
  for (const entry of await readdir(dir, { withFileTypes: true, recursive: true }))
    if (entry.isFile() && entry.name.endsWith('.jsonl')) await copyInPlace(join(entry.parentPath, entry.name))
}

const copyInPlace = (path: string) => replaceFile(path, createReadStream(path), { unserialised: true })
