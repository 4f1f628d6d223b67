/** In which order a listing shows entries, and which are the first in it. */
import { yieldToLoop } from '../../kernel/index.ts'
import type { Entry, Listing } from './contract.ts'

/** Candidates that are sorted without a pause. */
const SORTED = 2_000
/** Candidates of two ordered lists that are put into one, before it yields to the loop. */
const SLICE = 256

/** What may be shown. */
export interface Candidate {
  readonly name: string
  readonly path: string
  readonly directory: boolean
  entry: Entry | undefined
}

type Compare = (a: Candidate, b: Candidate) => number

/** Made at its first use: it takes 3 MB. */
let collator: Intl.Collator | undefined
function byName(a: Candidate, b: Candidate): number {
  collator ??= new Intl.Collator('en')
  return collator.compare(a.name, b.name) || (a.name < b.name ? -1 : 1)
}
export const order: Readonly<Record<Listing['sort'], Compare>> = {
  type_first: (a, b) => Number(b.directory) - Number(a.directory) || byName(a, b),
  name_asc: byName,
  name_desc: (a, b) => byName(b, a),
  mtime_desc: (a, b) => compareTexts(b.entry?.modified_at, a.entry?.modified_at) || byName(a, b),
  size_desc: (a, b) => (b.entry?.size ?? -1) - (a.entry?.size ?? -1) || byName(a, b)
}

const compareTexts = (a = '', b = '') => (a < b ? -1 : a > b ? 1 : 0)

/** The first of candidates, and of those that were the first until now. Yields to the loop in between. */
export async function firstOf(first: readonly Candidate[], candidates: readonly Candidate[], limit: number, compare: Compare) {
  let best = first
  for (let at = 0; at < candidates.length; at += SORTED) {
    await yieldToLoop()
    const last = best.length === limit ? best.at(-1) : undefined
    const fresh = candidates.slice(at, at + SORTED).filter(candidate => !last || compare(candidate, last) < 0)
    if (fresh.length > 0) best = await merged(best, fresh.sort(compare), limit, compare)
  }
  return best
}

/** Two ordered lists as one. */
async function merged(left: readonly Candidate[], right: readonly Candidate[], limit: number, compare: Compare): Promise<Candidate[]> {
  const all: Candidate[] = []
  for (let a = 0, b = 0; all.length < limit && (a < left.length || b < right.length); ) {
    if (all.length % SLICE === SLICE - 1) await yieldToLoop()
    const first = b >= right.length || (a < left.length && compare(left[a]!, right[b]!) <= 0)
    all.push(first ? left[a++]! : right[b++]!)
  }
  return all
}
