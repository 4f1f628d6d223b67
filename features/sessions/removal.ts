/**
 * Taking the data of a session away. One rename makes it: the directory gets a name that is no session's, so that no process finds it any
 * more; then its journal of events and the directory itself are deleted. What a crash leaves of that goes at the next start.
 */
import { randomBytes } from 'node:crypto'
import { rename, rm, rmdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { AppError, type Logger, PersistenceFailed, type Streams, yieldToLoop } from '../../kernel/index.ts'
import { SessionMissing } from './contract.ts'
import { isSessionId, names, stateStamp } from './disk.ts'

const removedForm = /^\.removed-(session_[A-Za-z0-9_-]{1,128})-[0-9a-f]{12}$/

/** The error says that there is no such session (any more). */
export function isNoSession(error: unknown): boolean {
  return AppError.is(error) && error.code === SessionMissing.code
}

/** Gives the directory of a session its last name, and answers that. Throws PersistenceFailed when it cannot be renamed. */
export async function takeAway(dir: string, id: string): Promise<string> {
  const removed = join(dirname(dir), `.removed-${id}-${randomBytes(6).toString('hex')}`)
  try {
    await rename(dir, removed)
    return removed
  } catch (cause) {
    throw new AppError(PersistenceFailed, { message: 'the directory of the session could not be taken away', cause })
  }
}

/** Deletes what `takeAway` has taken away, and the journal of the session; with the last session goes the directory of the workspace. */
export async function discard(removed: string, id: string, streams: Pick<Streams, 'remove'>): Promise<void> {
  await streams.remove(id)
  await rm(removed, { recursive: true, force: true, maxRetries: 3 })
  await removeEmpty(dirname(removed))
}

/** Every list of sessions looks at the directories of all workspaces. */
async function removeEmpty(dir: string): Promise<void> {
  await rmdir(dir).catch(() => undefined) // something is in it
}

/** Deletes what a process that died has left of removals. */
export async function discardLeft(root: string, streams: Pick<Streams, 'remove'>, log: Logger): Promise<void> {
  for (const workspace of await names(root)) {
    for (const name of await names(join(root, workspace))) {
      const others = yieldToLoop()
      if (others) await others
      if (isSessionId(name) && (await stateStamp(root, workspace, name)) === '') await removeUnbegun(join(root, workspace, name))
      const id = removedForm.exec(name)?.[1]
      if (id === undefined) continue
      await discard(join(root, workspace, name), id, streams).catch(err =>
        log.warn({ err, session_id: id }, 'the rest of a deleted session could not be removed')
      )
    }
    await removeEmpty(join(root, workspace))
  }
}

/** Whoever makes one right now is done long before. */
const unbegunMs = 60 * 60 * 1000

/** Nothing came into the directory of a session before its process died. */
async function removeUnbegun(dir: string): Promise<void> {
  const found = await stat(dir).catch(() => undefined)
  if (found && Date.now() - found.mtimeMs > unbegunMs) await removeEmpty(dir)
}
