/** Where sessions lie in the home, and quick looks at that. */
import type { Stats } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { foundAt, isMissing } from '../../kernel/index.ts'

/** Where all sessions live. */
export const sessionsRoot = (home: string): string => join(home, 'sessions')

/** In the directory of a session: it was closed while something waited in it. */
export const waitingFile = 'waiting'

const idForm = /^session_[A-Za-z0-9_-]{1,128}$/
export const isSessionId = (name: string): boolean => idForm.test(name)

/** In the store of states. */
export const documentId = (workspace_id: string, id: string): string => `${workspace_id}/${id}/state`

/** Tells one content of a state file from the next; empty when there is none, or none to be seen. At once where the disk is quick. */
export function stateStamp(root: string, workspace_id: string, id: string): string | Promise<string> {
  try {
    const found = foundAt(`${root}/${workspace_id}/${id}/state.json`, root) // without `join`, which would take its part of each comparison
    return found instanceof Promise ? found.then(stampOf, () => '') : stampOf(found)
  } catch {
    return ''
  }
}

const stampOf = (found: Stats | undefined) => (found?.isFile() ? `${found.ino}.${found.size}.${found.mtimeMs}` : '')

/**
 * What may not be looked at is not here either. Rejects where the disk does not say: whoever took that for "gone" would forget a session, or
 * delete what belongs to it. `near`: as with `foundAt`.
 */
export async function isThere(path: string, near?: string): Promise<boolean> {
  try {
    return (await foundAt(path, near)) !== undefined
  } catch (error) {
    if (/^(EACCES|EPERM|ELOOP)$/.test((error as NodeJS.ErrnoException).code ?? '')) return false
    throw error
  }
}

/** Rejects where the disk does not say. */
export async function directoriesIn(dir: string): Promise<string[]> {
  try {
    return (await readdir(dir, { withFileTypes: true })).filter(entry => entry.isDirectory()).map(entry => entry.name)
  } catch (error) {
    if (isMissing(error)) return [] // no sessions yet, or the directory left while we looked
    throw error
  }
}

export const directories = (dir: string): Promise<string[]> => directoriesIn(dir).catch(() => [])

/** Undefined where the disk does not say. */
export const namesIn = (dir: string): Promise<string[] | undefined> =>
  readdir(dir).catch((error: unknown) => (isMissing(error) ? [] : undefined)) // as above, or a file

export const names = async (dir: string): Promise<string[]> => (await namesIn(dir)) ?? []
