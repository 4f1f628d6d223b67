/** The root of a workspace: what it has to be, and the id that follows from its text (a readable part and a hash). */
import { createHash } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { isAbsolute } from 'node:path'
import { AppError, invalid, isMissing, lookAt } from '../../kernel/index.ts'
import { PathMissing } from './service.ts'

/**
 * The text that identifies a root: forward slashes, one at a time (Windows begins with two what is on another machine), none at the end, no `.`
 * segments. Links and letter case stay as they are.
 */
export function rootKey(root: string): string {
  const text = `${root.replaceAll('\\', '/')}/`.replace(/(?<=.)\/(?:\.?\/)+/g, '/')
  let end = text.length
  while (end > 0 && text[end - 1] === '/') end--
  return text.slice(0, end)
}

/** Last segment of a root; empty for the file system's own root. */
export function baseName(root: string): string {
  const key = rootKey(root)
  return key.slice(key.lastIndexOf('/') + 1)
}

/** `wd_<slug>_<hash12>` (contract 3, Workspace object). */
export function workspaceId(root: string): string {
  const known = ids.get(root)
  if (known !== undefined) return known
  const id = idOf(root)
  if (ids.size >= rememberedIds) ids.clear()
  ids.set(root, id)
  return id
}

/** A list of workspaces asks for all of them each time. */
const ids = new Map<string, string>()
const rememberedIds = 1000

function idOf(root: string): string {
  const hash = createHash('sha256').update(rootKey(root), 'utf8').digest('hex').slice(0, 12)
  return `wd_${slugOf(baseName(root))}_${hash}`
}

function slugOf(base: string): string {
  const trim = (text: string) => text.replace(/^-+|-+$/g, '')
  const slug = trim(trim(base.toLowerCase().replace(/[^a-z0-9._-]+/g, '-')).slice(0, 40))
  return slug === '' || slug === '.' || slug === '..' ? 'workspace' : slug
}

/** Throws 40001 (detail at `field`) for what the system would take for another path: NUL, which ends one, and half a surrogate pair. */
export function assertSpelled(path: string, field: string): void {
  if (path.includes('\0')) throw invalid([{ path: field, message: 'must not contain a null character' }])
  if (/\p{Surrogate}/u.test(path)) throw invalid([{ path: field, message: 'must not contain half a surrogate pair' }])
}

/** Throws 40001 (detail at `field`, empty: the argument itself) for a path that is not absolute, PathMissing (40409) for anything but a directory. */
export async function assertDirectory(path: string, field: string): Promise<void> {
  if (!isAbsolute(path)) throw invalid([{ path: field, message: 'must be an absolute path' }])
  assertSpelled(path, field)
  if ((await lookAt(path))?.isDirectory()) return
  let reason = 'does not exist'
  let cause: unknown
  try {
    if ((await stat(path)).isDirectory()) return
    reason = 'is not a directory'
  } catch (error) {
    cause = error
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EACCES' || code === 'EPERM') reason = 'cannot be reached (no permission)'
    else if (!isMissing(error)) reason = `cannot be reached (${code ?? 'unknown error'})`
  }
  throw new AppError(PathMissing, { message: `path ${path} ${reason}`, cause })
}
