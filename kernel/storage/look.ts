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

/** When a directory was last seen to be quick. */
const quick = new Map<string, number>()

/**
 * What is at a path, behind links; undefined where nothing is, or nothing to be seen. Asking another thread takes twenty times as long as the
 * answer of a local disk, which comes from memory: that way is left to directories that are new or were slow.
 */
export async function lookAt(path: string): Promise<Stats | undefined> {
  return look(path)
}

/** The same at many paths, side by side. */
export async function lookAtAll(paths: readonly string[]): Promise<readonly (Stats | undefined)[]> {
  const looks = paths.map(look)
  return looks.some(isPromise) ? Promise.all(looks) : (looks as readonly (Stats | undefined)[])
}

/** The same path without links; undefined as with `lookAt`. */
export async function realAt(path: string): Promise<string | undefined> {
  return ask(
    path,
    given => realpathSync.native(given),
    (given, answered: Answered<string>) => realpath.native(given, answered)
  )
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

const look = (path: string) => ask(path, given => statSync(given, { throwIfNoEntry: false }), stat)

type Answered<T> = (error: Error | null, found: T) => void

function ask<T>(
  path: string,
  now: (path: string) => T | undefined,
  later: (path: string, answered: Answered<T>) => void
): T | undefined | Promise<T | undefined> {
  const dir = dirname(path)
  const began = performance.now()
  if (began - (quick.get(dir) ?? Number.NEGATIVE_INFINITY) >= sureMs)
    return new Promise(resolve => {
      later(path, (_error, found) => {
        seen(dir, began)
        resolve(found)
      })
    })
  try {
    return now(path)
  } catch {
    return undefined // no permission, a loop of links
  } finally {
    seen(dir, began)
  }
}

function seen(dir: string, began: number): void {
  const now = performance.now()
  quick.delete(dir)
  if (now - began > quickMs) return
  quick.set(dir, now)
  for (const oldest of quick.keys()) {
    if (quick.size <= remembered) break
    quick.delete(oldest)
  }
}

const longestSlowMs = 10_000

/**
 * What the system does in memory (reading and writing small files) is asked on this thread, which takes a tenth of the time that another
 * thread would be asked in. Where it took longer than 5 ms, the system is short of memory or disk, and others are asked for 200 times as
 * long, at most 10 s.
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
