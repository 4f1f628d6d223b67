/**
 * One search over the corpus: which documents fit, in which order, and one page of them. Ends within its budgets and says when it did not
 * see everything.
 */
import { countIn, type Document, idIn, postingsBelow } from './corpus.ts'
import { searchLiteral } from './literal.ts'
import {
  Candidate,
  deadlineMs,
  type Incomplete,
  type Order,
  orderBy,
  type Page,
  pageOf,
  type Query,
  type QueryPorts,
  type Request,
  rankedAt
} from './ranking.ts'

const maxPostings = 1_000_000

export function search(query: Query, ports: QueryPorts): Page {
  return query.mode === 'literal' ? searchLiteral(query, ports) : searchTerms(query, ports)
}

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
