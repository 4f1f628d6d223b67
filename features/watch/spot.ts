/** Where a watched path is looked for: in its directory, or in the nearest one above that is there. */
import { lstat, realpath } from 'node:fs/promises'
import { basename, dirname, join, sep } from 'node:path'
import { WatchTrouble } from './change.ts'

export interface PlaceOptions {
  /** Absolute. What lies outside of it is never watched. */
  readonly root: string
  /** Below the root, with slashes; empty: the root. */
  readonly path: string
  /** False: the path and its direct children. */
  readonly recursive: boolean
}

/** What is looked at for a path. */
export interface Spot {
  /** Absolute directory, links resolved. */
  readonly base: string
  readonly inode: string
  /** The child that is looked for; undefined: the base is the path itself. */
  readonly only?: string
  /** The child is the path: it is a file, or not there. Else it is a directory above the path. */
  readonly direct?: boolean
}

const isBelow = (path: string, dir: string) => path === dir || path.startsWith(dir.endsWith(sep) ? dir : dir + sep)
export const isSame = (a: Spot, b: Spot): boolean => a.base === b.base && a.inode === b.inode && a.only === b.only

/** Rejects with WatchTrouble where there is nothing to look at. */
export async function findSpot({ root, path }: PlaceOptions): Promise<Spot> {
  const top = await realpath(root).catch(() => undefined)
  if (top === undefined) throw new WatchTrouble('missing', 'the root of what is to be watched is not there')
  const target = join(top, path)
  for (let at = target, missing = ''; isBelow(at, top); missing = basename(at), at = dirname(at)) {
    const real = await realpath(at).catch(() => undefined) // not there
    if (real === undefined) continue
    if (!isBelow(real, top)) throw new WatchTrouble('outside', `${path} leads out of the workspace`)
    const stats = await lstat(real).catch(() => undefined) // it went this moment
    if (!stats) continue
    const inode = `${stats.dev}:${stats.ino}`
    if (stats.isDirectory()) return { base: real, inode, ...(at === target ? {} : { only: missing, direct: dirname(target) === at }) }
    if (at !== target) continue
    const base = dirname(real)
    const { dev, ino } = await lstat(base)
    return { base, inode: `${dev}:${ino}`, only: basename(real), direct: true }
  }
  throw new WatchTrouble('missing', 'the root of what is to be watched is not there')
}

/** No link leads to it, or to what lies above it as far as that is there: whoever watches above sees it. Rejects as `findSpot` does. */
export async function isPlain(options: PlaceOptions): Promise<boolean> {
  const { base, only = '' } = await findSpot(options)
  const target = join(await realpath(options.root), options.path)
  return isBelow(target, join(base, only))
}
