/** File-system entries of the wire (contract 3, File-system entry). */
import { lstat as lstatCallback, lstatSync, type Stats } from 'node:fs'
import { basename, posix } from 'node:path'
import { AppError, fileEtag, yieldToLoop } from '../../kernel/index.ts'
import type { Root } from '../file-search/index.ts'
import { PathDenied } from '../workspaces/index.ts'
import { linkTarget, missing, pin, translated, withParent, withPin } from './boundary.ts'
import type { Entry } from './contract.ts'
import { textFacts } from './text.ts'

/** Of the thing itself, not of what a link leads to; undefined when it is gone. The call with a callback is three times as quick as the promise. */
function lstatOf(path: string): Promise<Stats | undefined> {
  return new Promise(resolve => lstatCallback(path, (error, stats) => resolve(error ? undefined : stats)))
}

/** A look that takes longer says that the disk is slow, ms. */
const SLOW_MS = 5
/** Looks of other threads at a time. */
const AT_ONCE = 256
/** Looks on this thread before it yields to the loop. */
const SLICE = 64

/**
 * Many things in one directory, each handed over with its place in `names` (kept together they would be copied by the collector of garbage). A
 * quick disk is asked on this thread, in slices, which takes a fraction; a slow one on others.
 */
export async function lstatEach(dir: string, names: readonly string[], use: (stats: Stats | undefined, at: number) => void): Promise<void> {
  const place = `${dir}/`
  let at = 0
  while (at < names.length) {
    const began = performance.now()
    use(await lstatOf(place + names[at]!), at++)
    let last = performance.now()
    if (last - began > SLOW_MS) {
      const from = at
      const found = await Promise.all(names.slice(from, from + AT_ONCE).map(name => lstatOf(place + name)))
      at += found.length
      for (const [index, stats] of found.entries()) use(stats, from + index)
      continue
    }
    while (at < names.length) {
      use(lstatNow(place + names[at]!), at++)
      const now = performance.now()
      if (now - last > SLOW_MS) break
      last = now
      if (at % SLICE !== 0) continue
      const others = yieldToLoop()
      if (!others) continue
      await others
      last = performance.now()
    }
  }
}

function lstatNow(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false })
  } catch {
    return undefined // no permission, or gone
  }
}

/** `place`: where a link can be read. Pipes, sockets and devices show as files without a size. */
async function entryOf(path: string, name: string, stats: Stats, place: string): Promise<Entry> {
  return await withTarget(plainEntry(path, name, stats), place)
}

/** With what it says when it is a link. */
export async function withTarget(entry: Entry, place: string): Promise<Entry> {
  const target = entry.kind === 'symlink' ? await linkTarget(place) : undefined
  return target === undefined ? entry : { ...entry, is_symlink_to: target }
}

/** Without what a link says. */
export function plainEntry(path: string, name: string, stats: Stats): Entry {
  const [modified_at, etag] = [timeOf(stats), fileEtag(stats)]
  if (stats.isFile()) return { path, name, kind: 'file', size: stats.size, modified_at, etag }
  return { path, name, kind: stats.isDirectory() ? 'directory' : stats.isSymbolicLink() ? 'symlink' : 'file', modified_at, etag }
}

/** Years that a time of the wire can show: 0 to 9999. */
const [firstMs, lastMs] = [Date.parse('0000-01-01T00:00:00Z'), Date.parse('9999-12-31T23:59:59.999Z')]

/** Some file systems hold times that no date can show. */
function timeOf({ mtimeMs }: Stats): string {
  const rounded = Math.round(mtimeMs)
  const at = rounded >= firstMs && rounded <= lastMs ? rounded : 0
  const second = Math.floor(at / 1000)
  if (second !== last.second) last = { second, text: new Date(second * 1000).toISOString().slice(0, -4) }
  return `${last.text}${String(at - second * 1000).padStart(3, '0')}Z`
}
/** Files of one directory were often written in one second; a date takes long to show. */
let last = { second: Number.NaN, text: '' }

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

/** An entry with type and language, for which a file is looked into; one that nobody may read goes without. */
export async function detailedEntry(root: Root, path: string): Promise<Entry> {
  const entry = await entryAt(root, path)
  if (entry.kind !== 'file' || entry.size === undefined) return entry
  const facts = await withPin(root, path, held => textFacts(held, posix.basename(path))).catch((error: unknown) => {
    if (AppError.is(error) && error.code === PathDenied.code) return {}
    throw error
  })
  return { ...entry, ...facts }
}
