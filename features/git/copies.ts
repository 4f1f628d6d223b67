/**
 * What git compares with the last commit: copies of the files that changed, made through the border of the workspace. In the work tree itself git
 * would follow a directory that becomes a link to elsewhere while it reads.
 */
import { constants, copyFile, mkdir, symlink, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import type { Root } from '../file-search/index.ts'
import { linkTarget, type Pin, pin, translated, withParent } from '../fs/index.ts'
import { collect, isUnavailable, type Repository, repositoryAt } from './command.ts'
import { withCopyPlace } from './copy-place.ts'
import { isSamePlace, namesChars, taken } from './names.ts'

/** Bounds of one answer; what is beyond them is left out. */
const MAX_FILES = 2000
const MAX_BYTES = 256 * 1024 * 1024
const NAMES_CHARS = namesChars(process.platform)

/** Entries of an index, as text. */
const INDEX_BYTES = 4 * 1024 * 1024
/** Files that are copied at a time. */
const LANES = 16

export interface Copies {
  /** A work tree with the copies only, and an index of them: git would look for every file of a larger one. */
  readonly repository: Repository
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
  const all = [...changed]
  const wanted = taken(all, NAMES_CHARS).slice(0, MAX_FILES)
  const places = wanted.map(path => join(repository.top, path))
  return await withCopyPlace(places, async place => {
    const [tree, index] = [join(place, 'tree'), join(place, 'index')]
    await mkdir(tree)
    const indexed = writeIndex(repository, wanted, index, signal)
    indexed.catch(() => undefined) // heard of below
    const copier = new Copier(repository, root, tree, signal)
    const copied = new Set<string>()
    try {
      await inLanes(wanted, async path => {
        if (await copier.copy(path)) copied.add(path)
      })
      // They say how a file is read. Those that did not change git knows.
      await inLanes(attributesOf(copied), async path => void (await copier.copy(path)))
      await copier.makeLinks()
    } finally {
      await indexed
    }
    const paths = wanted.filter(path => copied.has(path))
    const env = { ...repository.env, GIT_WORK_TREE: tree, GIT_INDEX_FILE: index }
    return await use({ repository: { ...repository, env }, paths, cut: paths.length < all.length })
  })
}

/** Files that may say how these are read. */
function attributesOf(paths: Iterable<string>): string[] {
  const dirs = new Set<string>(['.'])
  for (const path of paths) for (let dir = dirname(path); !dirs.has(dir); dir = dirname(dir)) dirs.add(dir)
  return [...dirs].map(dir => join(dir, '.gitattributes'))
}

/** An index of these paths, and of what says how they are read. */
async function writeIndex(repository: Repository, paths: readonly string[], file: string, signal: AbortSignal): Promise<void> {
  const said = taken(attributesOf(paths), NAMES_CHARS / 4)
  const entries = await collect(repository, ['ls-files', '--stage', '-z', '--', ...paths, ...said], signal, INDEX_BYTES)
  const at = { ...repository, env: { ...repository.env, GIT_INDEX_FILE: file } }
  await collect(at, ['update-index', '-z', '--index-info'], signal, 1024, [0], entries.text)
}

/** Does something with each, so many at a time; when one fails no more begin, and all have ended. */
async function inLanes<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  let next = 0
  const lane = async () => {
    try {
      while (next < items.length) await work(items[next++]!)
    } finally {
      next = items.length
    }
  }
  const ended = await Promise.allSettled(Array.from({ length: Math.min(LANES, items.length) }, lane))
  for (const each of ended) if (each.status === 'rejected') throw each.reason
}

class Copier {
  readonly #repository: Repository
  readonly #root: Root
  readonly #tree: string
  readonly #signal: AbortSignal
  readonly #made = new Map<string, Promise<unknown>>()
  /** What links say, by their places in the tree. */
  readonly #links = new Map<string, string>()
  #left = MAX_BYTES

  constructor(repository: Repository, root: Root, tree: string, signal: AbortSignal) {
    this.#repository = repository
    this.#root = root
    this.#tree = tree
    this.#signal = signal
  }

  /** False: it is larger than what is left. What is no longer there, or lies behind a link, is nothing, as git has it. */
  async copy(path: string): Promise<boolean> {
    this.#signal.throwIfAborted()
    const place = join(this.#repository.top, path)
    const name = relative(this.#root.real, place)
    const to = join(this.#tree, path)
    const held = await pin(this.#root, name).catch(() => undefined) // gone, or a link that leads nowhere or out
    try {
      if (!held || !isSamePlace(held.real, place)) await this.#noteLink(name, place, to)
      else if (held.stats.isDirectory()) await copySubmodule(place, to, this.#signal)
      else if (held.stats.isFile()) {
        if (held.stats.size > this.#left) return false
        this.#left -= held.stats.size
        await this.#file(held, to)
      }
      return true
    } finally {
      await held?.close()
    }
  }

  async #file(held: Pin, to: string): Promise<void> {
    try {
      await this.#makeParent(to)
      await copyFile(held.at, to, constants.COPYFILE_FICLONE)
    } catch (error) {
      throw translated(error, held.path)
    }
  }

  async #noteLink(name: string, place: string, to: string): Promise<void> {
    const target = await withParent(this.#root, name, async (parent, last) =>
      isSamePlace(parent.real, dirname(place)) ? await linkTarget(`${parent.at}/${last}`) : undefined
    ).catch(() => undefined) // its directory is gone
    if (target !== undefined) this.#links.set(to, target)
  }

  /** When everything else is there, and what lies deeper first: one that was a directory a moment ago, or is one by now, leads no copy elsewhere. */
  async makeLinks(): Promise<void> {
    for (const [to, target] of [...this.#links].sort(([a], [b]) => (a < b ? 1 : -1))) {
      await this.#makeParent(to)
      await symlink(target, to).catch((error: unknown) => {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      })
    }
  }

  async #makeParent(to: string): Promise<void> {
    const dir = dirname(to)
    const made = this.#made.get(dir) ?? mkdir(dir, { recursive: true })
    this.#made.set(dir, made)
    await made
  }
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
