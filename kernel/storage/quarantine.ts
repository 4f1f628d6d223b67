/** Damaged lines are copied beside their log, once each, so that a person can look at them. */
import { appendFile, readFile, stat } from 'node:fs/promises'
import { isMissing } from './paths.ts'

/** The file of copies does not grow beyond it, however often a damaged log is read. */
const maxBytes = 4 * 1024 * 1024

export async function setAside(file: string, lines: readonly string[]): Promise<void> {
  const size = await sizeOf(file)
  if (size >= maxBytes) return
  const known = new Set(size > 0 ? (await readFile(file, 'utf8')).split('\n') : [])
  let room = maxBytes - size
  const fresh: string[] = []
  for (const line of lines) {
    const bytes = Buffer.byteLength(line) + 1
    if (known.has(line) || bytes > room) continue
    known.add(line)
    fresh.push(`${line}\n`)
    room -= bytes
  }
  if (fresh.length > 0) await appendFile(file, fresh.join(''), { mode: 0o600 })
}

async function sizeOf(file: string): Promise<number> {
  try {
    return (await stat(file)).size
  } catch (error) {
    if (isMissing(error)) return 0
    throw error
  }
}
