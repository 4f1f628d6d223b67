/** Reading JSON lines files: sliced, so that a long file never holds the event loop, and repairing a torn tail. */
import { type FileHandle, open } from 'node:fs/promises'
import { setImmediate as nextLoop } from 'node:timers/promises'
import { isMissing } from './paths.ts'

const chunkBytes = 256 * 1024
const sliceMs = 5
const newline = 10

/** A longer line is passed on cut (with `whole` false) and cannot be a record. */
export const maxLineBytes = 64 * 1024 * 1024

export interface Line {
  readonly text: string
  /** Byte position of its first character. */
  readonly start: number
  /** False for a line over `maxLineBytes` and for the last one when no newline ends it. */
  readonly whole: boolean
}

/**
 * Calls `visit` for every non-empty line of a file; a missing file has none. Gives the event loop a turn every few milliseconds of work.
 */
export async function eachLine(file: string, visit: (line: Line) => void): Promise<void> {
  let handle: FileHandle
  try {
    handle = await open(file, 'r')
  } catch (error) {
    if (isMissing(error)) return
    throw error
  }
  try {
    await sliceLines(handle, visit)
  } finally {
    await handle.close()
  }
}

async function sliceLines(handle: FileHandle, visit: (line: Line) => void): Promise<void> {
  const buffer = Buffer.allocUnsafe(chunkBytes)
  const held: Buffer[] = []
  let heldBytes = 0
  let cut = false
  let lineStart = 0
  let sliceStart = performance.now()
  const hold = (part: Buffer) => {
    if (heldBytes + part.length > maxLineBytes) cut = true
    else if (part.length > 0) {
      held.push(Buffer.from(part))
      heldBytes += part.length
    }
  }
  const emit = (last: Buffer, ended: boolean, next: number) => {
    if (heldBytes > 0 || cut) hold(last)
    const bytes = heldBytes > 0 || cut ? Buffer.concat(held) : last
    if (bytes.length > 0 || cut) visit({ text: bytes.toString('utf8'), start: lineStart, whole: ended && !cut })
    held.length = 0
    heldBytes = 0
    cut = false
    lineStart = next
  }
  for (let position = 0; ; ) {
    const { bytesRead } = await handle.read(buffer, 0, chunkBytes, position)
    if (bytesRead === 0) break
    const chunk = buffer.subarray(0, bytesRead)
    let from = 0
    for (let at = chunk.indexOf(newline); at >= 0; at = chunk.indexOf(newline, from)) {
      emit(chunk.subarray(from, at), true, position + at + 1)
      from = at + 1
      if (performance.now() - sliceStart > sliceMs) {
        await nextLoop()
        sliceStart = performance.now()
      }
    }
    hold(chunk.subarray(from))
    position += bytesRead
  }
  if (heldBytes > 0 || cut) emit(Buffer.alloc(0), false, lineStart)
}

/**
 * Makes the file end with a newline: a last line that never got one is kept when it is complete JSON of an object, and cut otherwise.
 * Answers the new size and how many bytes were cut.
 */
export async function repairTail(handle: FileHandle): Promise<{ size: number; cut: number }> {
  const { size } = await handle.stat()
  const end = await lastNewline(handle, size)
  if (end === size) return { size, cut: 0 }
  if (size - end <= maxLineBytes) {
    const tail = Buffer.alloc(size - end)
    await handle.read(tail, 0, tail.length, end)
    if (isCompleteRecord(tail.toString('utf8'))) {
      await handle.appendFile('\n')
      return { size: size + 1, cut: 0 }
    }
  }
  await handle.truncate(end)
  return { size: end, cut: size - end }
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
