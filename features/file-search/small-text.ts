/** Small files that others may replace at any moment by something that would hold up whoever opens it. */
import { constants, type Stats } from 'node:fs'
import { open } from 'node:fs/promises'
import { lookAt } from '../../kernel/index.ts'

/**
 * The text of a regular file, links followed; undefined for anything else, for one of more than `most` bytes, and for one that nobody may read. It
 * is opened without waiting, as a pipe may take its place between the look and the opening.
 */
export async function smallText(path: string, most: number): Promise<string | undefined> {
  const fits = (facts: Stats | undefined) => facts?.isFile() === true && facts.size <= most
  if (!fits(await lookAt(path))) return undefined
  const file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)).catch(() => undefined) // gone, or nobody may read it
  try {
    const facts = await file?.stat()
    if (!file || !facts || !fits(facts)) return undefined
    const { buffer, bytesRead } = await file.read(Buffer.alloc(facts.size), 0, facts.size, 0)
    return buffer.toString('utf8', 0, bytesRead)
  } catch {
    return undefined // its disk fails
  } finally {
    await file?.close()
  }
}
