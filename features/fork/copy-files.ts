/** The files of a session that go with a copy. */
import { constants } from 'node:fs'
import { copyFile, open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { makeDirs } from '../../kernel/index.ts'

/** At the top: what belongs to one session alone. */
const own = new Set(['state.json', 'lock', 'waiting', 'logs'])
/** The journals of agents have their own way; locks, what leases keep beside theirs, and files of writes under way are nobody's content. */
const isLeftOut = (path: string, name: string): boolean =>
  own.has(path) ||
  /^\.(?:lease-|taking$)/.test(path) ||
  name.endsWith('.lock') ||
  name.includes('~') ||
  /^agents\/[^/]+\/wire\.jsonl/.test(path)

/** Copies everything else, on disk when it resolves. Links and other things that are no files are left out. */
export async function copyFiles(from: string, to: string, below = ''): Promise<void> {
  for (const entry of await readdir(join(from, below), { withFileTypes: true })) {
    const path = below === '' ? entry.name : `${below}/${entry.name}`
    if (isLeftOut(path, entry.name)) continue
    if (entry.isDirectory()) {
      await makeDirs(join(to, path), 0o700)
      await copyFiles(from, to, path)
    } else if (entry.isFile()) await copyOne(join(from, path), join(to, path))
  }
}

async function copyOne(from: string, to: string): Promise<void> {
  try {
    await copyFile(from, to, constants.COPYFILE_FICLONE)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return // it went while we looked
    throw error
  }
  const handle = await open(to, 'r')
  await handle.datasync().finally(() => handle.close())
}
