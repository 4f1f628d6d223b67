/** fs:list: a directory with what ignore files, globs, sorts and limits leave of it. */
import type { Dirent } from 'node:fs'
import { opendir, readdir } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { AppError, partedList, yieldToLoop } from '../../kernel/index.ts'
import { anyGlob, IgnoreRules, isNamed, type Root, rulesAmong } from '../file-search/index.ts'
import { PathMissing } from '../workspaces/index.ts'
import { type Pin, translated, withPin } from './boundary.ts'
import type { Entry, Listing } from './contract.ts'
import { lstatEach, plainEntry, withTarget } from './entry.ts'
import { type Candidate, firstOf, order } from './order.ts'
import type { StatusOf } from './service.ts'

export interface Bounds {
  /** Entries of one directory that are looked at; the rest counts as cut. */
  readonly looked_at: number
  /** Larger directories are not counted. */
  readonly counted: number
  /** A directory file above this may hold more than fits the memory at once. */
  readonly directory_bytes: number
  /** Entries of such a directory that are held at a time. */
  readonly part: number
}
const usual: Bounds = { looked_at: 1_000_000, counted: 50_000, directory_bytes: 2 * 1024 * 1024, part: 10_000 }
/** Entries of one answer, all directories together, behind which only those are listed that were asked for. */
const ANSWERED = 20_000
/** Entries of which each takes little, before it yields to the loop. */
const SLICE = 256
/** An entry as JSON, about. */
const ENTRY_CHARS = 200
/** Directories that are counted at a time. */
const AT_ONCE = 16

export interface Listed {
  readonly items: Entry[]
  readonly children: Map<string, Entry[]>
  readonly truncated: boolean
}

/** What several listings share that are answered together. */
export interface Answer {
  /** Entries so far. */
  listed: number
}

interface Part {
  readonly candidates: Candidate[]
  /** Nothing is looked at behind it. */
  readonly cut: boolean
}

/**
 * Lists one directory, with those below as far as `depth` goes and the answer has room; `limit` holds for the first. Throws PathMissing (40409)
 * for what is no directory, and the reason of the signal.
 */
export async function listDirectory(
  root: Root,
  path: string,
  options: Listing,
  status: StatusOf | undefined,
  signal: AbortSignal,
  answer: Answer = { listed: 0 },
  bounds = usual
): Promise<Listed> {
  const lister = new Lister(root, options, status, signal, answer, bounds)
  const items = await lister.list(path, options.limit)
  const children = new Map<string, Entry[]>()
  let level = directories(items)
  for (let depth = 2; depth <= options.depth && level.length > 0; depth++) {
    const next: Entry[] = []
    for (const { path: below } of level) {
      signal.throwIfAborted()
      const left = ANSWERED - answer.listed
      if (left <= 0) lister.truncated = true
      // One that vanishes, or that nobody may read, has nothing to show.
      const found = left <= 0 ? [] : await lister.list(below, left).catch(() => [])
      children.set(below, found)
      next.push(...directories(found))
    }
    level = next
  }
  signal.throwIfAborted() // the last one may have ended with it
  return { items, children, truncated: lister.truncated }
}

const directories = (entries: readonly Entry[]) => entries.filter(entry => entry.kind === 'directory')

class Lister {
  readonly #root: Root
  readonly #options: Listing
  readonly #excluded: (path: string) => boolean
  readonly #status: StatusOf | undefined
  readonly #signal: AbortSignal
  readonly #answer: Answer
  readonly #bounds: Bounds
  truncated = false

  constructor(root: Root, options: Listing, status: StatusOf | undefined, signal: AbortSignal, answer: Answer, bounds: Bounds) {
    this.#root = root
    this.#options = options
    // What is in a directory is not the directory.
    this.#excluded = anyGlob((options.exclude_globs ?? []).map(glob => glob.replace(/\/\*\*$/, '/**/*')))
    this.#status = status
    this.#signal = signal
    this.#answer = answer
    this.#bounds = bounds
  }

  list(path: string, limit: number): Promise<Entry[]> {
    return withPin(this.#root, path, async pin => {
      if (!pin.stats.isDirectory()) throw new AppError(PathMissing, { message: `path ${path} is not a directory` })
      const shown = await this.#first(pin, limit).catch((error: unknown) => Promise.reject(translated(error, path)))
      await this.#fill(shown, pin)
      const entries = shown.flatMap(({ entry }) => (entry ? [entry] : [])) // without one it is gone
      this.#answer.listed += entries.length
      return partedList(await this.#finish(entries, pin), entries.length * ENTRY_CHARS)
    })
  }

