/**
 * Files of JSON lines, for logs and for journals: appended in whole lines, cut back after a write that failed or tore, read in slices.
 */
import { constants, fstatSync } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { LeaseLost } from '../errors.ts'
import { yieldToLoop } from '../lifecycle/wait.ts'
import { type Fence, quarantineFile, removeFenced, replaceFenced } from './fences.ts'
import { type FileCalls, type FileContent, inDir, KeyedQueue, nodeFiles, syncDir, writeBytes } from './files.ts'
import { goodEnd, type Line, LineReader } from './line-reader.ts'
import { ThisThread } from './look.ts'
import { unsaved } from './refusals.ts'

interface LineFilesOptions {
  /** When lines are put on the medium: before `append` resolves, or within a second and at closing. */
  readonly flush: 'each' | 'later'
  /** Files kept open between writes; the least recently used are closed. */
  readonly handles: number
  readonly files?: FileCalls | undefined
  /** What writes of a file have to pass, when a lease guards it. */
  readonly fenceOf?: (file: string) => Fence | undefined
  /** Hears of what was repaired or may be lost, by file. */
  warn(file: string, text: string, fields: object): void
}

/** Where a file ends as its writer knows it: its lines at `end`, the file itself at `size`. */
interface KnownEnd {
  readonly end: number
  readonly size: number
}

export interface Reading extends KnownEnd {
  /** Tells the file from one that replaces it; 0 when there was none. */
  readonly ino: number
  /** Lines that could not be used. */
  readonly damaged: number
}

interface OpenFile {
  readonly handle: FileHandle
  /** It was opened while this lease was ours: nobody who takes that over gets this file. */
  readonly fence: Fence | undefined
  /** Bytes that are known to be good. */
  end: number
  /** Its name is not flushed yet. */
  fresh: boolean
  unflushed: boolean
  flushing: Promise<void>
}

