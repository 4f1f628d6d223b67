/** Files that people write and the server changes: through links, under one lock for all who have links to it, never past its rights. */
import { access, constants, readlink, realpath } from 'node:fs/promises'
import { dirname, isAbsolute } from 'node:path'
import {
  type FileStamp,
  FileUnusable,
  isMissing,
  type Lock,
  lookAt,
  type ReplaceOptions,
  replaceFile,
  withLock
} from '../../kernel/index.ts'

/**
 * Replaces a file by a text. Links stay, also one to a file that is not there yet, in a directory that is. Rejects with FileUnusable for
 * more than `most` bytes, which nobody would read, and for a file without any right to write: whoever took them away means it, and a replacement
 * would go past that.
 */
export async function replaceBounded(path: string, text: string, most: number, options: ReplaceOptions = {}): Promise<FileStamp> {
  if (Buffer.byteLength(text) > most) throw new FileUnusable(`it would be larger than ${most} bytes`)
  const target = await whereItLies(path)
  if (target !== path) await realpath(dirname(target))
  const found = await lookAt(target)
  if (found && (found.mode & 0o222) === 0) throw new FileUnusable('the file is read-only')
  return await replaceFile(target, text, options)
}

/** Runs `work` under the lock of a file (`withLock`), which all who have links to it share. */
export async function lockBounded<T>(path: string, work: (lock: Lock) => Promise<T>): Promise<T> {
  return await withLock(`${(await replaceable(path)) ?? path}.lock`, work)
}

/** Where it lies; undefined where nothing could take its place. */
async function replaceable(path: string): Promise<string | undefined> {
  const target = await whereItLies(path).catch(() => path)
  if (target === path) return path
  const found = await lookAt(target)
  if (found && !found.isFile()) return undefined
  const may = access(dirname(target), constants.W_OK)
  return await may.then(
    () => target,
    () => undefined
  )
}

/** Where a path leads, also while nothing is there. Rejects for links that go round. */
export async function whereItLies(path: string): Promise<string> {
  try {
    return await realpath(path)
  } catch (error) {
    if (!isMissing(error)) throw error
  }
  const link = await readlink(path).catch(() => undefined)
  // Not made shorter: the system follows links before it goes a directory up.
  return link === undefined ? path : await whereItLies(isAbsolute(link) ? link : `${dirname(path)}/${link}`)
}
