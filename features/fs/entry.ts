/** File-system entries of the wire (contract 3, File-system entry). */
import { lstat as lstatCallback, type Stats } from 'node:fs'
import { basename, posix } from 'node:path'
import { fileEtag } from '../../kernel/index.ts'
import type { Root } from '../file-search/index.ts'
import { linkTarget, missing, pin, translated, withParent, withPin } from './boundary.ts'
import type { Entry } from './contract.ts'
import { textFacts } from './text.ts'

/** Of the thing itself, not of what a link leads to; undefined when it is gone. The call with a callback is three times as quick as the promise. */
export function lstatOf(path: string): Promise<Stats | undefined> {
  return new Promise(resolve => lstatCallback(path, (error, stats) => resolve(error ? undefined : stats)))
}

/** `place`: where a link can be read. Pipes, sockets and devices show as files without a size. */
export async function entryOf(path: string, name: string, stats: Stats, place: string): Promise<Entry> {
  const target = stats.isSymbolicLink() ? await linkTarget(place) : undefined
  return {
    path,
    name,
    kind: stats.isDirectory() ? 'directory' : stats.isSymbolicLink() ? 'symlink' : 'file',
    ...(stats.isFile() ? { size: stats.size } : {}),
    modified_at: timeOf(stats),
    etag: fileEtag(stats),
    ...(target === undefined ? {} : { is_symlink_to: target })
  }
}

/** Some file systems hold times that no date can show. */
function timeOf(stats: Stats): string {
  const at = stats.mtime
  return (Number.isNaN(at.getTime()) || at.getUTCFullYear() > 9999 || at.getUTCFullYear() < 0 ? new Date(0) : at).toISOString()
}

/** One entry. A link stays a link, but one that leads out of the workspace throws PathOutside (41304). */
export async function entryAt(root: Root, path: string): Promise<Entry> {
  const held = await pin(root, path).catch(error => dangling(root, path, error))
  if (!('at' in held)) return held
  try {
    if (path === '.') return await entryOf('.', basename(root.path) || '/', held.stats, held.at)
    return await withParent(root, path, async (parent, name) => {
      const stats = await lstatOf(`${parent.at}/${name}`)
      if (!stats) throw missing(path)
      return await entryOf(path, name, stats, `${parent.at}/${name}`)
    })
  } finally {
    await held.close()
  }
}

/** A link to nothing is an entry, too. */
async function dangling(root: Root, path: string, error: unknown): Promise<Entry> {
  const outside = translated(error, path)
  if ((outside as { code?: unknown }).code !== 40409 || path === '.') throw outside
  return await withParent(root, path, async (parent, name) => {
    const stats = await lstatOf(`${parent.at}/${name}`)
    if (!stats?.isSymbolicLink()) throw outside
    return await entryOf(path, name, stats, `${parent.at}/${name}`)
  })
}

/** An entry with type and language, for which a file is looked into. */
export async function detailedEntry(root: Root, path: string): Promise<Entry> {
  const entry = await entryAt(root, path)
  if (entry.kind !== 'file' || entry.size === undefined) return entry
  return { ...entry, ...(await withPin(root, path, held => textFacts(held, posix.basename(path)))) }
}
