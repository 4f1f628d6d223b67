/** Looks at paths: often, mostly at places where nothing is, and by whom somebody waits. */
import { type Stats, stat, statSync } from 'node:fs'
import { dirname } from 'node:path'

/** A directory whose file system answered within this time, ms, is asked on this thread. */
const quickMs = 5
/** So long after it was last seen to be quick. */
const sureMs = 60_000
const remembered = 2000

/** When a directory was last seen to be quick. */
const quick = new Map<string, number>()

/**
 * What is at a path, behind links; undefined where nothing is, or nothing to be seen. Asking another thread takes twenty times as long as the
 * answer of a local disk, which comes from memory: that way is left to directories that are new or were slow.
 */
export function lookAt(path: string): Promise<Stats | undefined> {
  const dir = dirname(path)
  const began = performance.now()
  const isQuick = began - (quick.get(dir) ?? Number.NEGATIVE_INFINITY) < sureMs
  return isQuick ? Promise.resolve(lookNow(path, dir, began)) : lookLater(path, dir, began)
}

/** Another text whenever something else is at a path, or it has changed; empty where nothing is. */
export async function stampAt(path: string): Promise<string> {
  const found = await lookAt(path)
  return found ? `${found.ino} ${found.size} ${found.mtimeMs}` : ''
}

function lookNow(path: string, dir: string, began: number): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch {
    return undefined // no permission, a loop of links
  } finally {
    seen(dir, began)
  }
}

function lookLater(path: string, dir: string, began: number): Promise<Stats | undefined> {
  return new Promise(resolve => {
    stat(path, (_error, found) => {
      seen(dir, began)
      resolve(found)
    })
  })
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
