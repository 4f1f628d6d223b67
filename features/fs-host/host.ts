/** Directories and files of the server's machine. */
import { mkdir, readdir, realpath, stat } from 'node:fs/promises'
import { dirname, isAbsolute, join, parse, relative, resolve } from 'node:path'
import { AppError, type BinaryReply, type DataOf, homeOfUser, invalid, yieldToLoop } from '../../kernel/index.ts'
import { passive } from '../files/index.ts'
import { denied, fileReply, missing, PathExists, PathIsDirectory, translated } from '../fs/index.ts'
import { assertSpelled, PathDenied, PathMissing } from '../workspaces/index.ts'
import type { browseDirectories } from './contract.ts'

/** Names that are put in order without a pause. */
const SLICE = 2_000

/** Throws 40001 (detail at `field`) unless it is absolute and names what it says. */
export function assertAbsolute(path: string, field: string): void {
  assertSpelled(path, field)
  if (!isAbsolute(path)) throw invalid([{ path: field, message: 'must be an absolute path' }])
}

/** The directories in a directory. Throws PathMissing (40409), also for a file; PathDenied (40411). */
export async function browse(given = homeOfUser()): Promise<DataOf<typeof browseDirectories>> {
  try {
    const path = await realpath(given)
    if (!(await stat(path)).isDirectory()) throw new AppError(PathMissing, { message: `path ${given} is not a directory` })
    const names = (await readdir(path, { withFileTypes: true })).filter(entry => entry.isDirectory()).map(entry => entry.name)
    const parent = dirname(path)
    const entries = (await sorted(names)).map(name => ({ name, path: join(path, name), is_dir: true as const }))
    return { path, parent: parent === path ? null : parent, entries }
  } catch (error) {
    throw translated(error, given)
  }
}

/** By name, hidden ones last; long lists in slices that are merged, with other work in between. */
async function sorted(names: readonly string[]): Promise<string[]> {
  const collator = new Intl.Collator('en')
  const compare = (a: string, b: string) => Number(a.startsWith('.')) - Number(b.startsWith('.')) || collator.compare(a, b)
  if (names.length <= SLICE) return [...names].sort(compare)
  await yieldToLoop()
  const half = names.length >> 1
  const [left, right] = [await sorted(names.slice(0, half)), await sorted(names.slice(half))]
  const merged: string[] = []
  for (let a = 0, b = 0; a < left.length || b < right.length; ) {
    if (merged.length % SLICE === SLICE - 1) await yieldToLoop()
    const first = b >= right.length || (a < left.length && compare(left[a]!, right[b]!) <= 0)
    merged.push(first ? left[a++]! : right[b++]!)
  }
  return merged
}

/** Throws 40001 for what is no regular file, PathIsDirectory (40906), PathMissing (40409), PathDenied (40411). */
export async function hostFile(given: string): Promise<BinaryReply> {
  const path = resolve(given)
  const stats = await stat(path).catch((error: unknown) => Promise.reject(translated(error, given)))
  if (stats.isDirectory()) throw new AppError(PathIsDirectory, { message: `path ${given} is a directory` })
  if (!stats.isFile()) throw invalid([{ path: 'query.path', message: 'is not a regular file' }])
  const { root } = parse(path)
  return await fileReply({ path: root, real: root }, relative(root, path), { headers: passive }).catch((error: unknown) => {
    if (!AppError.is(error) || error.code !== PathDenied.code) throw error
    throw denied(given, error.cause)
  })
}

/** Makes one directory. Throws PathMissing (40409) without its parent, PathExists (40919), PathDenied (40411). */
export async function makeDirectory(given: string): Promise<void> {
  await mkdir(resolve(given)).catch(async (error: unknown) => {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') throw new AppError(PathExists, { message: `path ${given} exists already`, cause: error })
    if (code !== 'ENOENT') throw translated(error, given)
    // Some file systems, as that of processes, make nothing, and say so by that.
    const isThere = await stat(dirname(resolve(given))).catch(() => undefined)
    throw isThere
      ? new AppError(PathDenied, { message: `nothing can be made in ${dirname(given)}`, cause: error })
      : missing(dirname(given), error)
  })
}
