/**
 * Reading the lines of a file: forwards or backwards, in batches, and by offsets, for many at once. One chunk of the file is in memory, or a line
 * that is longer.
 */
import type { Stats } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { jsonOf } from '../text.ts'
import { type FileCalls, forReading, unlessMissing } from './files.ts'
import type { LogRange } from './ports.ts'
import { unsaved } from './refusals.ts'

export interface Line {
  readonly text: string
  /** Byte position of its first character. */
  readonly start: number
  /** Where the next line begins. */
  readonly next: number
  /** False for the last one when no newline ends it. */
  readonly ended: boolean
}

const chunkBytes = 256 * 1024
/** A chunk of very short lines is handed over in several batches. */
const batchLines = 1024
const newline = 10

/** No line is longer: the text of one that is found all the same is its beginning, which is no JSON. */
export const maxLineBytes = 64 * 1024 * 1024
const headBytes = 4096
/** Most files end with a newline, and most lines are shorter. */
const tailBytes = 4096

/** A file as it was when it was opened: what is appended later is not read. One that is not there has no lines. */
export class LineReader {
  readonly #handle: FileHandle | undefined
  readonly size: number
  /** Tells the file from one that replaces it; 0 when there is none. */
  readonly ino: number

  private constructor(handle: FileHandle | undefined, size: number, ino: number) {
    this.#handle = handle
    this.size = size
    this.ino = ino
  }

  /** `limit`: where the acknowledged lines end, when that is known. The caller closes the reader. */
  static async open(files: FileCalls, file: string, limit = Number.POSITIVE_INFINITY): Promise<LineReader> {
    const handle = await unlessMissing(files.open(file, forReading))
    if (!handle) return new LineReader(undefined, 0, 0)
    const { size, ino } = await statsOf(handle)
    return new LineReader(handle, Math.min(size, limit), ino)
  }

