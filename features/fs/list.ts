/** fs:list: a directory with what ignore files, globs, sorts and limits leave of it. */
import type { Dirent } from 'node:fs'
import { opendir, readdir } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { AppError, partedList, yieldToLoop } from '../../kernel/index.ts'
import { anyGlob, holdsRules, IgnoreRules, isNamed, type Root } from '../file-search/index.ts'
import { PathMissing } from '../workspaces/index.ts'
import { type Pin, translated, withPin } from './boundary.ts'
import type { Entry, Listing } from './contract.ts'
import { lstatEach, plainEntry, withTarget } from './entry.ts'
import type { StatusOf } from './service.ts'

/** Entries of one directory that are looked at; the rest counts as cut. */
const SCANNED = 50_000
/** A directory file above this may hold more than fits the memory at once. */
const DIRECTORY_BYTES = 2 * 1024 * 1024
/** Entries of one answer, all directories together. */
const ANSWERED = 20_000
/** Candidates that are sorted without a pause. */
const SORTED = 2_000
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

interface Candidate {
  readonly name: string
  readonly path: string
  readonly directory: boolean
  entry: Entry | undefined
}

interface Scan {
  readonly candidates: Candidate[]
  readonly cut: boolean
}

/** Lists one directory, with those below as far as `depth` goes. Throws PathMissing (40409) for what is no directory. */
export async function listDirectory(root: Root, path: string, options: Listing, status: StatusOf | undefined): Promise<Listed> {
  const lister = new Lister(root, options, status)
  const items = await lister.list(path)
  const children = new Map<string, Entry[]>()
  let level = directories(items)
  for (let depth = 2; depth <= options.depth && level.length > 0; depth++) {
    const next: Entry[] = []
    for (const { path: below } of level) {
      if (lister.listed >= ANSWERED) lister.truncated = true
      // One that vanishes, or that nobody may read, has nothing to show.
      const found = lister.listed >= ANSWERED ? [] : await lister.list(below).catch(() => [])
      children.set(below, found)
      next.push(...directories(found))
    }
    level = next
  }
  return { items, children, truncated: lister.truncated }
}

const directories = (entries: readonly Entry[]) => entries.filter(entry => entry.kind === 'directory')

class Lister {
  readonly #root: Root
  readonly #options: Listing
  readonly #excluded: (path: string) => boolean
  readonly #status: StatusOf | undefined
  truncated = false
  listed = 0

  constructor(root: Root, options: Listing, status: StatusOf | undefined) {
    this.#root = root
    this.#options = options
    this.#excluded = anyGlob(options.exclude_globs ?? [])
    this.#status = status
  }

  list(path: string): Promise<Entry[]> {
    return withPin(this.#root, path, async pin => {
      if (!pin.stats.isDirectory()) throw new AppError(PathMissing, { message: `path ${path} is not a directory` })
      const { candidates, cut } = await this.#scan(pin).catch((error: unknown) => Promise.reject(translated(error, path)))
      const { sort, limit } = this.#options
      if (sort === 'mtime_desc' || sort === 'size_desc') await this.#fill(candidates, pin)
      const shown = await firstOf(candidates, limit, order[sort])
      if (cut || shown.length < candidates.length) this.truncated = true
      await this.#fill(shown, pin)
      const entries = shown.flatMap(({ entry }) => (entry ? [entry] : [])) // without one it is gone
      this.listed += entries.length
      return partedList(await this.#finish(entries, pin), entries.length * ENTRY_CHARS)
    })
  }

  /** The entries of a directory that may be shown. */
  async #scan(pin: Pin): Promise<Scan> {
    const { show_hidden, follow_gitignore } = this.#options
    const { found, cut } = await entriesOf(pin)
    const rules = follow_gitignore ? await this.#rulesOf(pin, found) : new IgnoreRules()
    if (!rules) return { candidates: [], cut: false }
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
    return { candidates, cut }
  }

  /** The ignore rules in a directory; undefined when they exclude itself. */
  async #rulesOf(pin: Pin, found: readonly Dirent[]): Promise<IgnoreRules | undefined> {
    const below = relative(this.#root.real, pin.real)
    let at = this.#root.real
    let rules = await IgnoreRules.above(at)
    for (const part of below === '' ? [] : below.split(sep)) {
      rules = await rules.in(at)
      at = join(at, part)
      if (rules.ignores(at, true)) return undefined
    }
    const names = new Set(found.filter(entry => holdsRules(entry.name)).map(entry => entry.name))
    return await rules.in(at, names)
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
      const scan = await withPin(this.#root, path, pin => this.#scan(pin)).catch(() => undefined) // not readable: not counted
      if (scan && !scan.cut) counts.set(path, scan.candidates.length)
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

/** All entries of a directory, or the first of a huge one. */
async function entriesOf(pin: Pin): Promise<{ readonly found: Dirent[]; readonly cut: boolean }> {
  if (pin.stats.size <= DIRECTORY_BYTES) return { found: await readdir(pin.at, { withFileTypes: true }), cut: false }
  const found: Dirent[] = []
  for await (const entry of await opendir(pin.at, { bufferSize: 1024 })) {
    if (found.length === SCANNED) return { found, cut: true }
    found.push(entry)
  }
  return { found, cut: false }
}

/** Made at its first use: it takes 3 MB. */
let collator: Intl.Collator | undefined
function byName(a: Candidate, b: Candidate): number {
  collator ??= new Intl.Collator('en')
  return collator.compare(a.name, b.name) || (a.name < b.name ? -1 : 1)
}
const order: Readonly<Record<Listing['sort'], (a: Candidate, b: Candidate) => number>> = {
  type_first: (a, b) => Number(b.directory) - Number(a.directory) || byName(a, b),
  name_asc: byName,
  name_desc: (a, b) => byName(b, a),
  mtime_desc: (a, b) => compareTexts(b.entry?.modified_at, a.entry?.modified_at) || byName(a, b),
  size_desc: (a, b) => (b.entry?.size ?? -1) - (a.entry?.size ?? -1) || byName(a, b)
}

const compareTexts = (a = '', b = '') => (a < b ? -1 : a > b ? 1 : 0)

/** The first of a list in an order; yields to the loop in between. */
async function firstOf(candidates: readonly Candidate[], limit: number, compare: (a: Candidate, b: Candidate) => number) {
  let first: Candidate[] = []
  for (let at = 0; at < candidates.length; at += SORTED) {
    await yieldToLoop()
    first = [...first, ...candidates.slice(at, at + SORTED)].sort(compare).slice(0, limit)
  }
  return first
}

async function inGroups<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  for (let at = 0; at < items.length; at += AT_ONCE) await Promise.all(items.slice(at, at + AT_ONCE).map(work))
}