  /** The first entries of a directory in the order that is asked for. */
  async #first(pin: Pin, limit: number): Promise<readonly Candidate[]> {
    const { sort } = this.#options
    let first: readonly Candidate[] = []
    for await (const { candidates, cut } of this.#scan(pin, this.#bounds.looked_at)) {
      if (sort === 'mtime_desc' || sort === 'size_desc') await this.#fill(candidates, pin)
      if (cut || first.length + candidates.length > limit) this.truncated = true
      first = await firstOf(first, candidates, limit, order[sort])
    }
    return first
  }

  /** The entries of a directory that may be shown, part by part, of those about `most` that are looked at. */
  async *#scan(pin: Pin, most: number): AsyncGenerator<Part> {
    let looked = 0
    for await (const { found, whole } of partsOf(pin, this.#bounds)) {
      this.#signal.throwIfAborted()
      // Anew for each part: rules remember every name that they were asked about.
      const rules = this.#options.follow_gitignore ? await this.#rulesOf(pin, whole ? found : undefined) : new IgnoreRules()
      if (!rules) return
      looked += found.length
      yield { candidates: await this.#candidates(pin, found, rules), cut: looked > most }
      if (looked > most) return
    }
  }

  async #candidates(pin: Pin, found: readonly Dirent[], rules: IgnoreRules): Promise<Candidate[]> {
    const { show_hidden, follow_gitignore } = this.#options
    const candidates: Candidate[] = []
    const real = pin.real.endsWith(sep) ? pin.real : pin.real + sep
    const dir = pin.at
    const above = pin.path === '.' ? '' : `${pin.path}/`
    for (const [at, entry] of found.entries()) {
      if (at % SLICE === SLICE - 1) await yieldToLoop()
      const { name } = entry
      if (name.startsWith('.') && (!show_hidden || (name === '.git' && follow_gitignore))) continue
      if (!isNamed(dir, name)) continue
      const directory = entry.isDirectory()
      if (rules.ignores(real + name, directory)) continue
      const path = above + name
      if (!this.#excluded(path)) candidates.push({ name, path, directory, entry: undefined })
    }
    return candidates
  }

  /** How many entries of a directory may be shown; undefined for a large one. */
  async #count(pin: Pin): Promise<number | undefined> {
    let count = 0
    for await (const { candidates, cut } of this.#scan(pin, this.#bounds.counted)) {
      if (cut) return undefined
      count += candidates.length
    }
    return count
  }

  /** The ignore rules in a directory; undefined when they exclude itself. `found`: its entries, where all are known. */
  async #rulesOf(pin: Pin, found: readonly Dirent[] | undefined): Promise<IgnoreRules | undefined> {
    const below = relative(this.#root.real, pin.real)
    let at = this.#root.real
    let rules = await IgnoreRules.above(at)
    for (const part of below === '' ? [] : below.split(sep)) {
      rules = await rules.in(at)
      at = join(at, part)
      if (rules.ignores(at, true)) return undefined
    }
    return await rules.in(at, found && rulesAmong(found))
  }

  async #fill(candidates: readonly Candidate[], pin: Pin): Promise<void> {
    const left = candidates.filter(candidate => !candidate.entry)
    const links: Candidate[] = []
    const dir = pin.at
    const names = left.map(({ name }) => name)
    await lstatEach(dir, names, (stats, at) => {
      if (!stats) return
      const candidate = left[at]!
      candidate.entry = plainEntry(candidate.path, candidate.name, stats)
      if (stats.isSymbolicLink()) links.push(candidate)
    })
    for (const link of links) link.entry = await withTarget(link.entry!, `${dir}/${link.name}`)
  }

  /** Status and counts, for what is shown only. */
  async #finish(entries: Entry[], pin: Pin): Promise<Entry[]> {
    const place = relative(this.#root.real, pin.real).split(sep).join('/')
    const above = place === '' ? '' : `${place}/`
    const counts = new Map<string, number>()
    const counted = entries.filter(entry => entry.kind === 'directory')
    await inGroups(counted, async ({ path }) => {
      this.#signal.throwIfAborted()
      const count = await withPin(this.#root, path, pin => this.#count(pin)).catch(() => undefined) // not readable: not counted
      if (count !== undefined) counts.set(path, count)
    })
    if (!this.#status && counts.size === 0) return entries
    return entries.map(entry => {
      const child_count = counts.get(entry.path)
      const git_status = this.#status?.(above + entry.name, entry.kind === 'directory')
      return {
        ...entry,
        ...(git_status === undefined ? {} : { git_status }),
        ...(child_count === undefined ? {} : { child_count })
      }
    })
  }
}

/** The entries of a directory, those of a huge one in parts. */
async function* partsOf(pin: Pin, bounds: Bounds): AsyncGenerator<{ readonly found: Dirent[]; readonly whole: boolean }> {
  if (pin.stats.size <= bounds.directory_bytes) return yield { found: await readdir(pin.at, { withFileTypes: true }), whole: true }
  let found: Dirent[] = []
  for await (const entry of await opendir(pin.at, { bufferSize: 1024 })) {
    found.push(entry)
    if (found.length < bounds.part) continue
    yield { found, whole: false }
    found = []
  }
  yield { found, whole: false }
}

async function inGroups<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  for (let at = 0; at < items.length; at += AT_ONCE) await Promise.all(items.slice(at, at + AT_ONCE).map(work))
}
