/**
 * Files of JSON lines, for logs and for journals: appended in whole lines, cut back after a write that failed or tore, read in slices,
 * with damaged lines copied aside.
 */
import { constants } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setImmediate as nextLoop } from 'node:timers/promises'
import { AppError, PersistenceFailed } from '../errors.ts'
import {
  ensureDir,
  type FileCalls,
  type FileContent,
  isMissing,
  nodeFiles,
  quarantineFile,
  readIfThere,
  removeFile,
  replaceFile,
  syncDir
} from './files.ts'
import { KeyedQueue } from './keyed-queue.ts'

export interface LineFilesOptions {
  /** When lines are put on the medium: before `append` resolves, within a second and at closing, or when the system likes. */
  readonly flush: 'each' | 'later' | 'never'
  /** Files kept open between writes; the least recently used are closed. */
  readonly handles: number
  readonly files?: FileCalls | undefined
  /** Hears of what was repaired or may be lost, by file. */
  warn(file: string, text: string, fields: object): void
}

/** Where a file ends as its writer knows it: its lines at `end`, the file itself at `size`. */
export interface KnownEnd {
  readonly end: number
  readonly size: number
}

export interface Line {
  readonly text: string
  /** Byte position of its first character. */
  readonly start: number
  /** False for the last one when no newline ends it. */
  readonly ended: boolean
}

export interface Reading extends KnownEnd {
  /** Tells the file from one that replaces it; 0 when there was none. */
  readonly ino: number
  /** Lines that could not be used. */
  readonly damaged: number
}

interface OpenFile {
  readonly handle: FileHandle
  /** Bytes that are known to be good. */
  end: number
  /** When it was last seen to be ours. */
  seenAt: number
  /** Its name is not flushed yet. */
  fresh: boolean
  unflushed: boolean
  flushing: Promise<void>
}

const flushEveryMs = 1000
/** A file that is flushed later is looked at so often at most; where each append waits for the medium, the look costs nothing. */
const sureMs = 100

/** The files of one kind of store. Work on one file is done in the order of the calls. */
export class LineFiles {
  readonly #options: LineFilesOptions
  readonly #files: FileCalls
  readonly #queue = new KeyedQueue()
  /** In the order of use. */
  readonly #open = new Map<string, OpenFile>()
  /** Where files end that could not be cut after a failed write: what was refused must not come back. */
  readonly #cutTo = new Map<string, number>()
  readonly #evicting = new Set<Promise<void>>()
  #timer: NodeJS.Timeout | undefined

  constructor(options: LineFilesOptions) {
    this.#options = options
    this.#files = options.files ?? nodeFiles
  }

  /**
   * Appends lines, each with its newline, to a file that is made (0600) when needed. Resolves to the new end when they would survive
   * `kill -9` (with `flush: 'each'` a power loss, too). When it rejects, nothing of them is in the file or comes back later.
   *
   * `known`, as the last call or a reading told it: what follows the good lines is cut, and a file that somebody else has written to or
   * removed is refused. `empty`: the file must be empty or missing. Without it the tail is repaired: a last line that only lacks its
   * newline stays.
   */
  append(file: string, lines: readonly Uint8Array[], known?: KnownEnd | 'empty'): Promise<number> {
    return this.#queue.run(file, async () => {
      const opened = await this.#get(file, known)
      try {
        await writeAll(opened.handle, lines)
        if (this.#options.flush === 'each') await opened.handle.datasync()
      } catch (error) {
        this.#cutTo.set(file, opened.end)
        opened.unflushed = false
        await this.#cut(opened.handle, file, opened.end).catch(() => undefined) // then it is cut when it is opened again
        await this.#close(file).catch(() => undefined) // the write error tells more
        throw error
      }
      for (const line of lines) opened.end += line.length
      if (this.#options.flush === 'later') this.#flushLater(opened)
      return opened.end
    })
  }

  /** Replaces the whole file, on the medium unless `flush` is never. */
  replace(file: string, content: FileContent): Promise<void> {
    return this.#queue.run(file, async () => {
      await this.#close(file)
      await replaceFile(file, content, { files: this.#files, sync: this.#options.flush === 'never' ? 'write' : 'fsync' })
      this.#cutTo.delete(file)
    })
  }

