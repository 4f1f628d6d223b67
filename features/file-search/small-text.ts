/** Small files that others may replace at any moment by something that would hold up whoever opens it. */
import { closeSync, constants, fstatSync, open, read, type Stats } from 'node:fs'
import { promisify } from 'node:util'
import { lookAt } from '../../kernel/index.ts'

/**
 * The text of a regular file, links followed; undefined for anything else, for one of more than `most` bytes, and for one that nobody may read. It
 * is opened without waiting, as a pipe may take its place between the look and the opening.
 */
export async function smallText(path: string, most: number): Promise<string | undefined> {
  const fits = (facts: Stats | undefined) => facts?.isFile() === true && facts.size <= most
  if (!fits(await lookAt(path))) return undefined
  const fd = await openToRead(path).catch(() => undefined) // gone, or nobody may read it
  if (fd === undefined) return undefined
  try {
    const facts = fstatSync(fd) // of what is open the system knows it without the disk
    if (!fits(facts)) return undefined
    const { buffer, bytesRead } = await bytesOf(fd, Buffer.alloc(facts.size), 0, facts.size, 0)
    return buffer.toString('utf8', 0, bytesRead)
  } catch {
    return undefined // its disk fails
  } finally {
    closeSync(fd)
  }
}

const flags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)
const openToRead = promisify((path: string, done: (error: Error | null, fd: number) => void) => open(path, flags, done))
const bytesOf = promisify(read)
