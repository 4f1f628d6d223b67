/**
 * What git compares with the last commit: copies of the files that changed, made through the border of the workspace. In the work tree itself git
 * would follow a directory that becomes a link to elsewhere while it reads.
 */
import { constants, copyFile, mkdir, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { isAbandoned, temporaryName } from '../../kernel/index.ts'
import type { Root } from '../file-search/index.ts'
import { linkTarget, type Pin, pin, translated, withParent } from '../fs/index.ts'
import { collect, isUnavailable, type Repository, repositoryAt } from './command.ts'
import { isSamePlace, namesChars } from './names.ts'

/** Bounds of one answer; what is beyond them is left out. */
const MAX_FILES = 2000
const MAX_BYTES = 256 * 1024 * 1024
const NAMES_CHARS = namesChars(process.platform)

const PREFIX = 'svc-code-diff-'

export interface Copies {
  /** A work tree with the copies only. */
  readonly tree: string
  /** What was copied, and what is gone; from the root of the repository. */
  readonly paths: readonly string[]
  /** Some were left out. */
  readonly cut: boolean
}

/** Copies what lies at these paths (from the root of the repository), lets it be used, and removes it. Throws PathDenied (40411). */
export async function withCopies<T>(
  repository: Repository,
  root: Root,
  changed: Iterable<string>,
  signal: AbortSignal,
  use: (copies: Copies) => Promise<T>
): Promise<T> {
  await sweep()
  const tree = join(tmpdir(), PREFIX + (await temporaryName()))
  await mkdir(tree, { mode: 0o700 })
  try {
    const paths: string[] = []
    const attributes = new Set<string>()
    let [bytes, chars, cut] = [0, 0, false]
    for (const path of changed) {
      signal.throwIfAborted()
      chars += path.length
      if (paths.length === MAX_FILES || chars > NAMES_CHARS) {
        cut = true
        break
      }
      const size = await copyOf(repository, root, path, tree, MAX_BYTES - bytes, signal)
      if (size === undefined) cut = true
      else paths.push(path)
      bytes += size ?? 0
      for (let dir = dirname(path); !attributes.has(dir); dir = dirname(dir)) attributes.add(dir)
    }
    // They say how a file is read. Those that did not change git knows.
    for (const dir of attributes) await copyOf(repository, root, join(dir, '.gitattributes'), tree, MAX_BYTES, signal)
    return await use({ tree, paths, cut })
  } finally {
    await rm(tree, { recursive: true, force: true })
  }
}

/** Removes the copies of servers that died over a diff, as far as that goes; the next diff tries again. */
async function sweep(): Promise<void> {
  const names = await readdir(tmpdir()).catch(() => [])
  await Promise.allSettled(
    names
      .filter(name => name.startsWith(PREFIX))
      .map(async name => {
        const tree = join(tmpdir(), name)
        if (await isAbandoned(tree)) await rm(tree, { recursive: true, force: true })
      })
  )
}

/** Bytes that were copied; undefined: it is larger than `most`. What is no longer there, or lies behind a link, is nothing, as git has it. */
async function copyOf(repository: Repository, root: Root, path: string, tree: string, most: number, signal: AbortSignal) {
  const place = join(repository.top, path)
  const name = relative(root.real, place)
  const to = join(tree, path)
  const held = await pin(root, name).catch(() => undefined) // gone, or a link that leads nowhere or out
  try {
    if (!held || !isSamePlace(held.real, place)) return await copyLink(root, name, place, to)
    if (held.stats.isDirectory()) await copySubmodule(place, to, signal)
    if (!held.stats.isFile()) return 0
    if (held.stats.size > most) return undefined
    await copyFileOf(held, to)
    return held.stats.size
  } finally {
    await held?.close()
  }
}

async function copyFileOf(held: Pin, to: string): Promise<void> {
  try {
    await mkdir(dirname(to), { recursive: true })
    await copyFile(held.at, to, constants.COPYFILE_FICLONE)
  } catch (error) {
    throw translated(error, held.path)
  }
}

async function copyLink(root: Root, name: string, place: string, to: string): Promise<number> {
  const target = await withParent(root, name, async (parent, last) =>
    isSamePlace(parent.real, dirname(place)) ? await linkTarget(`${parent.at}/${last}`) : undefined
  ).catch(() => undefined) // its directory is gone
  if (target === undefined) return 0
  await mkdir(dirname(to), { recursive: true })
  await symlink(target, to)
  return 0
}

/** Of a submodule git asks for its commit only: a repository with nothing but that. */
async function copySubmodule(place: string, to: string, signal: AbortSignal): Promise<void> {
  const head = await headOf(place, signal)
  await mkdir(head === undefined ? to : join(to, '.git', 'objects'), { recursive: true })
  if (head === undefined) return
  await mkdir(join(to, '.git', 'refs'))
  await writeFile(join(to, '.git', 'HEAD'), `${head}\n`)
}

async function headOf(place: string, signal: AbortSignal): Promise<string | undefined> {
  try {
    const repository = await repositoryAt(place, signal)
    if (!isSamePlace(repository.top, place)) return undefined
    const { text } = await collect(repository, ['rev-parse', '--verify', 'HEAD'], signal, 1024)
    return /^[0-9a-f]{40,64}$/.exec(text.trim())?.[0]
  } catch (error) {
    if (!isUnavailable(error)) throw error
    return undefined // an empty directory, or no commit in it
  }
}
