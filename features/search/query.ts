/**
 * One search over the corpus: which documents fit, in which order, and one page of them. Ends within its budgets and says when it did not
 * see everything.
 */
import type { BodyOf, DataOf } from '../../kernel/index.ts'
import type { searchAll } from './contract.ts'
import { type Corpus, countIn, type Document, idIn, keyOf, postingsBelow } from './corpus.ts'
import type { Position } from './page-token.ts'
import { normalise, pairsOf, runsOf, termChars, termOf } from './tokens.ts'

const deadlineMs = 500
const maxPostings = 1_000_000
const maxCandidates = 10_000
const maxScannedChars = 16_000_000

type Request = BodyOf<typeof searchAll>
type Incomplete = DataOf<typeof searchAll>['incomplete']

export interface Query extends Pick<Request, 'mode' | 'op' | 'sort'> {
  readonly text: string
  readonly fits: (document: Document) => boolean
  readonly size: number
  /** Documents that came later do not count. */
  readonly end: number
  /** What comes behind this one. */
  readonly after?: Position | undefined
}

export interface Hit {
  readonly document: Document
  readonly score: number
}

export interface Page {
  readonly hits: readonly Hit[]
  readonly has_more: boolean
  /** Where the next page goes on. */
  readonly position?: Position
  readonly incomplete?: Incomplete
}

export interface QueryPorts {
  readonly corpus: Corpus
  readonly textOf: (document: Document) => string
  readonly terms: readonly string[]
}

export function search(query: Query, ports: QueryPorts): Page {
  return query.mode === 'literal' ? searchLiteral(query, ports) : searchTerms(query, ports)
}

const positionOf = ({ document, score }: Hit): Position => [score, document.time, keyOf(document)]

/** Where a hit stands; its key is asked for in ties alone. */
interface Ranked {
  readonly score: number
  readonly time: number
  readonly key: () => string
}

type Order = (a: Ranked, b: Ranked) => number

/** Less than 0: `a` comes first. Newer ones first where scores are the same, then by key. */
function orderBy(sort: Query['sort']): Order {
  const byKey = (a: Ranked, b: Ranked) => (a.key() < b.key() ? -1 : a.key() > b.key() ? 1 : 0)
  if (sort === 'time_asc') return (a, b) => a.time - b.time || byKey(a, b)
  if (sort === 'time_desc') return (a, b) => b.time - a.time || byKey(a, b)
  return (a, b) => b.score - a.score || b.time - a.time || byKey(a, b)
}

class Candidate implements Ranked, Hit {
  readonly document: Document
  readonly score: number

  constructor(document: Document, score: number) {
    this.document = document
    this.score = score
  }

  get time(): number {
    return this.document.time
  }

  key(): string {
    return keyOf(this.document)
  }
}

const rankedAt = ([score, time, key]: Position): Ranked => ({ score, time, key: () => key })

/** The first hits of a stream, in order. */
class Best {
  readonly #size: number
  readonly #order: Order
  readonly hits: Candidate[] = []

  constructor(size: number, order: Order) {
    this.#size = size
    this.#order = order
  }

