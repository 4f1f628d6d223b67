/** What is there, whoever makes and deletes it meanwhile. All throw where the disk does not say: that is not "nothing". */
import { readdirSync, type Stats, statSync } from 'node:fs'

/** None yet, or it went while we looked; no permission, a loop of links: nothing to be seen. */
const nothing = /^(ENOENT|ENOTDIR|EACCES|EPERM|ELOOP|ENAMETOOLONG)$/

function seen<T>(look: () => T, otherwise: T): T {
  try {
    return look()
  } catch (error) {
    if (nothing.test((error as NodeJS.ErrnoException).code ?? '')) return otherwise
    throw error
  }
}

/** What is at a path, behind links; undefined also for a loop of them. */
export function statsAt(path: string): Stats | undefined {
  return seen(() => statSync(path, { throwIfNoEntry: false }), undefined)
}

/** Undefined for what is no file: reading a pipe would wait for somebody who writes into it. */
export function fileAt(path: string): Stats | undefined {
  const found = statsAt(path)
  return found?.isFile() ? found : undefined
}

export const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0

/** Names in a directory, without hidden ones. */
export function names(dir: string): string[] {
  return seen(() => readdirSync(dir).filter(name => !name.startsWith('.')), [])
}
