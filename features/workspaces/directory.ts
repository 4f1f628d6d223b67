/** Checks that a path names an existing directory. */
import { stat } from 'node:fs/promises'
import { isAbsolute } from 'node:path'
import { AppError, invalid } from '../../kernel/index.ts'
import { PathMissing } from './service.ts'

/** Throws 40001 (detail at `field`, empty: the argument itself) for a path that is not absolute, PathMissing (40409) for anything but a directory. */
export async function assertDirectory(path: string, field: string): Promise<void> {
  if (!isAbsolute(path)) throw invalid([{ path: field, message: 'must be an absolute path' }])
  if (path.includes('\0')) throw invalid([{ path: field, message: 'must not contain a null character' }])
  let reason = 'does not exist'
  let cause: unknown
  try {
    if ((await stat(path)).isDirectory()) return
    reason = 'is not a directory'
  } catch (error) {
    cause = error
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EACCES' || code === 'EPERM') reason = 'cannot be reached (no permission)'
    else if (code !== 'ENOENT' && code !== 'ENOTDIR') reason = `cannot be reached (${code ?? 'unknown error'})`
  }
  throw new AppError(PathMissing, { message: `path ${path} ${reason}`, cause })
}
