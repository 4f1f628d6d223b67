/** Files that people give the server: whatever has taken their place is told, and neither waited for nor read without end. */
import { closeSync, fstatSync, open, read, type Stats } from 'node:fs'
import { access, constants, readlink, realpath } from 'node:fs/promises'
import { dirname, isAbsolute } from 'node:path'
import { promisify } from 'node:util'
import { type FileStamp, forReading, isMissing, type ReplaceOptions, replaceFile } from './files.ts'
import { type Lock, withLock } from './lock.ts'
import { lookAt } from './look.ts'

/** What stands at a path is not read. The message is the end of a sentence, or a whole one where the reader says what it reads (`readBounded`). */
export class FileUnusable extends Error {
  override readonly name = 'FileUnusable'
}

/**
 * The bytes of a regular file, links followed. Rejects with FileUnusable for anything else and for one of more than `most` bytes, also when it
 * grows meanwhile; with the error of the system (ENOENT) for one that cannot be opened or read. It is opened without waiting, as a pipe may take
 * its place between the look and the opening. `what` begins the message: `it is larger than 10 bytes`; without it: `larger than 10 bytes`.
 */
export async function readBounded(path: string, most: number, what?: string): Promise<Buffer> {
  const unusable = (why: string) => new FileUnusable(what === undefined ? why : `${what} is ${why}`)
  const tooLarge = () => unusable(`larger than ${most} bytes`)
  const assertFits = (stats: Stats) => {
    if (!stats.isFile()) throw unusable('not a regular file')
    if (stats.size > most) throw tooLarge()
  }
  const found = await lookAt(path)
  if (found) assertFits(found) // what is none is not even opened: a device may notice
  const fd = await openToRead(path)
  try {
    const stats = fstatSync(fd) // of what is open the system knows it without the disk
    assertFits(stats)
    return await readToEnd(fd, stats.size, most, tooLarge)
  } finally {
    closeSync(fd)
  }
}

/**
 * Replaces such a file by a text. Links stay, also one to a file that is not there yet, in a directory that is. Rejects with FileUnusable for
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

/** Runs `work` under the lock of such a file (`withLock`), which all who have links to it share. */
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

/** Some file systems say 0 of files that have something in them, and any file may grow. */
async function readToEnd(fd: number, size: number, most: number, tooLarge: () => Error): Promise<Buffer> {
  const parts: Buffer[] = []
  let total = 0
  for (let room = size + 1; ; room = 64 * 1024) {
    const { buffer, bytesRead } = await bytesOf(fd, Buffer.allocUnsafe(room), 0, room, total)
    total += bytesRead
    if (total > most) throw tooLarge()
    parts.push(buffer.subarray(0, bytesRead))
    if (bytesRead === 0 || (bytesRead < room && total === size)) return parts.length === 1 ? parts[0]! : Buffer.concat(parts, total)
  }
}

const openToRead = promisify((path: string, done: (error: Error | null, fd: number) => void) => open(path, forReading, done))
const bytesOf = promisify(read)
