/** Surgery on journal files: creating, opening for appends, copying the newest part, setting a damaged one aside. */
import { constants } from 'node:fs'
import { copyFile, type FileHandle, mkdir, open, rename, stat, unlink, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { JournalHeader } from './journal-scan.ts'

/** Creates a journal with its header; rejects when the file exists. Resolves to its size in bytes. */
export async function createFile(path: string, header: JournalHeader): Promise<number> {
  const line = headerLine(header)
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  await writeFile(path, line, { flag: 'wx', mode: 0o600 })
  return line.length
}

/**
 * Opens a journal whose good lines end at `good`, and cuts what follows: a torn write of a killed process, or of our own failed
 * attempt. Rejects when the size is not `expected` (if given) or below `good`: then somebody else has written.
 */
export async function openForAppend(path: string, good: number, expected: number | undefined): Promise<FileHandle> {
  const handle = await open(path, constants.O_WRONLY | constants.O_APPEND)
  try {
    const { size } = await handle.stat()
    if (size < good || (expected !== undefined && size !== expected)) throw new Error('the journal file was changed by somebody else')
    if (size > good) await handle.truncate(good)
    return handle
  } catch (err) {
    await handle.close()
    throw err
  }
}

/** Writes a header and the bytes `from`..`to` of a journal to a synced file beside it, which the caller renames into place. */
export async function copyTail(
  path: string,
  header: JournalHeader,
  from: number,
  to: number
): Promise<{ temp: string; headBytes: number }> {
  const head = headerLine(header)
  const temp = `${path}.tmp`
  const source = await open(path, constants.O_RDONLY)
  try {
    const target = await open(temp, 'w', 0o600)
    try {
      await target.writeFile(head)
      await copyRange(source, target, from, to)
      await target.datasync()
    } finally {
      await target.close()
    }
  } catch (err) {
    await unlink(temp).catch(() => undefined) // the first error is the one to tell
    throw err
  } finally {
    await source.close()
  }
  return { temp, headBytes: head.length }
}

/** Moves or copies a file to `aside`; false when there is none. */
export async function setAside(path: string, aside: string, how: 'move' | 'copy'): Promise<boolean> {
  if (!(await stat(path).catch(missingIsUndefined))) return false
  await (how === 'move' ? rename(path, aside) : copyFile(path, aside))
  return true
}

function headerLine(header: JournalHeader): Buffer {
  return Buffer.from(`${JSON.stringify(header)}\n`)
}

async function copyRange(source: FileHandle, target: FileHandle, from: number, to: number): Promise<void> {
  const buffer = Buffer.allocUnsafe(Math.min(1024 * 1024, Math.max(1, to - from)))
  for (let position = from; position < to; ) {
    const { bytesRead } = await source.read(buffer, 0, Math.min(buffer.length, to - position), position)
    if (bytesRead === 0) throw new Error('the journal file is shorter than it was')
    await target.writeFile(buffer.subarray(0, bytesRead))
    position += bytesRead
  }
}

/** For `catch`: a missing file is undefined, other failures go on. */
export function missingIsUndefined(error: NodeJS.ErrnoException): undefined {
  if (error.code === 'ENOENT') return undefined
  throw error
}
