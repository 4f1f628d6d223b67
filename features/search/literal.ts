/** Searching for a text letter by letter, among the documents that may contain it. */
import { type Corpus, idIn } from './corpus.ts'
import { Candidate, deadlineMs, orderBy, type Page, pageOf, positionOf, type Query, type QueryPorts, rankedAt } from './ranking.ts'
import { normalise, pairsOf, runsOf, termChars, termOf } from './tokens.ts'

const maxCandidates = 10_000
const maxScannedChars = 16_000_000

/** Newest first. What contains the text is found by the terms in it, then looked at letter by letter. */
export function searchLiteral({ text, fits, size, end, after }: Query, { corpus, textOf }: QueryPorts): Page {
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
    // One at least is looked at: the next page goes on behind it.
    if (last && (chars > maxScannedChars || performance.now() > until)) {
      const incomplete = chars > maxScannedChars ? 'candidate_cap' : 'deadline'
      return { hits, has_more: true, position: positionOf(last), incomplete }
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
