/** What the disk refuses: told in words, once, at the edge of the stores, or where nobody has told it before. */
import { constants } from 'node:os'
import { getSystemErrorMap } from 'node:util'
import { AppError, LeaseLost, PersistenceFailed } from '../errors.ts'

/** A 50003 that says what could not be saved or read, and why. */
export function unsaved(message: string, cause?: unknown): AppError {
  return new AppError(PersistenceFailed, { message, cause })
}

/**
 * Translates a failure of the file system or the database once, at the store's edge; bugs (a bad id or value) and AppErrors stay what they
 * are. The text names the thing and why, never its content.
 */
export function notSaved(what: string, error: unknown): unknown {
  const { syscall, code } = error as NodeJS.ErrnoException
  if (AppError.is(error) || !(syscall || code?.startsWith('LEVEL_'))) return error
  return unsaved(`${what} could not be saved or read${reasonOf(error)}`, error)
}

const { ENOSPC, EDQUOT, EROFS, EIO, EMFILE, ENFILE } = constants.errno
const scarce = new Set([ENOSPC, EDQUOT, EROFS, EIO, EMFILE, ENFILE].map(errno => -errno))
const others = /^(spawn|connect|listen|accept|bind)/

/** The answer for a failure that nobody translated: a disk that is full, broken or read-only is no bug of who met it. Undefined for all else. */
export function refusedByDisk(error: unknown): AppError | undefined {
  if (!(error instanceof Error)) return undefined
  if (AppError.is(error)) return error.code === PersistenceFailed.code || error instanceof LeaseLost ? error : undefined
  const { errno = 0, syscall = '' } = error as NodeJS.ErrnoException
  if (!scarce.has(errno) || syscall === '' || others.test(syscall)) return undefined
  return unsaved(`could not be saved or read${reasonOf(error)}`, error)
}

/** `: no space left on device`, in the system's words; empty when it gave none. The database puts them at the end of its own text. */
export function reasonOf(error: unknown): string {
  const { errno, code, message } = error as NodeJS.ErrnoException
  const words = errno === -EDQUOT ? 'disk quota exceeded' : getSystemErrorMap().get(errno ?? 0)?.[1] // Node has no name for that one
  const told = words ?? (code === 'LEVEL_IO_ERROR' ? message.slice(message.lastIndexOf(': ') + 2).toLowerCase() : undefined)
  return told === undefined ? '' : `: ${told}`
}
