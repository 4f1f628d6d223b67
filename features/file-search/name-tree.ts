/**
 * The names below one directory, kept. Before each use every directory is asked for its time, and only those that changed are read again.
 * Runs in a thread of its own, where waiting for the disk stops nobody.
 */
import { closeSync, openSync, readdirSync, readlinkSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import fuzzysort, { type Prepared } from 'fuzzysort'
import type { NameHit } from './contract.ts'
import { canHold, heldAt, O_PATH } from './held.ts'
import { IgnoreRules, ignoreFiles, isNamed, rulesAmong, VCS_DIRS } from './ignore-rules.ts'

/** Names of one tree; what lies deepest is left out first. */
const MAX_NAMES = 200_000
/** A directory that changed this shortly before it was read may change again without a new time, ms. */
const SETTLED_MS = 50
const MAX_DEPTH = 64

export interface Named extends Pick<NameHit, 'path' | 'name' | 'kind'> {
  /** Segments of the path. */
  readonly depth: number
  /** Some segment begins with a dot. */
  readonly hidden: boolean
  /** The path with letters and their marks as one character where there is one (NFC): what is searched, as queries may be spelled either way. */
  readonly composed: string
  readonly prepared: Prepared
}

interface Folder {
  /** Relative to the root with a slash at its end; empty: the root. */
  readonly prefix: string
  /** Absolute. */
  readonly at: string
  readonly depth: number
  /** Its ignore files as far as they count, absolute. */
  readonly rules: readonly string[]
  mtimeMs: number
  settled: boolean
  entries: Named[]
}

export class NameTree {
  /** Names did not fit. */
  cut = false
  readonly #root: string
  readonly #follow: boolean
  #folders = new Map<string, Folder>()
  /** Times of the ignore files that count. */
  #signature = ''
  #all: Named[] | undefined
  #count = 0

  constructor(root: string, follow: boolean) {
    this.#root = root
    this.#follow = follow
  }

  get size(): number {
    return this.#count
  }

  /** All names as they are now, directories before what is in them. */
  async names(): Promise<readonly Named[]> {
    if (this.#folders.size === 0 || this.#rulesChanged()) await this.#build()
    else await this.#refresh()
    this.#all ??= [...this.#folders.values()].flatMap(folder => folder.entries)
    return this.#all
  }

  async #build(): Promise<void> {
    this.#folders = new Map()
    this.#count = 0
    this.cut = false
    const above = this.#follow ? await IgnoreRules.above(this.#root) : new IgnoreRules()
    await this.#walk([{ prefix: '', depth: 0, rules: above }])
    this.#signature = this.#sign()
  }

  /** Level by level, so that what is near is found before the limit is reached. */
  async #walk(from: { readonly prefix: string; readonly depth: number; readonly rules: IgnoreRules }[]): Promise<void> {
    this.#all = undefined
    for (let level = from; level.length > 0; ) {
      const next: typeof from = []
      for (const { prefix, depth, rules } of level) {
        if (this.#count >= MAX_NAMES || depth > MAX_DEPTH) {
          this.cut = true
          continue
        }
        const read = await this.#read(prefix, depth, rules)
        if (!read) continue
        this.#folders.set(prefix, read.folder)
        this.#count += read.folder.entries.length
        for (const entry of read.folder.entries)
          if (entry.kind === 'directory') next.push({ prefix: `${entry.path}/`, depth: depth + 1, rules: read.rules })
      }
      level = next
    }
  }

  /** Undefined: it is gone, not readable, or no longer below the root. */
  async #read(
    prefix: string,
    depth: number,
    above: IgnoreRules
  ): Promise<{ readonly folder: Folder; readonly rules: IgnoreRules } | undefined> {
    const at = join(this.#root, prefix)
    let found: ReturnType<typeof entriesAt>
    try {
      found = entriesAt(at)
    } catch {
      return undefined
    }
    const own = this.#follow ? rulesAmong(found.entries) : new Set<string>()
    const rules = await above.in(at, own)
    const entries: Named[] = []
    for (const entry of found.entries) {
      const { name } = entry
      if (VCS_DIRS.includes(name) || rules.ignores(`${at === '/' ? '' : at.replace(/\/$/, '')}/${name}`, entry.isDirectory())) continue
      const path = prefix + name
      const composed = path.normalize('NFC')
      entries.push({
        path,
        name,
        kind: entry.isDirectory() ? 'directory' : entry.isSymbolicLink() ? 'symlink' : 'file',
        depth: depth + 1,
        hidden: name.startsWith('.') || prefix.startsWith('.') || prefix.includes('/.'),
        composed,
        prepared: fuzzysort.prepare(composed)
      })
    }
    entries.sort((a, b) => (a.name < b.name ? -1 : 1))
    const settled = Date.now() - found.mtimeMs > SETTLED_MS
    const held = [...own].map(name => join(at, name))
    return { folder: { prefix, at, depth, rules: held, mtimeMs: found.mtimeMs, settled, entries }, rules }
  }

  async #refresh(): Promise<void> {
    const changed = [...this.#folders.values()].filter(folder => !folder.settled || timeOf(folder.at) !== folder.mtimeMs)
    for (const folder of changed) {
      if (this.#folders.get(folder.prefix) !== folder) continue // went with a directory above it
      const rules = await this.#rulesAbove(folder.prefix)
      const read = await this.#read(folder.prefix, folder.depth, rules)
      if (read?.folder.rules.some(file => !folder.rules.includes(file))) {
        await this.#build() // new rules count below, too
        return
      }
      const kept = new Set(read?.folder.entries.flatMap(entry => (entry.kind === 'directory' ? [entry.path] : [])))
      const old = folder.entries.filter(entry => entry.kind === 'directory')
      for (const entry of old) if (!kept.has(entry.path)) this.#forget(`${entry.path}/`)
      this.#count -= folder.entries.length
      this.#folders.delete(folder.prefix)
      this.#all = undefined
      if (!read) continue
      this.#folders.set(folder.prefix, read.folder)
      this.#count += read.folder.entries.length
      const known = new Set(old.map(entry => entry.path))
      const fresh = [...kept].filter(path => !known.has(path))
      await this.#walk(fresh.map(path => ({ prefix: `${path}/`, depth: folder.depth + 1, rules: read.rules })))
    }
  }

  /** With what is below it. */
  #forget(prefix: string): void {
    const folder = this.#folders.get(prefix)
    if (!folder) return
    this.#folders.delete(prefix)
    this.#count -= folder.entries.length
    for (const { kind, path } of folder.entries) if (kind === 'directory') this.#forget(`${path}/`)
  }

  async #rulesAbove(prefix: string): Promise<IgnoreRules> {
    if (!this.#follow) return new IgnoreRules()
    let rules = await IgnoreRules.above(this.#root)
    let at = this.#root
    for (const part of prefix.split('/').slice(0, -1)) {
      rules = await rules.in(at)
      at = join(at, part)
    }
    return rules
  }

  #rulesChanged(): boolean {
    return this.#follow && this.#sign() !== this.#signature
  }

  /** Times and sizes of the ignore files in the tree and above it. */
  #sign(): string {
    const files = [...this.#folders.values()].flatMap(folder => folder.rules)
    for (let at = this.#root; ; at = dirname(at)) {
      files.push(join(at, '.git', 'info', 'exclude'), ...ignoreFiles.map(name => join(at, name)))
      if (dirname(at) === at) break
    }
    return files.map(file => signOf(file)).join()
  }
}

function signOf(file: string): string {
  try {
    const stats = statSync(file, { throwIfNoEntry: false })
    return stats ? `${stats.mtimeMs} ${stats.size} ${stats.ino}` : ''
  } catch {
    return '' // no permission, or no way to it: its rules cannot be read, either
  }
}

function timeOf(dir: string): number {
  try {
    return statSync(dir, { throwIfNoEntry: false })?.mtimeMs ?? -1
  } catch {
    return -1 // no permission any more: read again, which fails
  }
}

/** What is in a directory, which must be where it is said to be: no link on the way is followed. */
function entriesAt(dir: string) {
  if (!canHold) return { mtimeMs: statSync(dir).mtimeMs, entries: namedIn(dir) }
  const fd = openSync(dir, O_PATH)
  try {
    const place = heldAt(fd)
    if (readlinkSync(place) !== (dir === '/' ? dir : dir.replace(/\/$/, ''))) throw new Error('a link')
    return { mtimeMs: statSync(place).mtimeMs, entries: namedIn(place) }
  } finally {
    closeSync(fd)
  }
}

const namedIn = (dir: string) => readdirSync(dir, { withFileTypes: true }).filter(({ name }) => isNamed(dir, name))
