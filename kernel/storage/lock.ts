/**
 * Ownership of a path by a live process. A lock ends with its holder at once, even after `kill -9`: the file names the process
 * (id and start time), and a lock of a process that is gone is taken over.
 */
import { randomUUID } from 'node:crypto'
import { link, mkdir, readdir, readFile, rename, unlink, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { AppError, PersistenceFailed } from '../errors.ts'
import { isProcessAlive, processStart } from './process-life.ts'

/** What a lock file says about its holder. */
export interface LockHolder {
  readonly pid: number
  /** Start time of the process, where the system tells it (Linux); guards against a process id that was given out again. */
  readonly start?: string
  readonly nonce: string
  /** What the holder told about itself. */
  readonly info?: unknown
}

/** A lock that this process holds. */
export interface Lock {
  readonly path: string
  /** Gives the lock back; a second call does nothing. */
  release(): Promise<void>
}

/** Takers that meet at one dead lock wait for each other; after so many rounds the answer is "held". */
const takeoverRounds = 200

/**
 * Takes the lock at `path` (directories are made), or answers undefined while a live process holds it, this one included.
 * `info` is public to whoever can read the directory's owner-only files: no secrets. Throws PersistenceFailed when the file cannot be
 * written. Processes are told apart by their id, so all holders must live on one machine and in one process namespace.
 */
export async function acquireLock(path: string, options: { readonly info?: unknown } = {}): Promise<Lock | undefined> {
  const nonce = randomUUID()
  const holder: LockHolder = {
    pid: process.pid,
    ...(await ownStart()),
    nonce,
    ...(options.info === undefined ? {} : { info: options.info })
  }
  const text = JSON.stringify(holder)
  const mine = `${path}~${nonce}`
  try {
    await writeMine(mine, text)
    try {
      return (await contend(path, mine)) ? owned(path, text) : undefined
    } finally {
      await removeIfThere(mine)
    }
  } catch (error) {
    if (AppError.is(error)) throw error
    throw new AppError(PersistenceFailed, { message: `lock ${path} could not be taken`, cause: error })
  }
}

/** The live holder of a lock; undefined while it is free or its holder is dead. */
export async function lockHolder(path: string): Promise<LockHolder | undefined> {
  const text = await readIfThere(path)
  return text === undefined ? undefined : liveHolder(text)
}

/**
 * Runs `fn` while holding the lock at `path`, waiting for other holders with a small random backoff. For short critical sections.
 * Throws PersistenceFailed when the lock is not free within `timeoutMs` (default 10,000).
 */
export async function withLock<T>(path: string, fn: () => Promise<T>, options: { readonly timeoutMs?: number } = {}): Promise<T> {
  const timeoutMs = options.timeoutMs ?? 10_000
  const deadline = performance.now() + timeoutMs
  for (let pause = 2; ; pause = Math.min(pause * 1.5, 25)) {
    const lock = await acquireLock(path)
    if (lock) {
      try {
        return await fn()
      } finally {
        await lock.release()
      }
    }
    if (performance.now() >= deadline) {
      throw new AppError(PersistenceFailed, { message: `lock ${path} was not free within ${timeoutMs} ms` })
    }
    await delay(1 + Math.random() * pause)
  }
}

/**
 * True when `mine` became the lock file. `link` is the only way into a free path. A dead holder's file is replaced only by whoever
 * holds the guard lock beside it and has seen, under the guard, that the dead file is still there: moving the dead file away first
 * would leave a moment in which two takers could both win. The guard is an ordinary lock, so a taker that dies is taken over as well.
 */
async function contend(path: string, mine: string): Promise<boolean> {
  for (let round = 0; round < takeoverRounds; round++) {
    if (await linkIfFree(mine, path)) return true
    const seen = await readIfThere(path)
    if (seen === undefined) continue
    if (await liveHolder(seen)) return false
    const guard = await acquireLock(`${path}~take`)
    if (!guard) {
      await delay(1 + Math.random() * 4)
      continue
    }
    try {
      if ((await readIfThere(path)) !== seen) continue
      await rename(mine, path)
      await sweep(path)
      return true
    } finally {
      await guard.release()
    }
  }
  return false
}

/** Removes what takers left that died between writing their file and clearing it away. */
async function sweep(path: string): Promise<void> {
  const prefix = `${basename(path)}~`
  for (const name of await readdir(dirname(path))) {
    if (!name.startsWith(prefix) || name === `${prefix}take`) continue
    const file = join(dirname(path), name)
    const text = await readIfThere(file)
    // An unreadable one may be a file that its live taker is just writing.
    if (text?.endsWith('}') && !(await liveHolder(text))) await removeIfThere(file)
  }
}

function owned(path: string, text: string): Lock {
  let released: Promise<void> | undefined
  const giveBack = async () => {
    // Someone may have removed the file by hand and another process may hold the path by now.
    if ((await readIfThere(path)) === text) await removeIfThere(path)
  }
  return {
    path,
    release: () => {
      released ??= giveBack()
      return released
    }
  }
}

/** Files appear complete (link, rename), so a text that does not parse was damaged by a power loss: nobody holds it. */
async function liveHolder(text: string): Promise<LockHolder | undefined> {
  let holder: LockHolder
  try {
    holder = JSON.parse(text) as LockHolder
  } catch {
    return undefined // as above
  }
  if (typeof holder !== 'object' || holder === null || !Number.isSafeInteger(holder.pid) || holder.pid <= 0) return undefined
  return (await isProcessAlive(holder.pid, holder.start)) ? holder : undefined
}

let own: Promise<string | undefined> | undefined

async function ownStart(): Promise<{ start?: string }> {
  own ??= processStart(process.pid)
  const start = await own
  return start === undefined ? {} : { start }
}

async function writeMine(file: string, text: string): Promise<void> {
  try {
    await writeFile(file, text, { flag: 'wx', mode: 0o600 })
  } catch (error) {
    if (code(error) !== 'ENOENT') throw error
    await mkdir(dirname(file), { recursive: true, mode: 0o700 })
    await writeFile(file, text, { flag: 'wx', mode: 0o600 })
  }
}

async function linkIfFree(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to)
    return true
  } catch (error) {
    if (code(error) === 'EEXIST') return false
    throw error
  }
}

async function readIfThere(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    if (code(error) === 'ENOENT') return undefined
    throw error
  }
}

async function removeIfThere(file: string): Promise<void> {
  try {
    await unlink(file)
  } catch (error) {
    if (code(error) !== 'ENOENT') throw error
  }
}

function code(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code
}
