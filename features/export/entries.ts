/** Which files an export has, and what they are called there. */
import { constants } from 'node:fs'
import { type FileHandle, open, readdir, realpath } from 'node:fs/promises'
import { extname, join } from 'node:path'

export interface Entry {
  /** In the archive: relative, with `/`. */
  readonly name: string
  /** Absolute path. */
  readonly file: string
  readonly kind: 'json' | 'journal' | 'text' | 'bytes'
}

const kinds: Readonly<Record<string, Entry['kind']>> = {
  '.json': 'json',
  '.jsonl': 'journal',
  '.log': 'journal',
  '.txt': 'text',
  '.md': 'text',
  '.out': 'text'
}

/** At the top: of the process that has the session open. */
const own = new Set(['lock', 'waiting'])
/** Locks, and files of writes under way. */
const isPassing = (name: string): boolean => name.endsWith('.lock') || name.includes('~')

/** Every regular file of a session's directory, in the order of their names. Links are left out, and what they lead to. */
export async function* sessionEntries(dir: string, below = ''): AsyncGenerator<Entry> {
  const found = await readdir(join(dir, below), { withFileTypes: true }).catch(() => []) // it left while we looked
  for (const entry of found.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = below === '' ? entry.name : `${below}/${entry.name}`
    if (own.has(path) || isPassing(entry.name)) continue
    if (entry.isDirectory()) yield* sessionEntries(dir, path)
    else if (entry.isFile()) yield entryOf(path, join(dir, path))
  }
}

/** Names of the archive hold no backslash and no control character. */
export function entryOf(path: string, file: string): Entry {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this replaces
  return { name: path.replace(/[\\\u0000-\u001f\u007f]/g, '_'), file, kind: kinds[extname(path)] ?? 'bytes' }
}

/** Opens a file below a directory; undefined when it is none any more, or was put in place of another by a link. */
export async function openEntry(root: string, { file }: Entry): Promise<{ handle: FileHandle; size: number; mtime: Date } | undefined> {
  try {
    const real = await realpath(root)
    if ((await realpath(file)) !== real + file.slice(root.length)) return undefined
    const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    const stat = await handle.stat()
    if (stat.isFile()) return { handle, size: stat.size, mtime: stat.mtime }
    await handle.close()
  } catch {
    // gone, or out of reach: the others count
  }
  return undefined
}
