/** Statuses for listings, of the repositories that what is listed belongs to. */
import { posix, relative, sep } from 'node:path'
import { AppError, firstAbort } from '../../kernel/index.ts'
import type { Root } from '../file-search/index.ts'
import { type FileStatus, type StatusOf, withPin } from '../fs/index.ts'
import { GitUnavailable, isUnavailable, repositoryAt, topOf } from './command.ts'
import { type Status, statusOf } from './status.ts'

/** How long a listing waits for git: a repository may have it wait for ever. */
const LISTING_MS = 5000

/** Statuses of what is below these directories. What belongs to no repository, or to one that git has not looked at in time, has none. */
export async function statusesBelow(root: Root, directories: readonly string[], signal: AbortSignal): Promise<StatusOf> {
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(new AppError(GitUnavailable, { message: `git took longer than ${LISTING_MS} ms` })), LISTING_MS)
  const { signal: until, end } = firstAbort(signal, late.signal)
  try {
    const known = new Map<string, StatusOf>()
    for (const directory of directories) await look(root, directory, known, until)
    return nearest(known)
  } finally {
    end()
    clearTimeout(timer)
  }
}

/** Adds the repository around a directory, by its place in the workspace. */
async function look(root: Root, directory: string, known: Map<string, StatusOf>, signal: AbortSignal): Promise<void> {
  const real = await withPin(root, directory, async pin => pin.real).catch(() => undefined) // what is wrong with it, the listing says
  if (real === undefined) return
  try {
    const top = await topOf(real)
    const cwd = isAbove(top, root.real) ? root.real : top
    const place = relative(root.real, cwd).split(sep).join('/')
    if (!known.has(place)) add(await statusOf(await repositoryAt(cwd, signal), true, signal), place, known)
  } catch (error) {
    if (!isUnavailable(error)) throw error
  }
}

const isAbove = (top: string, dir: string) => relative(dir, top).split(sep)[0] === '..'

function add(status: Status, place: string, known: Map<string, StatusOf>): void {
  known.set(place, lookUp(status))
  for (const [path, inside] of status.submodules) add(inside, posix.join(place, path), known)
}

/** The status that the nearest repository above a path has for it. */
function nearest(known: ReadonlyMap<string, StatusOf>): StatusOf {
  return (path, directory) => {
    for (let end = path.lastIndexOf('/'); ; end = path.lastIndexOf('/', end - 1)) {
      const status = known.get(path.slice(0, Math.max(end, 0)))
      if (status) return status(path.slice(end + 1), directory)
      if (end < 0) return undefined
    }
  }
}

/** A directory has the status of what is in it. */
function lookUp({ entries }: Status): StatusOf {
  const whole = entries.get('./')
  const folders = new Map<string, FileStatus>()
  const changed = new Set<string>()
  for (const [path, status] of entries) {
    if (path.endsWith('/')) folders.set(path.slice(0, -1), status)
    if (status === 'ignored') continue
    for (let end = path.lastIndexOf('/', path.length - 2); end > 0; end = path.lastIndexOf('/', end - 1)) {
      if (changed.has(path.slice(0, end))) break
      changed.add(path.slice(0, end))
    }
  }
  return (path, directory) => {
    const own = entries.get(path) ?? whole
    if (own) return own
    for (let end = path.length; end > 0; end = path.lastIndexOf('/', end - 1)) {
      const status = folders.get(path.slice(0, end))
      if (status) return status
    }
    return directory && changed.has(path) ? 'modified' : 'clean'
  }
}
