/** Files and directories that are held open: the path that leads to what is held, whatever became of its name. On Linux only. */
import { closeSync, fstatSync, open, readlinkSync, type Stats } from 'node:fs'
import { lstat, realpath } from 'node:fs/promises'
import { promisify } from 'node:util'

/** Names a path and opens nothing, so that devices and pipes do nothing. Node has no name for it. */
export const O_PATH = 0o10000000

/** How often a file is opened that was replaced meanwhile, as editors save. */
const REPLACED = 10

/** Where this process is in /proc: by its id, which is quicker, unless /proc counts ids of another namespace, where `self` alone is right. */
const own = process.platform === 'linux' ? ownDirectory() : undefined

export const canHold = own !== undefined

export const heldAt = (fd: number): string => `${own}/fd/${fd}`

/** A regular file, held until `close`; where the system holds nothing, one that was at its path when it was looked for. */
export interface HeldFile {
  /** Leads to it. */
  readonly at: string
  /** O_PATH; undefined where nothing is held. */
  readonly fd: number | undefined
  readonly size: number
  close(): void
}

/**
 * The regular file at a path (absolute, links resolved), with no link on the way to it. Undefined: there is none, or a link leads elsewhere.
 * Throws where no more files can be opened.
 */
export async function holdFile(path: string): Promise<HeldFile | undefined> {
  if (!canHold) return await foundFile(path)
  for (let attempt = 1; attempt <= REPLACED; attempt++) {
    const fd = await openPath(path).catch(orNothing)
    if (fd === undefined) return undefined
    const { place, stats } = factsOf(fd)
    if (stats?.isFile() && place === path) return { at: heldAt(fd), fd, size: stats.size, close: () => closeSync(fd) }
    closeSync(fd)
    if (stats?.nlink !== 0) return undefined
  }
  return undefined
}

/** The descriptor of a name; close it yourself. */
export const openPath = promisify((path: string, done: (error: Error | null, fd: number) => void) => open(path, O_PATH, done))

/** Of what is open the system knows this without the disk. */
function factsOf(fd: number): { readonly place?: string; readonly stats?: Stats } {
  try {
    return { place: readlinkSync(heldAt(fd)), stats: fstatSync(fd) }
  } catch {
    return {} // its file system fails
  }
}

async function foundFile(path: string): Promise<HeldFile | undefined> {
  const [real, stats] = await Promise.all([realpath(path).catch(orNothing), lstat(path).catch(orNothing)])
  return real === path && stats?.isFile() ? { at: path, fd: undefined, size: stats.size, close: () => undefined } : undefined
}

/** Nothing to be seen, unless it is this process that has too much open. */
function orNothing(error: NodeJS.ErrnoException): undefined {
  if (error.code === 'EMFILE' || error.code === 'ENFILE') throw error
}

function ownDirectory(): string | undefined {
  try {
    return readlinkSync('/proc/self') === String(process.pid) ? `/proc/${process.pid}` : '/proc/self'
  } catch {
    return undefined // no /proc
  }
}
