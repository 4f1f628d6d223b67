/**
 * Reading the lines of a file, forwards or backwards, in batches: one chunk of the file is in memory, and a line that is longer. Lines that could
 * not be used are told once per reading, and copied, once each, to `<file>.damaged`.
 */
import type { FileHandle } from 'node:fs/promises'
import { AppError, PersistenceFailed } from '../errors.ts'
import { type FileCalls, forReading, jsonOf, readIfThere, unlessMissing } from './files.ts'

export interface Line {
  readonly text: string
  /** Byte position of its first character. */
  readonly start: number
  /** Where the next line begins. */
  readonly next: number
  /** False for the last one when no newline ends it. */
  readonly ended: boolean
}

/** Byte positions where lines begin, or where the lines end. */
interface LineRange {
  /** Default: the beginning. */
  readonly from?: number | undefined
  /** Not included; default: the end. */
  readonly to?: number | undefined
  /** Last line first. */
  readonly reverse?: boolean | undefined
}

const chunkBytes = 256 * 1024
/** A chunk of very short lines is handed over in several batches. */
const batchLines = 1024
const newline = 10

/** No line is longer: the text of one that is found all the same is its beginning, which is no JSON. */
export const maxLineBytes = 64 * 1024 * 1024
const headBytes = 4096

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
    try {
      const { size, ino } = await handle.stat()
      return new LineReader(handle, Math.min(size, limit), ino)
    } catch (error) {
      await handle.close()
      throw error
    }
  }

  /**
   * A batch is used before the next one is asked for. Another process may cut a torn tail meanwhile; then the lines end there. Throws
   * PersistenceFailed when a position is not where a line begins.
   */
  async *batches({ from = 0, to, reverse = false }: LineRange = {}): AsyncGenerator<readonly Line[]> {
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
      throw new AppError(PersistenceFailed, { message: `no record begins at position ${position}` })
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

async function* forwards(handle: FileHandle, from: number, to: number): AsyncGenerator<readonly Line[]> {
  const buffer = Buffer.allocUnsafeSlow(Math.min(chunkBytes, to - from))
  const held = new HeldLine()
  let lines: Line[] = []
  let start = from
  for (let position = from; position < to; ) {
    const { bytesRead } = await handle.read(buffer, 0, Math.min(buffer.length, to - position), position)
    if (bytesRead === 0) break
    const chunk = buffer.subarray(0, bytesRead)
    let first = 0
    for (let at = chunk.indexOf(newline); at >= 0; at = chunk.indexOf(newline, first)) {
      const next = position + at + 1
      lines.push({
        text: held.bytes === 0 ? chunk.toString('utf8', first, at) : held.append(chunk.subarray(first, at)).take(),
        start,
        next,
        ended: true
      })
      first = at + 1
      start = next
      if (lines.length < batchLines) continue
      yield lines
      lines = []
    }
    held.append(chunk.subarray(first))
    position += bytesRead
    if (lines.length > 0) yield lines
    lines = []
  }
  if (held.bytes > 0) yield [{ start, next: start + held.bytes + 1, ended: false, text: held.take() }]
}

async function* backwards(handle: FileHandle, from: number, to: number): AsyncGenerator<readonly Line[]> {
  const buffer = Buffer.allocUnsafeSlow(Math.min(chunkBytes, to - from))
  const held = new HeldLine()
  let lines: Line[] = []
  /** Where the line after the one that is being read begins; undefined until the first byte from behind is seen. */
  let next: number | undefined
  let ended = false
  for (let end = to; end > from; ) {
    const position = Math.max(from, end - buffer.length)
    const { bytesRead } = await handle.read(buffer, 0, end - position, position)
    const chunk = buffer.subarray(0, bytesRead)
    if (position + bytesRead < end && next !== undefined) return
    end = position
    if (bytesRead === 0) continue
    let last = bytesRead
    if (next === undefined) {
      ended = chunk[last - 1] === newline
      if (ended) last--
      next = position + last + 1
    }
    for (let at = lastNewlineBefore(chunk, last); at >= 0; at = lastNewlineBefore(chunk, last)) {
      const start = position + at + 1
      const text: string = held.bytes === 0 ? chunk.toString('utf8', at + 1, last) : held.prepend(chunk.subarray(at + 1, last)).take()
      lines.push({ text, start, next, ended })
      last = at
      next = start
      ended = true
      if (lines.length < batchLines) continue
      yield lines
      lines = []
    }
    held.prepend(chunk.subarray(0, last))
    if (lines.length > 0) yield lines
    lines = []
  }
  if (next !== undefined) yield [{ text: held.take(), start: from, next, ended }]
}

function lastNewlineBefore(chunk: Buffer, end: number): number {
  return end === 0 ? -1 : chunk.lastIndexOf(newline, end - 1) // -1 would mean the last byte
}

/** What is known of a line that lies in several chunks. Of one that is too long only the beginning is kept. */
class HeldLine {
  bytes = 0
  #parts: Buffer[] = []

  append(part: Buffer): this {
    if (part.length > 0 && this.bytes <= maxLineBytes) this.#parts.push(Buffer.from(part))
    this.bytes += part.length
    return this
  }

  prepend(part: Buffer): this {
    if (this.bytes > maxLineBytes && part.length > 0) this.#parts = []
    if (part.length > 0) this.#parts.unshift(Buffer.from(part))
    this.bytes += part.length
    return this
  }

  take(): string {
    const isWhole = this.bytes <= maxLineBytes
    const text = isWhole ? Buffer.concat(this.#parts).toString('utf8') : (this.#parts[0]?.toString('utf8', 0, headBytes) ?? '')
    this.bytes = 0
    this.#parts = []
    return text
  }
}

/**
 * Where the good lines of a file end. A last line that is a whole record but lacks its newline is good, and the newline counted
 * (`lacksNewline`).
 */
export async function goodEnd(handle: FileHandle, size: number): Promise<{ readonly end: number; readonly lacksNewline: boolean }> {
  const end = await lastNewline(handle, size)
  if (end === size || size - end > maxLineBytes) return { end, lacksNewline: false }
  const tail = Buffer.alloc(size - end)
  await handle.read(tail, 0, tail.length, end)
  return isCompleteRecord(tail.toString('utf8')) ? { end: size + 1, lacksNewline: true } : { end, lacksNewline: false }
}

/** Whether a line without newline is a whole record all the same. A torn object never parses; a torn number could, so it does not count. */
export function isCompleteRecord(text: string): boolean {
  return text.startsWith('{') && jsonOf(text) !== undefined
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

/** Copies of damaged lines do not take more, however often a damaged file is read. */
const quarantineBytes = 4 * 1024 * 1024

type Warn = (file: string, text: string, fields: object) => void

/** The damaged lines that one reading of a file met. */
export class DamagedLines {
  readonly #file: string
  readonly #files: FileCalls
  readonly #warn: Warn
  readonly #texts: string[] = []
  #room = quarantineBytes
  #first: { first_byte: number; reason: string } | undefined
  count = 0

  constructor(file: string, files: FileCalls, warn: Warn) {
    this.#file = file
    this.#files = files
    this.#warn = warn
  }

  add({ text, start }: Line, reason: string): void {
    this.count++
    this.#first ??= { first_byte: start, reason }
    this.#room -= text.length
    if (this.#room > 0) this.#texts.push(text)
  }

  /** At the end of the reading. Does nothing when there was no damage. */
  async report(): Promise<void> {
    if (!this.#first) return
    this.#warn(this.#file, 'damaged lines skipped, copied to the .damaged file beside', { count: this.count, ...this.#first })
    await this.#keep()
  }

  async #keep(): Promise<void> {
    const place = `${this.#file}.damaged`
    const known = (await readIfThere(place, this.#files)) ?? ''
    const seen = new Set(known.split('\n'))
    let room = quarantineBytes - Buffer.byteLength(known)
    const fresh: Buffer[] = []
    for (const text of this.#texts) {
      const line = Buffer.from(`${text}\n`)
      if (seen.has(text) || line.length > room) continue
      seen.add(text)
      fresh.push(line)
      room -= line.length
    }
    if (fresh.length === 0) return
    const handle = await this.#files.open(place, 'a', 0o600)
    try {
      await handle.writeFile(Buffer.concat(fresh))
    } finally {
      await handle.close()
    }
  }
}
