/** New sessions that begin with files: made in a directory of another name, which nobody takes for a session, and renamed when it is whole. */
import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { acquireLock, lockHolder, makeDirs } from '../../kernel/index.ts'
import { directories, names } from './disk.ts'

/** Of directories that are no sessions yet. */
const unfinishedPrefix = '.new-'

/**
 * Makes the directory `<parent>/<id>` of a session. When `fill` rejects nothing is left; what a dead process left, `removeUnfinished` takes
 * away.
 */
export async function makeFilled(parent: string, id: string, fill: (dir: string) => Promise<void>): Promise<void> {
  const dir = join(parent, `${unfinishedPrefix}${id}`)
  const lock = await acquireLock(`${dir}.lock`, {}) // first: without it the directory counts as left behind
  try {
    await makeDirs(dir, 0o700)
    await fill(dir)
    await rename(dir, join(parent, id))
  } catch (error) {
    await rm(dir, { recursive: true, force: true, maxRetries: 3 })
    throw error
  } finally {
    await lock?.release()
  }
}

/** Directories of sessions that were being made by a process that is gone. `root`: `<home>/sessions`. */
export async function removeUnfinished(root: string): Promise<void> {
  for (const workspace_id of await directories(root)) {
    const found = await names(join(root, workspace_id))
    const unfinished = found.filter(name => name.startsWith(unfinishedPrefix)).map(name => name.replace(/\.lock$/, ''))
    for (const name of new Set(unfinished)) {
      const dir = join(root, workspace_id, name)
      if (await lockHolder(`${dir}.lock`)) continue
      await rm(dir, { recursive: true, force: true, maxRetries: 3 })
      await rm(`${dir}.lock`, { force: true })
    }
  }
}
