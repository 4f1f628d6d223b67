/** Orders files by the time of their last change. */
import type { FileOps } from './file-ops.ts'

/** The items, newest file first, equal times by path; 32 looks at the disk at a time. Vanished files come last. */
export async function newestFirst<T>(items: readonly T[], pathOf: (item: T) => string, ops: FileOps): Promise<T[]> {
  const timed: { readonly item: T; readonly path: string; readonly at: number }[] = []
  let next = 0
  const work = async () => {
    for (let index = next++; index < items.length; index = next++) {
      const item = items[index]!
      const path = pathOf(item)
      const facts = await ops.stat(path).catch(() => undefined) // unreadable counts as vanished
      timed.push({ item, path, at: facts?.mtimeMs ?? 0 })
    }
  }
  await Promise.all(Array.from({ length: 32 }, work))
  return timed.sort((a, b) => b.at - a.at || (a.path < b.path ? -1 : 1)).map(({ item }) => item)
}
