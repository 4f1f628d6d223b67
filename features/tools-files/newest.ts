/** Order of search results. */
import type { FileOps } from './file-ops.ts'

/** Files that one search looks at closer (their times); more are too many. */
export const SEARCH_FILES = 20_000

/** The items, newest file first, equal times by path; 32 looks at the disk at a time. Vanished files come last. Throws at the abort. */
export async function newestFirst<T>(items: readonly T[], pathOf: (item: T) => string, ops: FileOps, signal: AbortSignal): Promise<T[]> {
  const timed: { readonly item: T; readonly path: string; readonly at: number }[] = []
  let next = 0
  const work = async () => {
    for (let index = next++; index < items.length; index = next++) {
      signal.throwIfAborted()
      const item = items[index]!
      const path = pathOf(item)
      const facts = await ops.stat(path).catch(() => undefined) // unreadable counts as vanished
      timed.push({ item, path, at: facts?.mtimeMs ?? 0 })
    }
  }
  await Promise.all(Array.from({ length: 32 }, work))
  return timed.sort((a, b) => b.at - a.at || (a.path < b.path ? -1 : 1)).map(({ item }) => item)
}
