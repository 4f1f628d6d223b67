/** Where sessions lie in the home, and quick looks at that. */
import { type Stats, statSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'

/** Where all sessions live. */
export const sessionsRoot = (home: string): string => join(home, 'sessions')

/** In the directory of a session: it was closed while something waited in it. */
export const waitingFile = 'waiting'

const idForm = /^session_[A-Za-z0-9_-]{1,128}$/
export const isSessionId = (name: string): boolean => idForm.test(name)

/** In the store of states. */
export const documentId = (workspace_id: string, id: string): string => `${workspace_id}/${id}/state`

/**
 * Tells one content of a state file from the next; empty when there is none. Asked synchronously: 3 µs each, where the thread pool would take 50.
 */
export function stateStamp(root: string, workspace_id: string, id: string): string {
  const found = statNow(`${root}/${workspace_id}/${id}/state.json`) // without `join`, which would take its part of each comparison
  return found?.isFile() ? `${found.ino}.${found.size}.${found.mtimeMs}` : ''
}

/** Synchronous, as `stateStamp`. */
export const isThere = (path: string): boolean => statNow(path) !== undefined

function statNow(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch {
    return undefined // out of reach, which means "not here" as well
  }
}

export async function directories(dir: string): Promise<string[]> {
  try {
    return (await readdir(dir, { withFileTypes: true })).filter(entry => entry.isDirectory()).map(entry => entry.name)
  } catch {
    return [] // no sessions yet, or the directory left while we looked
  }
}

export const names = (dir: string): Promise<string[]> => readdir(dir).catch(() => []) // as above, or a file
