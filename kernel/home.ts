/**
 * The home directory, made for its owner alone, and that of the user, which it usually lies in. Files that people give the server: whatever has
 * taken their place is told, and neither waited for nor read without end.
 */
import { randomUUID } from 'node:crypto'
import {
  closeSync,
  fstatSync,
  linkSync,
  mkdirSync,
  open,
  openSync,
  read,
  readFileSync,
  type Stats,
  statSync,
  unlinkSync,
  writeFileSync
} from 'node:fs'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join } from 'node:path'
import { promisify } from 'node:util'
import { developerError } from './errors.ts'
import { forReading } from './storage/files.ts'
import { lookAt } from './storage/look.ts'
import { refusedByDisk } from './storage/refusals.ts'

const openToRead = promisify((path: string, done: (error: Error | null, fd: number) => void) => open(path, forReading, done))
const bytesOf = promisify(read)

/**
 * Makes the directory and its missing parents (0700). Throws `home_unusable`, which names the home and the reason. Step by step: the
 * recursive call of the library never returns where a parent takes no entries (`/proc`).
 */
export function makeHome(home: string): void {
  try {
    makeStep(home)
  } catch (error) {
    throw developerError('home_unusable', home, (error as Error).message)
  }
}

function makeStep(dir: string): void {
  const found = statSync(dir, { throwIfNoEntry: false })
  if (found?.isDirectory()) return
  if (found) throw developerError('directory_irregular', dir)
  if (dirname(dir) !== dir) makeStep(dirname(dir))
  try {
    mkdirSync(dir, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error // another server that starts now may have been faster
  }
}

/** Locks are taken by giving a file a second name. Throws `home_unlinkable` where the file system has none (exFAT, FAT, some shared folders). */
export function assertLinks(home: string): void {
  const file = join(home, `.${randomUUID()}~`)
  try {
    writeFileSync(file, '', { mode: 0o600 })
  } catch {
    return // a disk that takes nothing says so itself
  }
  try {
    linkSync(file, `${file}~`)
    unlinkSync(`${file}~`)
  } catch (error) {
    if (!refusedByDisk(error)) throw developerError('home_unlinkable', home, (error as NodeJS.ErrnoException).code ?? String(error))
  } finally {
    unlinkSync(file)
  }
}

/** No file that is read at the start is larger, bytes; the configuration may be so large. */
const mostBytes = 8 * 1024 * 1024

/**
 * The text of a file, at the start. Throws at once for pipes, devices and directories, whose reading could hang, and for more than 8 MiB; system
 * errors pass as they are.
 */
export function readRegularFile(path: string): string {
  const file = openSync(path, forReading)
  try {
    const found = fstatSync(file)
    if (!found.isFile()) throw developerError('file_irregular', path)
    if (found.size > mostBytes) throw developerError('file_oversized', path, mostBytes)
    return readFileSync(file, 'utf8')
  } finally {
    closeSync(file)
  }
}

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

/** Home directory of the user, absolute; undefined when neither HOME nor the system names one, as of a container's user without an entry. */
export function knownHome(): string | undefined {
  try {
    const found = homedir()
    return isAbsolute(found) ? found : undefined
  } catch {
    return undefined // the system knows nobody of this id
  }
}

/** What `~` stands for: `/` when nobody names a home, as in a shell. */
export function homeOfUser(): string {
  return knownHome() ?? '/'
}