  /** Removes the file and the copies of its damaged lines. */
  remove(file: string): Promise<void> {
    return this.#queue.run(file, async () => {
      await this.#close(file)
      await removeFile(file, this.#files)
      this.#cutTo.delete(file)
      await removeFile(`${file}.damaged`, this.#files)
    })
  }

  /** Moves the file out of the way; answers where it is now, or undefined when it was not there. */
  quarantine(file: string): Promise<string | undefined> {
    return this.#queue.run(file, async () => {
      await this.#close(file)
      this.#cutTo.delete(file)
      return quarantineFile(file, this.#files)
    })
  }

  /** Closes a file; what waits for the medium is flushed first. */
  release(file: string): Promise<void> {
    return this.#queue.run(file, () => this.#close(file))
  }

  /** Waits for what was asked for, then flushes and closes all files. */
  async close(): Promise<void> {
    await this.#queue.idle()
    clearTimeout(this.#timer)
    this.#timer = undefined
    const ends = await Promise.allSettled([...this.#open.keys()].map(file => this.release(file)))
    const failures = ends.flatMap(end => (end.status === 'rejected' ? [end.reason] : []))
    if (failures.length > 0) throw new AggregateError(failures, 'files of lines did not close cleanly')
  }

  /**
   * Calls `take` with every line that is acknowledged (a missing file has none), with passes of the event loop in between. `take` answers
   * why a line cannot be used; such lines are copied, once each, to `<file>.damaged`.
   */
  async read(file: string, take: (line: Line) => string | undefined): Promise<Reading> {
    const damaged: string[] = []
    let room = quarantineBytes
    let count = 0
    let first: { first_byte: number; reason: string } | undefined
    const ends = await eachLine(this.#files, file, this.#open.get(file)?.end ?? this.#cutTo.get(file) ?? Number.POSITIVE_INFINITY, line => {
      const reason = take(line)
      if (reason === undefined) return
      count++
      first ??= { first_byte: line.start, reason }
      room -= line.text.length
      if (room > 0) damaged.push(line.text)
    })
    if (first) {
      this.#options.warn(file, 'damaged lines skipped, copied to the .damaged file beside', { count, ...first })
      await this.#keepDamaged(file, damaged)
    }
    return { ...ends, damaged: count }
  }

  async #get(file: string, known: KnownEnd | 'empty' | undefined): Promise<OpenFile> {
    const kept = this.#open.get(file)
    if (kept) {
      const { end } = kept
      const isMeant = known === undefined || (known === 'empty' ? end === 0 : known.end === end)
      if (isMeant && (await this.#isOurs(kept))) {
        this.#open.delete(file)
        this.#open.set(file, kept)
        return kept
      }
      await this.#close(file)
    }
    const opened = await this.#make(file, known)
    this.#open.set(file, opened)
    await this.#evict()
    return opened
  }

  /** Lines for a removed file would be lost, and what somebody else has written must not be mixed with ours. */
  async #isOurs(opened: OpenFile): Promise<boolean> {
    const now = performance.now()
    if (this.#options.flush === 'later' && now - opened.seenAt < sureMs) return true
    const { nlink, size } = await opened.handle.stat()
    opened.seenAt = now
    return nlink > 0 && size === opened.end
  }

  async #make(file: string, known: KnownEnd | 'empty' | undefined): Promise<OpenFile> {
    const handle = await this.#openAppend(file, known)
    try {
      const { size } = await handle.stat()
      const end = await this.#goodEnd(file, handle, size, known)
      if (end < size) {
        this.#options.warn(file, 'torn tail cut off', { bytes: size - end })
        await this.#cut(handle, file, end)
      }
      if (size === 0 && this.#options.flush === 'each') await syncDir(dirname(file), this.#files)
      return { handle, end, seenAt: performance.now(), fresh: size === 0, unflushed: false, flushing: Promise.resolve() }
    } catch (error) {
      await handle.close()
      throw error
    }
  }

  async #openAppend(file: string, known: KnownEnd | 'empty' | undefined): Promise<FileHandle> {
    if (typeof known === 'object') return this.#files.open(file, constants.O_RDWR | constants.O_APPEND)
    const open = () => this.#files.open(file, 'a+', 0o600)
    try {
      return await open()
    } catch (error) {
      if (!isMissing(error)) throw error
      await ensureDir(dirname(file), this.#files)
      return open()
    }
  }

  async #goodEnd(file: string, handle: FileHandle, size: number, known: KnownEnd | 'empty' | undefined): Promise<number> {
    const cutTo = this.#cutTo.get(file)
    if (cutTo !== undefined && cutTo <= size) return cutTo
    if (known === undefined) return repairTail(handle, size)
    if (known === 'empty' && size === 0) return 0
    if (known !== 'empty' && size >= known.end && (size === known.size || size === known.end)) return known.end
    throw new AppError(PersistenceFailed, { message: 'the file was changed by somebody else' })
  }

  async #cut(handle: FileHandle, file: string, end: number): Promise<void> {
    await handle.truncate(end)
    this.#cutTo.delete(file)
  }

  async #close(file: string): Promise<void> {
    const opened = this.#open.get(file)
    if (!opened) return
    this.#open.delete(file)
    try {
      await this.#flush(file, opened)
    } finally {
      await opened.handle.close()
    }
  }

  /** Closes what is too much; waits only while as many files are being closed as may be open. */
  async #evict(): Promise<void> {
    const { handles, warn } = this.#options
    for (const file of this.#open.keys()) {
      if (this.#open.size <= handles) break
      if (this.#queue.isBusy(file)) continue
      const closing: Promise<void> = this.release(file)
        .catch(error => warn(file, 'a file could not be closed properly', { err: error }))
        .then(() => void this.#evicting.delete(closing))
      this.#evicting.add(closing)
    }
    while (this.#evicting.size > handles) await Promise.race(this.#evicting)
  }

  #flushLater(opened: OpenFile): void {
    opened.unflushed = true
    this.#timer ??= setTimeout(() => void this.#flushAll(), flushEveryMs).unref()
  }

  async #flushAll(): Promise<void> {
    for (const [file, opened] of [...this.#open]) await this.#flush(file, opened)
    this.#timer = undefined
    for (const opened of this.#open.values()) if (opened.unflushed) this.#flushLater(opened)
  }

  /** Beside the appends, which do not wait for it. */
  #flush(file: string, opened: OpenFile): Promise<void> {
    if (!opened.unflushed) return opened.flushing
    opened.unflushed = false
    const flush = async () => {
      try {
        await opened.handle.datasync()
        if (opened.fresh) await syncDir(dirname(file), this.#files)
        opened.fresh = false
      } catch (error) {
        this.#options.warn(file, 'lines could not be flushed; a power loss may take them', { err: error })
      }
    }
    opened.flushing = opened.flushing.then(flush)
    return opened.flushing
  }

  async #keepDamaged(file: string, lines: readonly string[]): Promise<void> {
    const place = `${file}.damaged`
    const known = (await readIfThere(place, this.#files)) ?? ''
    const seen = new Set(known.split('\n'))
    let room = quarantineBytes - Buffer.byteLength(known)
    const fresh: Buffer[] = []
    for (const text of lines) {
      const line = Buffer.from(`${text}\n`)
      if (seen.has(text) || line.length > room) continue
      seen.add(text)
      fresh.push(line)
      room -= line.length
    }
    if (fresh.length === 0) return
    const handle = await this.#files.open(place, 'a', 0o600)
    try {
      await writeAll(handle, fresh)
    } finally {
      await handle.close()
    }
  }
}

/** Copies of damaged lines do not take more, however often a damaged file is read. */
const quarantineBytes = 4 * 1024 * 1024
const chunkBytes = 256 * 1024
const sliceMs = 5
const newline = 10

/** No line is longer: the text of one that is found all the same is its beginning, which is no JSON. */
export const maxLineBytes = 64 * 1024 * 1024
const headBytes = 4096

/** Visits the lines that begin before `to`. Answers where the last ended line ends, and how far the reading went. */
async function eachLine(files: FileCalls, file: string, to: number, visit: (line: Line) => void): Promise<Omit<Reading, 'damaged'>> {
  let handle: FileHandle
  try {
    handle = await files.open(file, 'r')
  } catch (error) {
    if (isMissing(error)) return { end: 0, size: 0, ino: 0 }
    throw error
  }
  try {
    const { ino } = await handle.stat()
    return { ...(await sliceLines(handle, to, visit)), ino }
  } finally {
    await handle.close()
  }
}

async function sliceLines(handle: FileHandle, to: number, visit: (line: Line) => void): Promise<KnownEnd> {
  const buffer = Buffer.allocUnsafe(chunkBytes)
  let held: Buffer[] = []
  let heldBytes = 0
  let start = 0
  let position = 0
  let sliceStart = performance.now()
  const hold = (part: Buffer) => {
    if (part.length === 0) return
    if (heldBytes <= maxLineBytes) held.push(Buffer.from(part))
    heldBytes += part.length
  }
  const emit = (part: Buffer, ended: boolean) => {
    if (heldBytes > 0) hold(part)
    const bytes = heldBytes > 0 ? Buffer.concat(held) : part
    const text = (Math.max(heldBytes, part.length) > maxLineBytes ? bytes.subarray(0, headBytes) : bytes).toString('utf8')
    visit({ text, start, ended })
    held = []
    heldBytes = 0
  }
  while (position < to) {
    const { bytesRead } = await handle.read(buffer, 0, Math.min(chunkBytes, to - position), position)
    if (bytesRead === 0) break
    const chunk = buffer.subarray(0, bytesRead)
    let from = 0
    for (let at = chunk.indexOf(newline); at >= 0; at = chunk.indexOf(newline, from)) {
      emit(chunk.subarray(from, at), true)
      from = at + 1
      start = position + from
      if (performance.now() - sliceStart > sliceMs) {
        await nextLoop()
        sliceStart = performance.now()
      }
    }
    hold(chunk.subarray(from))
    position += bytesRead
  }
  if (heldBytes > 0) emit(Buffer.alloc(0), false)
  return { end: start, size: position }
}

/** Where the good lines end: a last line that never got its newline gets it now when it is complete JSON of an object. */
async function repairTail(handle: FileHandle, size: number): Promise<number> {
  const end = await lastNewline(handle, size)
  if (end === size || size - end > maxLineBytes) return end
  const tail = Buffer.alloc(size - end)
  await handle.read(tail, 0, tail.length, end)
  if (!isCompleteRecord(tail.toString('utf8'))) return end
  await handle.appendFile('\n')
  return size + 1
}

/** Whether a line without newline is a whole record all the same. A torn object never parses; a torn number could, so it does not count. */
export function isCompleteRecord(text: string): boolean {
  if (!text.startsWith('{')) return false
  try {
    JSON.parse(text)
    return true
  } catch {
    return false // torn
  }
}

/** Position after the last newline; 0 when there is none. */
async function lastNewline(handle: FileHandle, size: number): Promise<number> {
  const buffer = Buffer.allocUnsafe(64 * 1024)
  for (let end = size; end > 0; ) {
    const start = end === size ? Math.max(0, end - 1) : Math.max(0, end - buffer.length)
    const { bytesRead } = await handle.read(buffer, 0, end - start, start)
    const at = buffer.subarray(0, bytesRead).lastIndexOf(newline)
    if (at >= 0) return start + at + 1
    end = start
  }
  return 0
}

async function writeAll(handle: FileHandle, lines: readonly Uint8Array[]): Promise<void> {
  for (let rest = [...lines]; rest.length > 0; ) {
    const { bytesWritten } = await handle.writev(rest)
    if (bytesWritten === 0) throw new AppError(PersistenceFailed, { message: 'the file takes no bytes' })
    let left = bytesWritten
    while (rest[0] && rest[0].length <= left) left -= rest.shift()?.length ?? 0
    if (rest[0] && left > 0) rest[0] = rest[0].subarray(left)
  }
}
