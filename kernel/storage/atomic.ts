/** Whole-file replacement: a reader, and a crash at any moment, meets the old content or the new one, never a mix. */
import { type FileHandle, open, rename, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { AppError, PersistenceFailed } from '../errors.ts'
import { ensureDir, isMissing, syncDir } from './paths.ts'

/** `fsync` survives power loss; `write` survives `kill -9` only and is cheaper. */
export type Sync = 'fsync' | 'write'

export interface ReplaceOptions {
  /** Default `fsync`. */
  readonly sync?: Sync
  /** Default 0600. */
  readonly mode?: number
}

/**
 * Replaces `file` atomically through `<file>~` in the same directory (made when missing). Callers serialise per file: one temporary
 * name means that a crash leaves nothing to sweep, the next write reuses it. Throws the file system's error.
 */
export async function replaceFile(file: string, data: string | readonly Uint8Array[], options: ReplaceOptions = {}): Promise<void> {
  const temporary = `${file}~`
  const handle = await openFresh(temporary, options.mode ?? 0o600)
  try {
    try {
      if (typeof data === 'string') await handle.writeFile(data)
      else for (const chunk of data) await handle.writeFile(chunk)
      if (options.sync !== 'write') await handle.sync()
    } finally {
      await handle.close()
    }
    await rename(temporary, file)
  } catch (error) {
    await removeFile(temporary).catch(() => undefined) // the first error tells more
    throw error
  }
  if (options.sync !== 'write') await syncDir(dirname(file))
}

async function openFresh(file: string, mode: number): Promise<FileHandle> {
  try {
    return await open(file, 'w', mode)
  } catch (error) {
    if (!isMissing(error)) throw error
    await ensureDir(dirname(file))
    return open(file, 'w', mode)
  }
}

/** Removes a file; one that is not there is fine. Answers whether it was there. */
export async function removeFile(file: string): Promise<boolean> {
  try {
    await unlink(file)
    return true
  } catch (error) {
    if (isMissing(error)) return false
    throw error
  }
}

/** Translates a file system failure once, at the store's edge; AppErrors pass. The text names the thing, never its content. */
export function notSaved(what: string, error: unknown): AppError {
  return AppError.is(error) ? error : new AppError(PersistenceFailed, { message: `${what} could not be saved or read`, cause: error })
}

/** `2026-11-20T20-10-00-123Z`: a moment that fits into a file name. */
export function stamp(now: Date): string {
  return now.toISOString().replaceAll(/[:.]/g, '-')
}
