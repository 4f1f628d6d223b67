/** What is there, whoever makes and deletes it meanwhile. */
import { readdirSync, type Stats, statSync } from 'node:fs'

/** What is at a path, behind links; undefined also for a loop of them. */
export function statsAt(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch {
    return undefined // nothing to be seen
  }
}

/** Undefined for what is no file: reading a pipe would wait for somebody who writes into it. */
export function fileAt(path: string): Stats | undefined {
  const found = statsAt(path)
  return found?.isFile() ? found : undefined
}

export const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0

/** Names in a directory, without hidden ones. */
export function names(dir: string): string[] {
  try {
    return readdirSync(dir).filter(name => !name.startsWith('.'))
  } catch {
    return [] // none yet, or it went while we looked
  }
}
