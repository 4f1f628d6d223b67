/**
 * Files of a home: where an id lies, directories that last, whole-file replacement. `~` is in no id, so temporary files and helpers
 * carry it in their names.
 */
import { randomUUID } from 'node:crypto'
import { type BigIntStats, closeSync, constants, fstatSync, fsync, openSync, readFileSync, utimesSync, writevSync } from 'node:fs'
import * as node from 'node:fs/promises'
import { dirname, join, resolve, sep } from 'node:path'
import { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { developerError } from '../errors.ts'
import { isMissing, ThisThread } from './look.ts'
import { unsaved } from './refusals.ts'

/** What a change goes through on its way to the disk. Another set may stand in: one that counts flushes, or lets a write fail. */
export type FileCalls = Pick<typeof node, 'open' | 'rename' | 'link' | 'unlink' | 'mkdir' | 'readFile' | 'readdir' | 'utimes'> & {
  /** Writes on this thread; answers how many bytes were taken, or undefined where only another thread can write. */
  readonly writeNow?: (handle: node.FileHandle, lines: readonly Uint8Array[]) => number | undefined
  /** Puts the names in a directory, which is open, on the medium. */
  readonly flushNames: (dir: string, fd: number) => Promise<void>
}

const flushed = promisify(fsync)

export const nodeFiles: FileCalls = {
  ...node,
  writeNow: (handle, lines) => writevSync(handle.fd, lines),
  flushNames: (_dir, fd) => flushed(fd)
}

const here = new ThisThread()

export interface ReplaceOptions {
  /** Default `fsync`: content and name are on the medium when the promise resolves. `write` survives `kill -9` only and is cheaper. */
  readonly sync?: 'fsync' | 'write' | undefined
  /** Rights of the file; default 0600, less what the umask takes. */
  readonly mode?: number
  /** The file takes over these rights exactly and, where the system allows it, this owner. */
  readonly like?: { readonly mode: number; readonly uid: number; readonly gid: number } | undefined
  /** Nobody keeps writers apart: the temporary file gets a name of its own, `.<random>~` (which a crash leaves). Default false: `<file>~`. */
  readonly unserialised?: boolean
  /** Where the content is written first, in place of `<file>~`; on the same file system. */
  readonly temporary?: string | undefined
  /** Asked right before the name changes; a rejection leaves the old content. */
  readonly confirm?: () => Promise<void>
  readonly files?: FileCalls | undefined
}

/** Tells one content of a file from the next: a replaced file has another inode, even within one tick of the clock. */
export type FileStamp = Pick<BigIntStats, 'ino' | 'size' | 'mtimeNs'>

/** A text, or chunks of bytes as they come. */
export type FileContent = string | Iterable<Uint8Array> | AsyncIterable<Uint8Array>

/**
 * Replaces `file` whole: a reader, and a crash at any moment, meets the old content or the new one, never a mix. Goes through a temporary
 * file in the same directory (made with 0700 when missing). Callers serialise per file unless they say otherwise. Answers the stamp of
 * the new content; throws the file system's error.
 */
export async function replaceFile(file: string, content: FileContent, options: ReplaceOptions = {}): Promise<FileStamp> {
  const { files = nodeFiles } = options
  const { temporary, stamp } = await writeTemporary(file, content, options)
  const rename = async () => {
    await options.confirm?.()
    await files.rename(temporary, file)
  }
  try {
    await (options.sync === 'write' ? rename() : named(dirname(file), rename, files))
  } catch (error) {
    await removeFile(temporary, files).catch(() => undefined) // the first error tells more
    throw error
  }
  return stamp
}

/**
 * Changes a name in a directory, on the medium. The directory is opened before: where no descriptor was left afterwards, the change would be refused
 * and there.
 */
async function named<T>(dir: string, change: () => Promise<T>, files: FileCalls): Promise<T> {
  const opened = await openDir(dir).catch((error: unknown) => {
    if (isMissing(error) || isUnsyncable(error)) return undefined // a missing one may be made meanwhile
    throw error
  })
  let changed: T
  try {
    changed = await change()
  } catch (error) {
    await opened?.close().catch(() => undefined) // the first error tells more
    throw error
  }
  await syncDir(dir, files, opened)
  return changed
}

/** Like `replaceFile` for a file that must not be there yet: of several makers one wins, and the others get false. */
export async function makeFile(file: string, content: FileContent, files = nodeFiles): Promise<boolean> {
  const { temporary } = await writeTemporary(file, content, { files, unserialised: true })
  try {
    return await named(dirname(file), () => linkIfFree(temporary, file, files), files)
  } finally {
    await removeFile(temporary, files).catch(() => undefined) // the outcome is decided
  }
}

/** Gives a file a second name. False: something has that name already. */
export async function linkIfFree(file: string, name: string, files: FileCalls): Promise<boolean> {
  try {
    await files.link(file, name)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/** A stream may fail before somebody reads it, who hears of it all the same; it is no error that nobody caught. */
export function heardLater(content: unknown): void {
  if (content instanceof Readable) content.on('error', () => undefined)
}

async function writeTemporary(
  file: string,
  content: FileContent,
  options: ReplaceOptions
): Promise<{ temporary: string; stamp: FileStamp }> {
  const { files = nodeFiles, like } = options
  const temporary = options.temporary ?? (options.unserialised ? join(dirname(file), `.${randomUUID()}~`) : `${file}~`)
  const mode = like ? like.mode & 0o777 : (options.mode ?? 0o600)
  heardLater(content)
  const handle = options.temporary ? await files.open(temporary, 'wx', mode) : await openFresh(temporary, mode, files)
  try {
    try {
      if (typeof content === 'string') await writeBytes(handle, [Buffer.from(content)], files)
      else for await (const chunk of content) await handle.writeFile(chunk)
      if (like) {
        await handle.chown(like.uid, like.gid).catch(() => undefined) // only root may give files away
        await handle.chmod(like.mode & 0o7777) // the umask took part in open, and a new owner ends special bits
      }
      if (options.sync !== 'write') await handle.sync()
      return { temporary, stamp: fstatSync(handle.fd, { bigint: true }) } // of an open file the system answers from memory
    } finally {
      await handle.close()
    }
  } catch (error) {
    await removeFile(temporary, files).catch(() => undefined) // the first error tells more
    throw error
  }
}

/** Writes where an open file is: few bytes on this thread while it is quick, others, and what is left of them, by another one. */
export function writeBytes(
  handle: node.FileHandle,
  parts: readonly Uint8Array[],
  files: FileCalls,
  thread = here
): Promise<void> | undefined {
  let left = parts.reduce((sum, part) => sum + part.length, 0)
  let rest = parts
  const took = (bytes: number) => {
    if (bytes === 0) throw unsaved('the file takes no bytes')
    left -= bytes
    if (left > 0) rest = [Buffer.concat(rest).subarray(bytes)] // a full disk takes a part
  }
  if (left > 0 && left <= ThisThread.bytes && thread.isQuick) {
    const taken = thread.run(() => files.writeNow?.(handle, rest))
    if (taken !== undefined) took(taken)
  }
  const write = async () => {
    while (left > 0) took((await handle.writev([...rest])).bytesWritten)
  }
  return left > 0 ? write() : undefined
}

/** What a crash left there goes: it may have been made with other rights. */
async function openFresh(file: string, mode: number, files: FileCalls): Promise<node.FileHandle> {
  const open = () => files.open(file, 'wx', mode)
  try {
    return await open()
  } catch (error) {
    if (isMissing(error)) await ensureDir(dirname(file), files)
    else if ((error as NodeJS.ErrnoException).code === 'EEXIST') await removeFile(file, files)
    else throw error
    return open()
  }
}

/** Removes a file; one that is not there is fine. Answers whether it was there. */
export async function removeFile(file: string, files: FileCalls = nodeFiles): Promise<boolean> {
  return (await unlessMissing(files.unlink(file).then(() => true))) ?? false
}

const segment = /^[A-Za-z0-9._@+-]{1,200}$/

/**
 * Throws on what is no id of a document, log or blob: relative paths of segments out of `A-Z a-z 0-9 . _ @ + -`, at most 200 characters
 * each and 8 deep. `suffix` (`.json`) may not stand in an inner segment. A bad id is a bug of the caller.
 */
export function checkStoreId(id: string, suffix = ''): void {
  const parts = id.split('/')
  const bad = parts.some((part, index) => {
    if (!segment.test(part) || part === '.' || part === '..') return true
    return suffix !== '' && index < parts.length - 1 && part.includes(suffix)
  })
  if (bad || parts.length > 8) throw developerError('store_id_bad', id)
}

/** The file of an id: `<dir>/<id><suffix>`. */
export function fileOf(dir: string, id: string, suffix: string): string {
  checkStoreId(id, suffix)
  return join(dir, id) + suffix
}

/** Ids of the files below `dir`, sorted; helpers, temporary and damaged files are left out. A missing directory has none. */
export async function idsBelow(dir: string, suffix: string): Promise<string[]> {
  const ids: string[] = []
  const walk = async (at: string, prefix: string, depth: number): Promise<void> => {
    for (const entry of (await unlessMissing(node.readdir(at, { withFileTypes: true }))) ?? []) {
      const name = entry.name
      if (entry.isDirectory()) {
        if (segment.test(name) && depth < 8) await walk(join(at, name), `${prefix}${name}/`, depth + 1)
      } else if (entry.isFile() && name.endsWith(suffix)) {
        const stem = name.slice(0, name.length - suffix.length)
        if (segment.test(stem)) ids.push(prefix + stem)
      }
    }
  }
  await walk(resolve(dir), '', 1)
  return ids.sort()
}

/**
 * Makes a directory and what is above it; answers the first that it made. As `mkdir` with `recursive`, which says of a disk that is read-only or
 * broken that the directory is missing: what cannot be made is asked for alone then, for the reason.
 */
export async function makeDirs(dir: string, mode = 0o777, files: Pick<FileCalls, 'mkdir'> = nodeFiles): Promise<string | undefined> {
  try {
    return await files.mkdir(dir, { recursive: true, mode })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'ENOENT') throw error
    const missing = await firstMissing(resolve(dir))
    await files.mkdir(missing, { mode }).catch((reason: NodeJS.ErrnoException) => {
      throw reason.code === 'EEXIST' ? error : reason // a link that leads nowhere
    })
    if (missing !== resolve(dir)) await makeDirs(dir, mode, files)
    return missing
  }
}

async function firstMissing(dir: string): Promise<string> {
  const above = dirname(dir)
  return above === dir || (await unlessMissing(node.stat(above))) ? dir : firstMissing(above)
}

/** Makes a directory (0700) and what is above it, durably: new entries are flushed to their parents. */
export async function ensureDir(dir: string, files: FileCalls = nodeFiles): Promise<void> {
  const first = await makeDirs(dir, 0o700, files)
  if (first === undefined) return
  let at = resolve(dir)
  const top = dirname(resolve(first))
  while (at !== top && at.startsWith(top.endsWith(sep) ? top : top + sep)) {
    at = dirname(at)
    await syncDir(at, files)
  }
}

/** Some file systems and platforms cannot open or flush a directory: there names follow with the file system's own schedule. */
const cannotSyncDirs = new Set(['EACCES', 'EBADF', 'EINVAL', 'EISDIR', 'ENOTSUP', 'EPERM'])

/** Work in order, one at a time per key. A key is forgotten as soon as nothing waits for it. */
export class KeyedQueue {
  readonly #last = new Map<string, Promise<unknown>>()

  /** Runs `work` after everything that was asked for this key before; failures of others do not matter. */
  run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key)
    const result = before ? before.then(work, work) : work()
    this.#last.set(key, result)
    const forget = () => {
      if (this.#last.get(key) === result) this.#last.delete(key)
    }
    result.then(forget, forget)
    return result
  }

  isBusy(key: string): boolean {
    return this.#last.has(key)
  }

  async idle(): Promise<void> {
    while (this.#last.size > 0) await Promise.allSettled(this.#last.values())
  }
}

const flushes = new KeyedQueue()
/** Flushes of directories that have not begun. */
const coming = new Map<string, Promise<void>>()

/** Flushes a directory's entries, where the system can do that. Callers that meet share the flush that begins after all of them. */
export function syncDir(dir: string, files: FileCalls = nodeFiles, opened?: OpenDir): Promise<void> {
  if (files !== nodeFiles) return flushDir(dir, files, opened)
  if (!flushes.isBusy(dir)) return flushes.run(dir, () => flushDir(dir, files, opened))
  const flush = () => {
    coming.delete(dir)
    return flushDir(dir, files, opened)
  }
  if (coming.has(dir)) opened?.close().catch(() => undefined) // nothing was written through it
  const shared = coming.get(dir) ?? flushes.run(dir, flush)
  coming.set(dir, shared)
  return shared
}

type OpenDir = Pick<node.FileHandle, 'fd' | 'close'>

/** Of the three calls of a flush only that itself takes its time, while the disk is quick. */
async function openDir(dir: string): Promise<OpenDir> {
  if (!here.isQuick) return await node.open(dir, 'r')
  const fd = here.run(() => openSync(dir, 'r'))
  return { fd, close: async () => closeSync(fd) }
}

async function flushDir(dir: string, files: FileCalls, given?: OpenDir): Promise<void> {
  try {
    const opened = given ?? (await openDir(dir))
    await files.flushNames(dir, opened.fd).finally(() => opened.close())
  } catch (error) {
    if (!isUnsyncable(error)) throw error
  }
}

const isUnsyncable = (error: unknown) => cannotSyncDirs.has((error as NodeJS.ErrnoException).code ?? '')

/** What work with a file answers; undefined when the file is not there. */
export async function unlessMissing<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

/** Does something in a directory, which is made when it is not there. */
export async function inDir<T>(dir: string, work: () => Promise<T>, files: FileCalls = nodeFiles): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!isMissing(error)) throw error
    await ensureDir(dir, files)
    return await work()
  }
}

/** How files are opened for reading: a pipe in place of one is empty, where it would keep a thread until somebody writes to it. */
export const forReading = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)

/** The text of a file; undefined when it is not there. */
export function readIfThere(file: string, files: FileCalls = nodeFiles): Promise<string | undefined> {
  return unlessMissing(files.readFile(file, { encoding: 'utf8', flag: forReading }))
}

/** The same of a file that is known to be small, as a lock is. */
export function readSmall(file: string, files: FileCalls = nodeFiles): Promise<string | undefined> {
  if (files !== nodeFiles || !here.isQuick) return readIfThere(file, files)
  const flag = forReading as unknown as string // Node takes numbers, its types do not say so
  return unlessMissing((async () => here.run(() => readFileSync(file, { encoding: 'utf8', flag })))())
}

/** Sets both times of a file to now. */
export async function touch(file: string, files: FileCalls): Promise<void> {
  const at = new Date()
  if (files === nodeFiles && here.isQuick) here.run(() => utimesSync(file, at, at))
  else await files.utimes(file, at, at)
}