  add(hit: Candidate): void {
    const { hits } = this
    const last = hits.at(-1)
    if (hits.length === this.#size && last && this.#order(hit, last) >= 0) return
    let [low, high] = [0, hits.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#order(hits[middle] as Candidate, hit) <= 0) low = middle + 1
      else high = middle
    }
    hits.splice(low, 0, hit)
    if (hits.length > this.#size) hits.pop()
  }
}

interface TermList {
  readonly list: ArrayLike<number>
  readonly size: number
  readonly weight: number
}

function searchTerms({ op, sort, fits, size, end, after }: Query, { corpus, terms }: QueryPorts): Page {
  const until = performance.now() + deadlineMs
  const order = orderBy(sort)
  const behind = after && rankedAt(after)
  const lists: TermList[] = []
  for (const term of terms) {
    const postings = corpus.postings(term)
    const count = postings ? postingsBelow(postings, end) : 0
    if (postings && count > 0) lists.push({ list: postings.list, size: count, weight: Math.log(1 + end / count) })
    else if (op === 'AND') return { hits: [], has_more: false }
  }
  lists.sort((a, b) => a.size - b.size)
  const best = new Best(size + 1, order)
  let incomplete: Incomplete
  let seen = 0
  const take = (id: number, sum: number) => {
    const document = corpus.at(id)
    if (!document || !fits(document)) return
    const hit = new Candidate(document, sum / Math.max(1, document.length))
    if (!behind || order(hit, behind) > 0) best.add(hit)
  }
  /** False: the budget is spent. */
  const spend = () => {
    seen++
    if (seen > maxPostings) incomplete = 'postings_budget'
    else if ((seen & 0x3fff) === 0 && performance.now() > until) incomplete = 'deadline'
    return incomplete === undefined
  }
  const [first, ...others] = lists
  if (first && (op === 'AND' || others.length === 0)) {
    const cursors = others.map(() => 0)
    // The newest documents have the highest numbers: what is not seen is old.
    outer: for (let n = first.size - 1; n >= 0 && spend(); n--) {
      const posting = first.list[n] as number
      const id = idIn(posting)
      let sum = countIn(posting) * first.weight
      for (let each = 0; each < others.length; each++) {
        const other = others[each] as TermList
        const bound = cursors[each] === 0 ? other.size : (cursors[each] as number)
        const at = postingsBelow({ list: other.list, size: bound }, id + 1) - 1
        cursors[each] = at + 1
        if (at < 0) break outer
        const found = other.list[at] as number
        if (idIn(found) !== id) continue outer
        sum += countIn(found) * other.weight
      }
      take(id, sum)
    }
  } else {
    const sums = new Map<number, number>()
    for (const { list, size: count, weight } of lists) {
      for (let n = count - 1; n >= 0 && spend(); n--) {
        const id = idIn(list[n] as number)
        sums.set(id, (sums.get(id) ?? 0) + countIn(list[n] as number) * weight)
      }
    }
    for (const [id, sum] of sums) take(id, sum)
  }
  return pageOf(best.hits, size, incomplete)
}

function pageOf(found: readonly Hit[], size: number, incomplete: Incomplete): Page {
  const hits = found.slice(0, size)
  const last = hits.at(-1)
  const has_more = found.length > size
  return { hits, has_more, ...(has_more && last ? { position: positionOf(last) } : {}), ...(incomplete ? { incomplete } : {}) }
}

/** Newest first. What contains the text is found by the terms in it, then looked at letter by letter. */
function searchLiteral({ text, fits, size, end, after }: Query, { corpus, textOf }: QueryPorts): Page {
  const until = performance.now() + deadlineMs
  const order = orderBy('time_desc')
  const behind = after && rankedAt(after)
  const needle = normalise(text)
  const candidates: Candidate[] = []
  const among = candidatesFor(needle, corpus)
  const consider = (id: number) => {
    const document = corpus.at(id)
    const candidate = document && fits(document) ? new Candidate(document, 0) : undefined
    if (candidate && (!behind || order(candidate, behind) > 0)) candidates.push(candidate)
  }
  if (among) for (const id of among) if (id < end) consider(id)
  if (!among) for (let id = 0; id < end; id++) consider(id)
  const capped = candidates.length > maxCandidates
  const newest = capped ? newestOf(candidates, maxCandidates) : candidates
  newest.sort(order)
  const hits: Candidate[] = []
  let chars = 0
  let last: Candidate | undefined
  for (const candidate of newest) {
    if (hits.length > size) break
    if (chars > maxScannedChars || performance.now() > until) {
      const incomplete = chars > maxScannedChars ? 'candidate_cap' : 'deadline'
      return { hits, has_more: true, ...(last ? { position: positionOf(last) } : {}), incomplete }
    }
    const whole = textOf(candidate.document)
    chars += whole.length
    if (normalise(whole).includes(needle)) hits.push(candidate)
    last = candidate
  }
  const page = pageOf(hits, size, undefined)
  if (page.has_more || !capped || !last) return page
  return { hits, has_more: true, position: positionOf(last), incomplete: 'candidate_cap' }
}

/** Those of the highest times; which ones of the lowest time among them does not matter. */
function newestOf(documents: readonly Candidate[], count: number): Candidate[] {
  const times = Float64Array.from(documents, ({ time }) => time).sort()
  const bound = times[times.length - count] as number
  return documents.filter(({ time }) => time >= bound)
}

/** Numbers of documents that may contain a text; undefined: all of them. */
function candidatesFor(needle: string, corpus: Corpus): Iterable<number> | undefined {
  const exact: string[] = []
  const partial: { readonly text: string; readonly open: boolean; readonly closed: boolean }[] = []
  for (const run of runsOf(needle)) {
    const [left, right] = [run.at === 0, run.at + run.text.length === needle.length]
    if (run.cjk) {
      const pairs = pairsOf(run.text)
      exact.push(...(pairs.length > 0 ? pairs : [run.text]))
    } else if (run.text.length >= termChars || left || right)
      partial.push({ text: termOf(run.text), open: left, closed: !right && run.text.length < termChars })
    else exact.push(run.text)
  }
  let ids: Set<number> | undefined
  for (const term of exact) {
    const postings = corpus.postings(term)
    const next = new Set<number>()
    for (let n = 0; n < (postings?.size ?? 0); n++) {
      const id = idIn(postings?.list[n] as number)
      if (!ids || ids.has(id)) next.add(id)
    }
    ids = next
  }
  if (ids) return ids
  const longest = partial.sort((a, b) => b.text.length - a.text.length)[0]
  if (!longest) return undefined
  const marks = new Uint8Array(corpus.end)
  for (const [term, { list, size }] of corpus.terms()) {
    const { text, open, closed } = longest
    const fits = open ? (closed ? term.endsWith(text) : term.includes(text)) : closed ? term === text : term.startsWith(text)
    // Long words are cut in the terms, so that their ends are not known.
    if (fits || (term.length === termChars && open)) for (let n = 0; n < size; n++) marks[idIn(list[n] as number)] = 1
  }
  return marked(marks)
}

function* marked(marks: Uint8Array): Generator<number> {
  for (let id = marks.indexOf(1); id >= 0; id = marks.indexOf(1, id + 1)) yield id
}

/** The documents that the request means. */
export function filterOf({ container, role, start_time = -Infinity, end_time = Infinity }: Request): (document: Document) => boolean {
  const { session_id, agent_id } = container ?? {}
  return document =>
    (session_id === undefined || document.session_id === session_id) &&
    (agent_id === undefined || document.agent_id === agent_id) &&
    (role === undefined || document.role === role) &&
    document.time >= start_time &&
    document.time <= end_time
}
