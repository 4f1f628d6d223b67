/**
 * The border of a workspace. A path is opened without touching what it leads to, where it led is asked of the system, and from then on
 * only what was opened is used: a link that is swapped between the check and the use leads nowhere.
 */
import { closeSync, fstatSync, readlinkSync, type Stats } from 'node:fs'
import { constants, type FileHandle, lstat, open, readlink, realpath } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { AppError, headOf } from '../../kernel/index.ts'
import { canHold, heldAt, openPath, type Root } from '../file-search/index.ts'
import { isInside, leadsTo } from '../tools/index.ts'
import { assertSpelled, PathDenied, PathMissing, PathOutside } from '../workspaces/index.ts'

/** How often a path is opened whose file was replaced meanwhile, as editors save. */
const REPLACED = 10

/** Longest path that systems take. */
const PATH_BYTES = 4096

/** Something inside a workspace, held until `close`. */
export class Pin {
  /** Relative to the workspace, normalised; `.` is the workspace. */
  readonly path: string
  /** Absolute, links resolved. */
  readonly real: string
  /** What it leads to, links followed. */
  readonly stats: Stats
  /** O_PATH; -1 once it is closed; undefined where nothing is held. */
  #fd: number | undefined

  constructor(path: string, real: string, stats: Stats, fd: number | undefined) {
    this.path = path
    this.real = real
    this.stats = stats
    this.#fd = fd
  }

  /** The path to use: leads to what was checked, whatever happened to its name. */
  get at(): string {
    return this.#fd === undefined ? this.real : heldAt(this.#fd)
  }

  /** Opens a regular file for reading; close it yourself. Throws PathDenied (40411), PathMissing (40409). */
  async open(): Promise<FileHandle> {
    const flags = constants.O_RDONLY | (this.#fd === undefined ? constants.O_NOFOLLOW : 0) | constants.O_NONBLOCK
    return await open(this.at, flags).catch((error: unknown) => Promise.reject(translated(error, this.path)))
  }

  async close(): Promise<void> {
    const fd = this.#fd
    if (fd === undefined || fd < 0) return
    this.#fd = -1
    closeSync(fd)
  }
}

/**
 * A path of a request, normalised: `a/b`, or `.`. Throws PathOutside (41304) for an absolute or empty one and for every `..`, 40001 (detail
 * at `field`) for one with NUL or half a surrogate pair.
 */
export function relativePath(given: string, field = 'body.path'): string {
  assertSpelled(given, field)
  const slashed = process.platform === 'win32' ? given.replaceAll('\\', '/') : given
  const absolute = slashed.startsWith('/') || (process.platform === 'win32' && /^[A-Za-z]:/.test(slashed))
  if (given === '' || absolute || slashed.split('/').includes('..')) throw outside(given)
  return posix.normalize(slashed).replace(/\/+$/, '') || '.'
}

/** Pins what a path (as `relativePath` returns it) leads to. Throws PathOutside (41304), PathMissing (40409), PathDenied (40411). */
export async function pin(root: Root, path: string): Promise<Pin> {
  const full = join(root.real, path)
  if (Buffer.byteLength(full) >= PATH_BYTES) throw missing(path)
  if (!canHold) {
    const real = await realInside(root, path)
    return new Pin(path, real, await lstat(real).catch((error: unknown) => Promise.reject(translated(error, path))), undefined)
  }
  for (let attempt = 1; ; attempt++) {
    const fd = await openPath(full).catch(async (error: unknown) => {
      await realInside(root, path) // one that leads out says so, also when nothing is there
      throw translated(error, path)
    })
    let held = false
    try {
      // Of what is open the system knows this without the disk.
      const [real, stats] = [readlinkSync(heldAt(fd)), fstatSync(fd)]
      // Without a name any more: removed, or replaced by something that has it now.
      if (stats.nlink === 0 && attempt < REPLACED) continue
      if (!isInside(real, root.real)) throw stats.nlink === 0 ? missing(path) : outside(path)
      if (stats.nlink === 0) throw missing(path)
      held = true
      return new Pin(path, real, stats, fd)
    } finally {
      if (!held) closeSync(fd)
    }
  }
}

/** Pins, uses, closes. */
export async function withPin<T>(root: Root, path: string, use: (pin: Pin) => Promise<T>): Promise<T> {
  const held = await pin(root, path)
  try {
    return await use(held)
  } finally {
    await held.close()
  }
}

/** Pins the directory of the last segment and hands over its place (`at`) with the name: to look at a link itself, to make something. */
export function withParent<T>(root: Root, path: string, use: (parent: Pin, name: string) => Promise<T>): Promise<T> {
  return withPin(root, posix.dirname(path), parent => use(parent, posix.basename(path)))
}

/** Where a path leads. Throws PathOutside, or PathMissing when it does not exist. */
async function realInside(root: Root, path: string): Promise<string> {
  const full = join(root.real, path)
  try {
    if (!isInside(await leadsTo(full), root.real)) throw outside(path)
    return await realpath(full)
  } catch (error) {
    throw translated(error, path)
  }
}

/** An errno as one of the contract's answers. */
export function translated(error: unknown, path: string): unknown {
  if (AppError.is(error)) return error
  const code = (error as NodeJS.ErrnoException | undefined)?.code ?? ''
  if (['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG', 'EINVAL', 'ENXIO'].includes(code)) return missing(path, error)
  return ['EACCES', 'EPERM', 'EROFS'].includes(code) ? denied(path, error) : error
}

/** An errno of what may not be read; of one that has nothing to do with permission (a medium that fails, files of /proc) the answer says which. */
export function denied(path: string, cause: unknown): AppError {
  const code = (cause as NodeJS.ErrnoException | undefined)?.code ?? 'EACCES'
  const isPermission = ['EACCES', 'EPERM', 'EROFS'].includes(code)
  return new AppError(PathDenied, { message: isPermission ? `no permission for ${path}` : `${path} cannot be read: ${code}`, cause })
}

export const missing = (path: string, cause?: unknown): AppError =>
  new AppError(PathMissing, { message: `path ${headOf(path, 500)} does not exist`, cause })
export const outside = (path: string): AppError =>
  new AppError(PathOutside, { message: `path ${headOf(path, 500)} leads out of the workspace` })

/** What a link names, or undefined. */
export const linkTarget = (path: string): Promise<string | undefined> => readlink(path).catch(() => undefined) // replaced meanwhile
