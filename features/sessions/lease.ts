/**
 * One lease: the lock of a directory. It says before each write whether the directory is still ours, and where files are written until they
 * are whole.
 */
import { randomUUID } from 'node:crypto'
import { readdir, rename, rm, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type Fence, LeaseLost, type Lock, makeDirs } from '../../kernel/index.ts'
import { SessionBusy } from './contract.ts'

/** A directory that this process alone writes to. */
export interface Lease extends Fence {
  /** Higher than that of every holder before. */
  readonly fence: number
  /** Another server has taken it: called once. Everything that is written below is refused from then on. */
  onLost(listener: () => void): void
  /** Gives it back. Whoever is late is not refused any more: nothing may be under way. */
  release(): Promise<void>
}

/** Of the directory for files that are not whole yet; behind it the number of the lease. */
const temporariesPrefix = '.lease-'

export class HeldLease implements Lease {
  readonly dir: string
  overtaken = false
  readonly #lock: Lock
  readonly #sure: () => boolean
  readonly #ended: () => void
  readonly #listeners: (() => void)[] = []
  #temporaries: Promise<string> | undefined
  #lost = false
  #released: Promise<void> | undefined

  constructor(lock: Lock, dir: string, sure: () => boolean, ended: () => void) {
    this.#lock = lock
    this.dir = dir
    this.#sure = sure
    this.#ended = ended
  }

  get fence(): number {
    return this.#lock.fence
  }

  /** Somebody had it who did not give it back. */
  get wasHeld(): boolean {
    return this.#lock.wasHeld
  }

  check(): Promise<void> | undefined {
    return !this.#lost && this.#sure() ? undefined : this.look()
  }

  /** Looks at the disk. */
  async look(): Promise<void> {
    if (!this.#lost && (await this.#lock.isOurs())) return
    if (!this.#lost) {
      this.#lost = true
      for (const listener of this.#listeners) listener()
    }
    throw new LeaseLost(this.dir, SessionBusy)
  }

  async temporary(): Promise<string> {
    this.#temporaries ??= this.#makeTemporaries()
    return join(await this.#temporaries, `${randomUUID()}~`)
  }

  onLost(listener: () => void): void {
    if (this.#lost) queueMicrotask(listener)
    else this.#listeners.push(listener)
  }

  release(): Promise<void> {
    this.#released ??= this.#release()
    return this.#released
  }

  /** Made before the look at the lock: whoever takes over later finds it, and takes it away. */
  async #makeTemporaries(): Promise<string> {
    const dir = join(this.dir, `${temporariesPrefix}${this.fence}`)
    await makeDirs(dir, 0o700)
    await this.look()
    return dir
  }

  async #release(): Promise<void> {
    const dir = await this.#temporaries?.catch(() => undefined)
    // Empty, unless a write was given up; what stays there the next holder takes away.
    if (dir !== undefined && !this.#lost) await rmdir(dir).catch(() => rm(dir, { recursive: true, force: true }).catch(() => undefined))
    await this.#lock.release()
    this.#listeners.length = 0 // who still knows the lease keeps nothing else
    this.#ended()
  }
}

/** Renames of the holder before find nothing to rename from here on. */
export async function removeTemporaries(dir: string): Promise<void> {
  const names = await readdir(dir)
  for (const name of names) {
    if (!name.startsWith(temporariesPrefix)) continue
    // The name changes at once, whatever is being put in there meanwhile.
    const aside = join(dir, `~${name}-${randomUUID()}`)
    await rename(join(dir, name), aside)
    await rm(aside, { recursive: true, force: true, maxRetries: 3 })
  }
}
