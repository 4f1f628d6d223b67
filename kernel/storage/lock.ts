/**
 * Ownership of a path by a live process. A lock ends with its holder at once, even after `kill -9`: the file names the process, and a lock
 * of a process that is gone is taken over. Whether a process in another container or on another machine lives, its heartbeat tells.
 */
import { stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { AppError } from '../errors.ts'
import { yieldToLoop } from '../lifecycle/wait.ts'
import { jsonOf } from '../text.ts'
import { type FileCalls, inDir, linkIfFree, nodeFiles, readSmall, removeFile, touch, unlessMissing, writeBytes } from './files.ts'
import { ownProcess, type ProcessIdentity, stateOf, sweepAbandoned, temporaryName } from './process-life.ts'
import { reasonOf, unsaved } from './refusals.ts'

/** What a lock file says about its holder. */
export interface LockHolder extends ProcessIdentity {
  readonly nonce: string
  /** The fencing number when the lock was asked for; that of the holder is not much higher. */
  readonly fence?: number
  /** What the holder told about itself. */
  readonly info?: unknown
}

/** A lock that this process holds. */
export type Lock = Pick<HeldLock, 'path' | 'fence' | 'wasHeld' | 'isOurs' | 'confirm' | 'release'>

export interface LockOptions {
  /** Public to whoever can read the owner-only files of the directory: no secrets. */
  readonly info?: unknown
  readonly files?: FileCalls | undefined
  /** Whether a living holder may be overtaken; asked right before, so that it can be put on record. Default: never. */
  readonly overtake?: (holder: LockHolder) => Promise<boolean>
  /** The lock is given back under the guard under which it would be taken over: whoever stands still in between removes nobody else's. */
  readonly guarded?: boolean
}

/** Takers that meet at one dead lock wait for each other; after so many rounds the answer is "held". */
const takeoverRounds = 200
/** How often the holder touches its file, and when a holder elsewhere counts as gone. Both sides need clocks that agree. */
const beatMs = 2_000
const staleMs = 8_000
/** A holder that looked at its file so lately needs no second look. */
const sureMs = 1_000
const releaseRetryMs = 2_000
/** A holder's number may be that much (µs) higher than the one it wrote into its file a moment before. */
const fenceMargin = 1_000_000

/** Locks of this process: those that need a heartbeat, and nonces of those that were given back but could not be removed yet, or were not there. */
const held = new Set<HeldLock>()
const givenBack = new Set<string>()
const maxGivenBack = 1000
let beating: NodeJS.Timeout | undefined
/** A process may take many locks within one tick of its clock. */
let lastTick = 0

const clock = () => Date.now() * 1000

/**
 * Takes the lock at `path` (directories are made), or answers undefined while a live process holds it, this one included. Throws
 * PersistenceFailed when the file cannot be written.
 */
export async function acquireLock(path: string, options: LockOptions = {}): Promise<Lock | undefined> {
  const { info, files = nodeFiles, overtake, guarded = false } = options
  const nonce = await temporaryName()
  const mine = `${path}~${nonce}`
  try {
    const taken = await contend(path, mine, { ...(await ownProcess()), nonce, ...(info !== undefined && { info }) }, files, overtake)
    if (taken === undefined) return undefined
    const lock = new HeldLock(path, taken.text, nonce, files, { guarded, wasHeld: taken.wasHeld })
    await sweepOnce(dirname(path), files)
    return lock
  } catch (error) {
    if (AppError.is(error)) throw error
    throw unsaved(`lock ${path} could not be taken${reasonOf(error)}`, error)
  } finally {
    await removeFile(mine, files).catch(() => undefined) // the next taker sweeps
  }
}

/** The live holder of a lock; undefined while it is free or its holder is gone. */
export async function lockHolder(path: string): Promise<LockHolder | undefined> {
  const text = await readSmall(path)
  return text === undefined ? undefined : liveHolder(path, text)
}

/**
 * Runs `fn` while holding the lock at `path`, waiting for other holders with a small random backoff. For short critical sections.
 * Throws PersistenceFailed when the lock is not free within `timeoutMs` (default 10,000).
 */
export async function withLock<T>(
  path: string,
  fn: (lock: Lock) => Promise<T>,
  options: LockOptions & { readonly timeoutMs?: number } = {}
): Promise<T> {
  const timeoutMs = options.timeoutMs ?? 10_000
  const deadline = performance.now() + timeoutMs
  for (let pause = 2; ; pause = Math.min(pause * 1.5, 25)) {
    const lock = await acquireLock(path, options)
    if (lock) {
      try {
        return await fn(lock)
      } finally {
        await lock.release({ soon: true })
      }
    }
    if (performance.now() >= deadline) {
      throw unsaved(`lock ${path} was not free within ${timeoutMs} ms`)
    }
    await delay(1 + Math.random() * pause)
  }
}

export class HeldLock {
  readonly path: string
  /**
   * Fencing number: higher than that of every holder before, so that whatever is guarded can refuse those who lost the lock without
   * noticing. Made from the clock (microseconds): after a clean release it must not have been set back. Between sections of `withLock` in
   * different processes it is told apart by the millisecond only.
   */
  readonly fence: number
  /** The holder before did not give it back. */
  readonly wasHeld: boolean
  readonly #guarded: boolean
  readonly #text: string
  readonly #nonce: string
  readonly #files: FileCalls
  #seenAt = performance.now()
  #released: Promise<void> | undefined

  constructor(path: string, text: string, nonce: string, files: FileCalls, { guarded = false, wasHeld = false } = {}) {
    this.path = path
    this.#guarded = guarded
    this.wasHeld = wasHeld
    this.#text = text
    this.#nonce = nonce
    this.#files = files
    lastTick = Math.max(clock(), lastTick + 1)
    this.fence = Math.max(lastTick, (JSON.parse(text) as LockHolder).fence ?? 0)
    held.add(this)
    beating ??= setInterval(beat, beatMs).unref()
  }

  /** Rejects with PersistenceFailed when the lock was lost: this process stood still for so long that another one took over. */
  async confirm(): Promise<void> {
    if (performance.now() - this.#seenAt < sureMs) return
    if (!(await this.isOurs())) throw unsaved(`lock ${this.path} was lost`)
    this.#seenAt = performance.now()
  }

  /** As the disk says now. */
  async isOurs(): Promise<boolean> {
    return (await readSmall(this.path, this.#files)) === this.#text
  }

  /**
   * Gives the lock back; a second call does nothing. Never rejects: what cannot be removed right now is tried again until it is gone, and
   * counts as free for this process meanwhile. `soon`: without a look at the clock.
   */
  release({ soon = false } = {}): Promise<void> {
    this.#released ??= this.#release(soon)
    return this.#released
  }

  /** Shows those elsewhere that the holder lives. */
  async touch(): Promise<void> {
    if (performance.now() - this.#seenAt < sureMs) return
    try {
      await this.confirm()
      await touch(this.path, this.#files)
    } catch {
      // lost, which the holder hears when it confirms; or not to be touched right now, and the next beat tries again
    }
  }

  async #release(soon: boolean): Promise<void> {
    // The next holder's number comes from the clock: it must have moved on. A clock that was set back is not waited for.
    for (let wait = 0; !soon && clock() <= this.fence && wait < 10; wait++) await delay(1)
    held.delete(this)
    if (held.size === 0) {
      clearInterval(beating)
      beating = undefined
    }
    try {
      await this.#remove()
    } catch {
      countsAsFree(this.#nonce)
      this.#retry(50)
    }
  }

  #retry(ms: number): void {
    const later = () => this.#retry(Math.min(ms * 2, releaseRetryMs)) // still out of descriptors, or the disk is away
    setTimeout(() => this.#remove().catch(later), ms).unref()
  }

  /** Someone may have removed the file by hand, or taken over, and another process may hold the path by now. */
  async #remove(): Promise<void> {
    const seen = await readSmall(this.path, this.#files)
    if (seen === undefined) countsAsFree(this.#nonce) // or its directory was moved, or its disk is away: it may come back with the file
    if (seen !== this.#text) return
    const guard = this.#guarded ? await acquireLock(`${this.path}~take`, { files: this.#files }) : undefined
    try {
      if (this.#guarded && !(await this.isOurs())) return
      if (this.#guarded && !guard) throw unsaved('somebody looks at the lock')
      await removeFile(this.path, this.#files)
      givenBack.delete(this.#nonce)
    } finally {
      await guard?.release()
    }
  }
}

/** Whatever the file says, this process does not have that lock. */
function countsAsFree(nonce: string): void {
  givenBack.add(nonce)
  const [oldest = ''] = givenBack
  if (givenBack.size > maxGivenBack) givenBack.delete(oldest)
}

async function beat(): Promise<void> {
  for (const lock of [...held]) {
    const others = yieldToLoop()
    if (others) await others
    if (held.has(lock)) await lock.touch()
  }
}

/**
 * The text that became the lock file, or undefined. `link` is the only way into a free path. A dead holder's file is replaced only by
 * whoever holds the guard lock beside it and has seen, under the guard, that the dead file is still there: moving the dead file away first
 * would leave a moment in which two takers could both win. The guard is an ordinary lock, so a taker that dies is taken over as well.
 */
async function contend(
  path: string,
  mine: string,
  holder: LockHolder,
  files: FileCalls,
  overtake?: LockOptions['overtake']
): Promise<{ readonly text: string; readonly wasHeld: boolean } | undefined> {
  const free = await writeMine(mine, { ...holder, fence: clock() }, files)
  for (let round = 0; round < takeoverRounds; round++) {
    if (await linkIfFree(mine, path, files)) return { text: free, wasHeld: false }
    const seen = await readSmall(path, files)
    if (seen === undefined) continue
    const live = await liveHolder(path, seen)
    if (live && !(await overtake?.(live))) return undefined
    const guard = await acquireLock(`${path}~take`, { files })
    if (!guard) {
      await delay(1 + Math.random() * 4)
      continue
    }
    try {
      if ((await readSmall(path, files)) !== seen) continue
      await removeFile(mine, files)
      // The holder before got its number a moment after it wrote the file.
      const fence = Math.max(clock(), (parse(seen)?.fence ?? 0) + fenceMargin)
      const text = await writeMine(mine, { ...holder, fence }, files)
      await files.rename(mine, path)
      swept.delete(dirname(path))
      return { text, wasHeld: true }
    } finally {
      await guard.release()
    }
  }
  return undefined
}

/** Directories that this process has swept. */
const swept = new Set<string>()
const maxSwept = 1000

/**
 * Removes what takers left that died between making their file and clearing it away: once per directory, and again when a dead holder
 * shows that there may be more. The names tell whose they are, so an empty file of a live taker stays.
 */
async function sweepOnce(dir: string, files: FileCalls): Promise<void> {
  if (swept.has(dir)) return
  if (swept.size >= maxSwept) swept.clear()
  swept.add(dir)
  const isTemporary = (name: string) => /~(\d+-[0-9a-f]{12}-)?[0-9a-f-]{36}$/.test(name)
  await sweepAbandoned(dir, isTemporary, files).catch(() => swept.delete(dir)) // somebody else may be sweeping as well; the rest goes the next time
}

/** Files appear complete (link, rename), so a text that does not parse was damaged by a power loss: nobody holds it. */
async function liveHolder(path: string, text: string): Promise<LockHolder | undefined> {
  const holder = parse(text)
  if (!holder || givenBack.has(holder.nonce)) return undefined
  const state = await stateOf(holder)
  if (state === 'alive') return holder
  return state === 'elsewhere' && (await isFresh(path)) ? holder : undefined
}

/** The holder, which this process cannot see, has touched its file lately. */
async function isFresh(path: string): Promise<boolean> {
  const found = await unlessMissing(stat(path))
  return found !== undefined && Date.now() - found.mtimeMs < staleMs
}

function parse(text: string): LockHolder | undefined {
  const holder = jsonOf(text) as LockHolder | null | undefined
  return Number.isSafeInteger(holder?.pid) && holder && holder.pid > 0 ? holder : undefined
}

async function writeMine(file: string, holder: LockHolder, files: FileCalls): Promise<string> {
  const text = JSON.stringify(holder)
  const handle = await inDir(dirname(file), () => files.open(file, 'wx', 0o600), files)
  try {
    await writeBytes(handle, [Buffer.from(text)], files)
  } finally {
    await handle.close()
  }
  return text
}