  /**
   * The lines of a range, in byte positions. A batch is used before the next one is asked for. Another process may cut a torn tail meanwhile;
   * then the lines end there. Throws PersistenceFailed when a position is not where a line begins.
   */
  async *batches({ from = 0, to, reverse = false }: LogRange = {}): AsyncGenerator<readonly Line[]> {
    await this.#check(from)
    if (to !== undefined) await this.#check(to)
    const end = Math.min(to ?? this.size, this.size)
    if (!this.#handle || from >= end) return
    yield* reverse ? backwards(this.#handle, from, end) : forwards(this.#handle, from, end)
  }

  /** Where the next line will begin. */
  async end(): Promise<number> {
    return this.#handle ? (await goodEnd(this.#handle, this.size)).end : 0
  }

  async close(): Promise<void> {
    await this.#handle?.close()
  }

  async #check(position: number): Promise<void> {
    if (!(await this.#isBoundary(position))) {
      throw unsaved(`no record begins at position ${position}`)
    }
  }

  async #isBoundary(position: number): Promise<boolean> {
    if (position === 0) return true
    if (!this.#handle || !Number.isSafeInteger(position) || position < 0) return false
    // After a last line that gets its newline from the next append.
    if (position > this.size) return position === this.size + 1 && position === (await this.end())
    const { bytesRead, buffer } = await this.#handle.read(Buffer.alloc(1), 0, 1, position - 1)
    return bytesRead === 1 && buffer[0] === newline
  }
}

/** Closes the file when it cannot tell. */
async function statsOf(handle: FileHandle): Promise<Stats> {
  try {
    return await handle.stat()
  } catch (error) {
    await handle.close()
    throw error
  }
}

async function* forwards(handle: FileHandle, from: number, to: number): AsyncGenerator<readonly Line[]> {
  const buffer = Buffer.allocUnsafeSlow(Math.min(chunkBytes, to - from))
  for (let start = from; start < to; ) {
    const chunk = await read(handle, buffer, start, to)
    const end = start + chunk.length
    if (end === start) return
    const whole = end === to ? chunk.length : chunk.lastIndexOf(newline) + 1
    if (whole > 0) {
      yield* batchesOf(chunk.subarray(0, whole), start, false)
      start += whole
      continue
    }
    const next = await nextLine(handle, buffer, end, to)
    yield [await longLine(handle, start, next ?? to, next !== undefined)]
    start = next ?? to
  }
}

async function* backwards(handle: FileHandle, from: number, to: number): AsyncGenerator<readonly Line[]> {
  const buffer = Buffer.allocUnsafeSlow(Math.min(chunkBytes, to - from))
  for (let end = to; end > from; ) {
    const start = Math.max(from, end - buffer.length)
    const chunk = await read(handle, buffer, start, end)
    if (start + chunk.length < end) {
      end = start + chunk.length // somebody cut it
      continue
    }
    const first = start === from ? 0 : chunk.subarray(0, -1).indexOf(newline) + 1
    if (first > 0 || start === from) {
      yield* batchesOf(chunk.subarray(first), start + first, true)
      end = start + first
      continue
    }
    const ended = chunk.at(-1) === newline
    const begin = await lastLine(handle, buffer, from, start)
    yield [await longLine(handle, begin, end, ended)]
    end = begin
  }
}

async function read(handle: FileHandle, buffer: Buffer, from: number, to: number): Promise<Buffer> {
  const { bytesRead } = await handle.read(buffer, 0, Math.min(buffer.length, to - from), from)
  return buffer.subarray(0, bytesRead)
}

/** The lines of a part of the file that begins and ends with one. */
function* batchesOf(bytes: Buffer, base: number, reverse: boolean): Generator<readonly Line[]> {
  let lines: Line[] = []
  for (let from = 0, to = bytes.length; from < to; ) {
    const found = reverse ? (bytes[to - 1] === newline ? to - 1 : -1) : bytes.indexOf(newline, from)
    const end = found < 0 ? to : found
    const start = reverse ? lastNewlineBefore(bytes, end) + 1 : from
    lines.push({ text: bytes.toString('utf8', start, end), start: base + start, next: base + end + 1, ended: found >= 0 })
    if (reverse) to = start
    else from = end + 1
    if (lines.length < batchLines) continue
    yield lines
    lines = []
  }
  if (lines.length > 0) yield lines
}

function lastNewlineBefore(chunk: Buffer, end: number): number {
  return end === 0 ? -1 : chunk.lastIndexOf(newline, end - 1) // -1 would mean the last byte
}

/** A line that is longer than a chunk. Of one that is too long only the beginning is read. */
async function longLine(handle: FileHandle, start: number, end: number, ended: boolean): Promise<Line> {
  const bytes = ended ? end - start - 1 : end - start
  const text = await read(handle, Buffer.allocUnsafe(bytes > maxLineBytes ? headBytes : bytes), start, end)
  return { text: text.toString('utf8'), start, next: start + bytes + 1, ended }
}

/** Where the first line begins behind a newline of this part of the file. */
async function nextLine(handle: FileHandle, buffer: Buffer, from: number, to: number): Promise<number | undefined> {
  for (let start = from; start < to; ) {
    const chunk = await read(handle, buffer, start, to)
    const at = chunk.indexOf(newline)
    if (at >= 0) return start + at + 1
    if (chunk.length === 0) return undefined
    start += chunk.length
  }
  return undefined
}

/** Where the last line begins behind a newline of this part of the file; its beginning when it has none. */
async function lastLine(handle: FileHandle, buffer: Buffer, from: number, to: number): Promise<number> {
  for (let end = to; end > from; ) {
    const start = Math.max(from, end - buffer.length)
    const at = (await read(handle, buffer, start, end)).lastIndexOf(newline)
    if (at >= 0) return start + at + 1
    end = start
  }
  return from
}

/**
 * Where the good lines of a file end. A last line that is a whole record but lacks its newline is good, and the newline counted
 * (`lacksNewline`).
 */
export async function goodEnd(handle: FileHandle, size: number): Promise<{ readonly end: number; readonly lacksNewline: boolean }> {
  const end = await lastLine(handle, Buffer.allocUnsafe(tailBytes), 0, size)
  if (end === size || size - end > maxLineBytes) return { end, lacksNewline: false }
  const tail = Buffer.alloc(size - end)
  await handle.read(tail, 0, tail.length, end)
  return isCompleteRecord(tail.toString('utf8')) ? { end: size + 1, lacksNewline: true } : { end, lacksNewline: false }
}

/** Whether a line without newline is a whole record all the same. A torn object never parses; a torn number could, so it does not count. */
export function isCompleteRecord(text: string): boolean {
  return text.startsWith('{') && jsonOf(text) !== undefined
}

const groupBytes = 256 * 1024

interface Block {
  readonly start: number
  readonly end: number
  readonly bytes: Promise<Buffer>
}

/**
 * A file whose lines are known by their offsets, open for all who read it at this time; it closes with the last of them. Clients that were cut
 * together come back together and ask for the same lines.
 */
export class SharedFile {
  /** Of the offsets. */
  readonly generation: number
  readonly #opened: Promise<{ readonly handle: FileHandle; readonly ino: number }>
  #users = 0
  /** The last one has left: nobody may enter. */
  closed = false
  /** What was read last, or could not be: 256 KiB at most, or one line. */
  #block: Block | undefined

  constructor(path: string, generation: number) {
    this.generation = generation
    this.#opened = open(path, forReading).then(async handle => ({ handle, ino: (await statsOf(handle)).ino }))
  }

  /** Resolves to the number of the file, when it is open. Who has entered leaves. */
  async enter(): Promise<number> {
    this.#users++
    try {
      return (await this.#opened).ino
    } catch (error) {
      await this.leave()
      throw error
    }
  }

  async leave(): Promise<void> {
    if (--this.#users > 0) return
    this.closed = true
    this.#block = undefined
    const file = await this.#opened.catch(() => undefined) // whoever entered has heard of it
    await file?.handle.close()
  }

  /** The lines between offsets (the last one is the end), group by group. What lies before `limit` may be read along for others. */
  async *lines(offsets: readonly number[], limit: number): AsyncGenerator<Buffer[]> {
    const offsetAt = (index: number) => offsets[index] ?? 0
    for (let first = 0; first < offsets.length - 1; ) {
      const start = offsetAt(first)
      let last = first + 1
      while (last < offsets.length - 1 && offsetAt(last + 1) - start <= groupBytes) last++
      const buffer = await this.#read(start, offsetAt(last), Math.min(start + groupBytes, limit))
      yield offsets.slice(first, last).map((offset, i) => buffer.subarray(offset - start, offsetAt(first + i + 1) - start - 1))
      first = last
    }
  }

  /** At least the bytes between two offsets. */
  async #read(start: number, end: number, limit: number): Promise<Buffer> {
    const known = this.#block
    if (known && known.start <= start && end <= known.end) return (await known.bytes).subarray(start - known.start)
    const to = Math.max(end, limit)
    this.#block = { start, end: to, bytes: this.#bytes(start, to) }
    return await this.#block.bytes
  }

  async #bytes(start: number, end: number): Promise<Buffer> {
    const { handle } = await this.#opened
    const length = end - start
    const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafeSlow(length), 0, length, start)
    if (bytesRead !== length) throw unsaved('the file is shorter than its index')
    return buffer
  }
}
