/**
 * What is asked on this thread, as long as the system answers from memory: looks at paths (often, mostly at places where nothing is, and by whom
 * somebody waits), and small files.
 */
import { realpath, realpathSync, type Stats, stat, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { isPromise } from '../lifecycle/wait.ts'

/** What answered within this time, ms, is asked on this thread. */
const quickMs = 5
/** A directory is, so long after it was last seen to be quick. */
const sureMs = 60_000
const remembered = 2000

/** When a directory was last seen to be quick; `never`: a path was slow. */
const quick = new Map<string, number>()
const never = Number.NEGATIVE_INFINITY

/**
 * What is at a path, behind links; undefined where nothing is, or nothing to be seen. Asking another thread takes twenty times as long as the
 * answer of a local disk, which comes from memory: that way is left to directories that are new or were slow.
 */
export async function lookAt(path: string): Promise<Stats | undefined> {
  return look(path)
}

/**
 * The same, at once where the disk is quick, which `near` (default: its directory) stands for: many directories, each asked for once, have one
 * name there. Undefined only where nothing is; for what cannot be told it throws, or rejects, as the system says.
 */
export function foundAt(path: string, near?: string): Stats | undefined | Promise<Stats | undefined> {
  return ask(path, statNow, statLater, near)
}

/** The same at many paths, side by side. */
export async function lookAtAll(paths: readonly string[]): Promise<readonly (Stats | undefined)[]> {
  const looks = paths.map(look)
  return looks.some(isPromise) ? Promise.all(looks) : (looks as readonly (Stats | undefined)[])
}

/** The same path without links; undefined as with `lookAt`. */
export async function realAt(path: string): Promise<string | undefined> {
  return lenient(() => ask(path, realNow, realLater))
}

/** Another text whenever something else is at a path, or it has changed; empty where nothing is. */
export async function stampAt(path: string): Promise<string> {
  return stampOf(await look(path))
}

/** The stamps of many paths, side by side. */
export async function stampsAt(paths: readonly string[]): Promise<readonly string[]> {
  return (await lookAtAll(paths)).map(stampOf)
}

const stampOf = (found: Stats | undefined) => (found ? `${found.ino} ${found.size} ${found.mtimeMs}` : '')

/**
 * Tells a directory from its copies, which may be read while whoever wrote into the first one still runs; empty where nothing is. By its inode
 * alone: another machine or container that shares it may know its device by another number.
 */
export async function identityAt(path: string): Promise<string> {
  const found = await lookAt(path)
  return found ? String(found.ino) : ''
}

const look = (path: string) => lenient(() => ask(path, statNow, statLater))

/** No permission, a loop of links: nothing to be seen. */
function lenient<T>(asked: () => T | undefined | Promise<T | undefined>): T | undefined | Promise<T | undefined> {
  try {
    const found = asked()
    return isPromise(found) ? (found as Promise<T | undefined>).catch(() => undefined) : found
  } catch {
    return undefined
  }
}

type Answered<T> = (error: NodeJS.ErrnoException | null, found: T) => void

const statNow = (path: string) => statSync(path, { throwIfNoEntry: false })
const statLater = (path: string, answered: Answered<Stats>) => stat(path, answered)
const realNow = (path: string): string => realpathSync.native(path)
const realLater = (path: string, answered: Answered<string>) => realpath.native(path, answered)

function ask<T>(
  path: string,
  now: (path: string) => T | undefined,
  later: (path: string, answered: Answered<T>) => void,
  near = dirname(path)
): T | undefined | Promise<T | undefined> {
  const began = performance.now()
  if (began - (quick.get(path) ?? quick.get(near) ?? never) >= sureMs)
    return new Promise((resolve, reject) => {
      const waited = passes(2)
      later(path, (error, found) => {
        // What came as soon as the loop looked for answers was not waited for, however long the loop was elsewhere.
        answered(path, near, waited() ? began : performance.now())
        if (error && !isMissing(error)) reject(error)
        else resolve(error ? undefined : found)
      })
    })
  try {
    return now(path)
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  } finally {
    // What one directory costs, others may cost, too: each has to show anew that it is quick before anybody waits for it here.
    if (!answered(path, near, began)) {
      quick.clear()
      quick.set(path, never)
    }
  }
}

/** Counts passes of the event loop from here on; answers whether there were so many. */
function passes(most: number): () => boolean {
  let left = most
  const pass = () => {
    if (--left > 0) setImmediate(pass)
  }
  setImmediate(pass)
  return () => left === 0
}

/** The file or a directory above it is not there. */
export function isMissing(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException
  return code === 'ENOENT' || code === 'ENOTDIR'
}

/** Whether it was quick. A path may be slow alone: another disk begins there. */
function answered(path: string, near: string, began: number): boolean {
  const now = performance.now()
  const isQuick = now - began <= quickMs
  quick.delete(near)
  if (!isQuick) quick.set(path, never)
  else if (quick.get(path) === never) quick.delete(path)
  if (isQuick) quick.set(near, now)
  const [oldest = ''] = quick.keys()
  if (quick.size > remembered) quick.delete(oldest)
  return isQuick
}

const longestSlowMs = 600_000

/**
 * What the system does in memory (reading and writing small files) is asked on this thread, which takes a tenth of the time that another
 * thread would be asked in. Where it took longer than 5 ms, the system is short of memory or disk, and others are asked for 200 times as
 * long, at most ten minutes.
 */
export class ThisThread {
  /** At most so many bytes are written here. */
  static readonly bytes = 64 * 1024
  #slowUntil = 0

  get isQuick(): boolean {
    return performance.now() >= this.#slowUntil
  }

  run<T>(work: () => T): T {
    const began = performance.now()
    try {
      return work()
    } finally {
      const now = performance.now()
      if (now - began > quickMs) this.#slowUntil = now + Math.min((now - began) * 200, longestSlowMs)
    }
  }
}
