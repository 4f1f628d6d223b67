/** Which of many names a query means, best first. */
import fuzzysort from 'fuzzysort'
import type { NameHit } from './contract.ts'
import type { Named } from './name-tree.ts'
import type { NameQuery } from './names-task.ts'

interface Found {
  readonly items: readonly NameHit[]
  readonly truncated: boolean
}

type Fits = (path: string) => boolean

/** The first level, directories first: what an empty query shows. */
function topLevel(names: readonly Named[], limit: number, fits: Fits, hidden: boolean): Found {
  const top = names.filter(entry => entry.depth === 1 && (hidden || !entry.hidden) && fits(entry.path))
  const kind = (entry: Named) => (entry.kind === 'directory' ? 0 : 1)
  top.sort((a, b) => kind(a) - kind(b) || (a.path < b.path ? -1 : 1))
  return { items: top.slice(0, limit).map(entry => hitOf(entry, 1, [])), truncated: top.length > limit }
}

/** Fuzzy: `score` and positions are those of fuzzysort over the whole path. Equal scores in the order of their paths. */
export function fuzzy(names: readonly Named[], { query, limit }: NameQuery, fits: Fits | undefined): Found {
  const wanted = query.trim().normalize('NFC')
  if (wanted === '') return topLevel(names, limit, fits ?? (() => true), false)
  const pool = fits ? names.filter(entry => fits(entry.path)) : names
  // More than are shown, so that equal scores at the border are sorted, too.
  const results = fuzzysort.go(wanted, pool as Named[], { key: target, limit: limit + 64, threshold: 0 })
  const hits = results.map(({ obj, score, indexes }) => hitOf(obj, Math.min(1, Math.max(0, score)), indexes))
  hits.sort((a, b) => b.score - a.score || (a.path < b.path ? -1 : 1))
  return { items: hits.slice(0, limit), truncated: results.total > limit }
}

const target = (entry: Named) => entry.prepared

function hitOf(entry: Named, score: number, indexes: Iterable<number>): NameHit {
  const { path, name, kind, composed } = entry
  const positions = [...indexes].sort((a, b) => a - b)
  return { path, name, kind, score, match_positions: composed === path ? positions : positionsIn(path, new Set(positions)) }
}

const graphemes = new Intl.Segmenter('en')

/** Positions of the composed path as those of the path itself; a character that is several there is marked as a whole. */
function positionsIn(path: string, composed: ReadonlySet<number>): number[] {
  const positions: number[] = []
  let at = 0
  for (const { segment, index } of graphemes.segment(path)) {
    const { length } = segment.normalize('NFC')
    const isOne = length !== segment.length
    const isMarked = Array.from({ length }, (_, unit) => composed.has(at + unit))
    for (let unit = 0; unit < segment.length; unit++) if (isOne ? isMarked.includes(true) : isMarked[unit]) positions.push(index + unit)
    at += length
  }
  return positions
}

interface Candidate {
  readonly entry: Named
  readonly tier: number
  readonly span: number
  readonly positions: number[]
}

/**
 * Completion of a path that is being typed: names that equal the query, then those that begin with it, then those that hold its characters in
 * order; nearer and shorter ones first. What stands before a slash must fit directories on the way, in order; with nothing behind the slash
 * the directory itself and what is in it.
 */
export function suggest(names: readonly Named[], { query, limit, show_hidden }: NameQuery, fits: Fits | undefined): Found {
  const typed = inLowerCase(query.trim().normalize('NFC')).replace(/^\.\//, '')
  if (typed === '') return topLevel(names, limit, fits ?? (() => true), show_hidden)
  const segments = typed.split('/').filter((segment, at, all) => segment !== '' || at === all.length - 1)
  const last = segments.pop() ?? ''
  if (last === '' && segments.length === 0) return { items: [], truncated: false }
  const candidates: Candidate[] = []
  for (const entry of names) {
    if (entry.hidden && !show_hidden) continue
    const found = segments.length === 0 ? inName(entry, last) : inPath(entry, segments, last)
    if (found && (!fits || fits(entry.path))) candidates.push(found)
  }
  candidates.sort(
    (a, b) =>
      b.tier - a.tier ||
      a.entry.depth - b.entry.depth ||
      a.entry.name.length - b.entry.name.length ||
      a.span - b.span ||
      (a.entry.path < b.entry.path ? -1 : 1)
  )
  const q = Math.max(1, last.length)
  const scoreOf = ({ entry, tier, span }: Candidate) =>
    Math.min(1, (tier + 0.5 / entry.depth + (0.25 * q) / Math.max(q, entry.name.length) + (0.25 * q) / Math.max(q, span)) / 4)
  return {
    items: candidates.slice(0, limit).map(candidate => hitOf(candidate.entry, scoreOf(candidate), candidate.positions)),
    truncated: candidates.length > limit
  }
}

/** A query in the name alone. */
function inName(entry: Named, query: string): Candidate | undefined {
  const offset = entry.composed.lastIndexOf('/') + 1
  const name = inLowerCase(entry.composed.slice(offset))
  if (query === '') return { entry, tier: 2, span: 0, positions: [] }
  const positions = subsequence(name, query)
  if (!positions) return undefined
  const tier = name === query ? 3 : name.startsWith(query) ? 2 : 1
  return { entry, tier, span: positions.at(-1)! - positions[0]! + 1, positions: positions.map(at => at + offset) }
}

/** Directories in order, then the name; nothing behind the last slash: the directory and its children. */
function inPath(entry: Named, dirs: readonly string[], last: string): Candidate | undefined {
  const parts = inLowerCase(entry.composed).split('/')
  const positions: number[] = []
  let want = 0
  let offset = 0
  let lastAt = -1
  for (const [at, part] of parts.entries()) {
    const isName = at === parts.length - 1
    if (want < dirs.length && (!isName || (last === '' && entry.kind === 'directory'))) {
      const found = subsequence(part, dirs[want]!)
      if (found) {
        positions.push(...found.map(position => position + offset))
        want++
        lastAt = at
      }
    }
    offset += part.length + 1
  }
  if (want < dirs.length) return undefined
  if (last === '') {
    if (lastAt < parts.length - 2) return undefined
    return { entry, tier: lastAt === parts.length - 1 ? 3 : 2, span: 1, positions }
  }
  const found = inName(entry, last)
  return found && { ...found, positions: [...positions, ...found.positions] }
}

/** Lower case of the same length, so that positions hold: the character that is longer in lower case (İ) loses its mark. */
function inLowerCase(text: string): string {
  const lower = text.toLowerCase()
  return lower.length === text.length ? lower : Array.from(text, char => char.toLowerCase().slice(0, char.length)).join('')
}

/** Where the characters of a query are in a text, in order; as one piece where they are. */
function subsequence(text: string, query: string): number[] | undefined {
  const whole = text.indexOf(query)
  if (whole >= 0) return Array.from({ length: query.length }, (_, at) => whole + at)
  const positions: number[] = []
  let from = 0
  for (const char of query) {
    const at = text.indexOf(char, from)
    if (at < 0) return undefined
    from = at + char.length
    for (let unit = at; unit < from; unit++) positions.push(unit)
  }
  return positions
}
