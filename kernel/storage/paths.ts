/** Ids of file stores and the places behind them. `~` is in no id, so temporary files and helpers carry it in their names. */
import { access, mkdir, open, readdir } from 'node:fs/promises'
import { dirname, join, resolve, sep } from 'node:path'

const segment = /^[A-Za-z0-9._@+-]{1,200}$/

/**
 * The file of an id: `<dir>/<id><suffix>`. An id is a relative path of segments out of `A-Z a-z 0-9 . _ @ + -`, at most 200
 * characters each and 8 deep; anything else is a bug of the caller and throws. `suffix` (`.json`) may not end an inner segment.
 */
export function fileOf(dir: string, id: string, suffix: string): string {
  const parts = id.split('/')
  const bad = parts.some((part, index) => {
    if (!segment.test(part) || part === '.' || part === '..') return true
    return suffix !== '' && index < parts.length - 1 && part.includes(suffix)
  })
  if (bad || parts.length > 8) throw new Error(`not a usable id: ${JSON.stringify(id.slice(0, 200))}`)
  return join(dir, ...parts) + suffix
}

/** Ids of the files below `dir`, sorted; helpers, temporary and damaged files are left out. A missing directory has none. */
export async function idsBelow(dir: string, suffix: string): Promise<string[]> {
  const ids: string[] = []
  const walk = async (at: string, prefix: string, depth: number): Promise<void> => {
    for (const entry of await entriesOf(at)) {
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

async function entriesOf(dir: string) {
  try {
    return await readdir(dir, { withFileTypes: true })
  } catch (error) {
    if (isMissing(error)) return []
    throw error
  }
}

/** Makes a directory (0700) and what is above it, durably: new entries are flushed to their parents. */
export async function ensureDir(dir: string): Promise<void> {
  const first = await mkdir(dir, { recursive: true, mode: 0o700 })
  if (first === undefined) return
  let at = resolve(dir)
  const top = dirname(resolve(first))
  while (at !== top && at.startsWith(top.endsWith(sep) ? top : top + sep)) {
    at = dirname(at)
    await syncDir(at)
  }
}

/** Flushes a directory's entries. Best effort: some file systems and platforms cannot open or flush a directory. */
export async function syncDir(dir: string): Promise<void> {
  try {
    const handle = await open(dir, 'r')
    try {
      await handle.sync()
    } finally {
      await handle.close()
    }
  } catch {
    // as promised above: the data itself is flushed, the name follows with the file system's own schedule
  }
}

/** The file or a directory above it is not there. */
export function isMissing(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException
  return code === 'ENOENT' || code === 'ENOTDIR'
}

export async function isThere(file: string): Promise<boolean> {
  try {
    await access(file)
    return true
  } catch (error) {
    if (isMissing(error)) return false
    throw error
  }
}