const flushEveryMs = 1000

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
  readonly #here = new ThisThread()

  constructor(options: LineFilesOptions) {
    this.#options = options
    this.#files = options.files ?? nodeFiles
  }

  /**
   * Appends lines, each with its newline, to a file that is made (0600) when needed. Resolves to the new end when they would survive
   * `kill -9` (with `flush: 'each'` a power loss, too). When it rejects, nothing of them is in the file or comes back later.
   *
   * `known`, as the last call or a reading told it: what follows the good lines is cut, and a file that somebody else has written to or
   * removed is refused; of 0 bytes: the file must be empty or missing. Without it the tail is repaired: a last line that only lacks its
   * newline stays.
   *
   * `take` is asked for the lines when it is their turn and what runs now is through: what that appends can go with them.
   */
  append(file: string, take: () => readonly Uint8Array[], known?: KnownEnd): Promise<number> {
    return this.#queue.run(file, async () => {
      await null
      const lines = take()
      const fence = this.#options.fenceOf?.(file)
      const opened = this.#kept(file, known, fence) ?? (await this.#get(file, known, fence))
      try {
        const slow = writeBytes(opened.handle, lines, this.#files, this.#here)
        if (slow) await slow
        if (this.#options.flush === 'each') await opened.handle.datasync()
        const others = yieldToLoop() // what was written together is on the medium together, and all that waited for it goes on
        if (others) await others
        const doubt = fence?.check()
        if (doubt) await doubt
      } catch (error) {
        if (error instanceof LeaseLost) {
          await this.#leave(file)
          throw error
        }
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

  /** Replaces the whole file, on the medium. */
  replace(file: string, content: FileContent): Promise<void> {
    return this.#queue.run(file, async () => {
      await this.#close(file)
      await replaceFenced(file, content, this.#options.fenceOf?.(file), { files: this.#files })
      this.#cutTo.delete(file)
    })
  }

  remove(file: string): Promise<void> {
    return this.#queue.run(file, async () => {
      await this.#close(file)
      await removeFenced(file, this.#options.fenceOf?.(file), this.#files)
      this.#cutTo.delete(file)
    })
  }

  /** Moves the file out of the way; answers where it is now, or undefined when it was not there. */
  quarantine(file: string): Promise<string | undefined> {
    return this.#queue.run(file, async () => {
      await this.#close(file)
      this.#cutTo.delete(file)
      return quarantineFile(file, this.#files, this.#options.fenceOf?.(file))
    })
  }

  /** Lets go of a file that is somebody else's: nothing of it is cut, now or later. */
  async #leave(file: string): Promise<void> {
    const opened = this.#open.get(file)
    this.#open.delete(file)
    this.#cutTo.delete(file)
    await opened?.handle.close().catch(() => undefined) // nothing in it counts any more
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
   * why a line cannot be used; a warning tells of such lines.
   */
  async read(file: string, take: (line: Line) => string | undefined): Promise<Reading> {
    const reader = await LineReader.open(this.#files, file, this.#acknowledged(file))
    const damaged = this.damagedLines(file)
    let end = 0
    let size = 0
    try {
      for await (const lines of reader.batches()) {
        for (const line of lines) {
          const reason = take(line)
          if (reason !== undefined) damaged.add(line, reason)
          if (line.ended) end = line.next
          size = line.ended ? line.next : line.next - 1
          const others = yieldToLoop()
          if (others) await others
        }
      }
    } finally {
      await reader.close()
    }
    damaged.report()
    return { end, size, ino: reader.ino, damaged: damaged.count }
  }

  /** Opens a file as it is between two appends, to read its acknowledged lines. The caller closes it. */
  reader(file: string): Promise<LineReader> {
    return this.#queue.run(file, () => LineReader.open(this.#files, file, this.#acknowledged(file)))
  }

  /** For the lines that a reading cannot use, which stay where they are; `report` tells of them at its end, if there were any. */
  damagedLines(file: string) {
    let first: { readonly first_byte: number; readonly reason: string } | undefined
    const damaged = {
      count: 0,
      add({ start }: Line, reason: string): void {
        damaged.count++
        first ??= { first_byte: start, reason }
      },
      report: (): void => {
        if (first) this.#options.warn(file, 'damaged lines skipped', { count: damaged.count, ...first })
      }
    }
    return damaged
  }

  /** Where the next line will begin; 0 when there is no file. */
  end(file: string): Promise<number> {
    return this.#queue.run(file, async () => {
      const known = this.#acknowledged(file)
      if (known !== undefined) return known
      const reader = await LineReader.open(this.#files, file)
      try {
        return await reader.end()
      } finally {
        await reader.close()
      }
    })
  }

  #acknowledged(file: string): number | undefined {
    return this.#open.get(file)?.end ?? this.#cutTo.get(file)
  }

  /** The file as the last append left it, unless something came in between. */
  #kept(file: string, known: KnownEnd | undefined, fence: Fence | undefined): OpenFile | undefined {
    const kept = this.#open.get(file)
    if (!kept || kept.fence !== fence) return undefined
    if ((known && kept.end !== known.end) || !isOurs(kept)) return undefined
    this.#open.delete(file)
    this.#open.set(file, kept)
    return kept
  }

  /** Opens it, anew where it is open. */
  async #get(file: string, known: KnownEnd | undefined, fence: Fence | undefined): Promise<OpenFile> {
    await this.#close(file)
    const opened = await this.#make(file, known, fence)
    this.#open.set(file, opened)
    await this.#evict()
    return opened
  }

  async #make(file: string, known: KnownEnd | undefined, fence: Fence | undefined): Promise<OpenFile> {
    await fence?.check() // nothing is made where a session was that somebody else has deleted
    const handle = await this.#openAppend(file, known)
    try {
      await fence?.check()
      const stats = fstatSync(handle.fd)
      if (!stats.isFile()) throw unsaved(`${basename(file)} is not a regular file`)
      const { size } = stats
      const end = await this.#goodEnd(file, handle, size, known)
      if (end < size) {
        this.#options.warn(file, 'torn tail cut off', { bytes: size - end })
        await this.#cut(handle, file, end)
      }
      if (size === 0 && this.#options.flush === 'each') await syncDir(dirname(file), this.#files)
      return { handle, fence, end, fresh: size === 0, unflushed: false, flushing: Promise.resolve() }
    } catch (error) {
      await handle.close()
      throw error
    }
  }

  async #openAppend(file: string, known: KnownEnd | undefined): Promise<FileHandle> {
    if (known && known.end > 0) return this.#files.open(file, constants.O_RDWR | constants.O_APPEND)
    return await inDir(dirname(file), () => this.#files.open(file, 'a+', 0o600), this.#files)
  }

  /** Without a known end, a last line that never got its newline gets it now when it is complete JSON of an object. */
  async #goodEnd(file: string, handle: FileHandle, size: number, known: KnownEnd | undefined): Promise<number> {
    const cutTo = this.#cutTo.get(file)
    if (cutTo !== undefined && cutTo <= size) return cutTo
    if (!known) {
      const { end, lacksNewline } = await goodEnd(handle, size)
      if (lacksNewline) await handle.appendFile('\n')
      return end
    }
    if (size >= known.end && (size === known.size || size === known.end)) return known.end
    throw unsaved('the file was changed by somebody else')
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
}

/**
 * Lines for a removed file would be lost, and what somebody else has written must not be mixed with ours. The system answers for an open file
 * from memory, sooner than another thread could be asked.
 */
function isOurs({ handle, end }: OpenFile): boolean {
  const { nlink, size } = fstatSync(handle.fd)
  return nlink > 0 && size === end
}
