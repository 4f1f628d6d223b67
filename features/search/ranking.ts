/** What is asked for and found: hits, their order, and pages of them. */
import type { BodyOf, DataOf } from '../../kernel/index.ts'
import type { searchAll } from './contract.ts'
import { type Corpus, type Document, keyOf } from './corpus.ts'
import type { Position } from './page-token.ts'

/** How long one search may take. */
export const deadlineMs = 500

export type Request = BodyOf<typeof searchAll>
export type Incomplete = DataOf<typeof searchAll>['incomplete']

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

export const positionOf = ({ document, score }: Hit): Position => [score, document.time, keyOf(document)]

/** Where a hit stands; its key is asked for in ties alone. */
export interface Ranked {
  readonly score: number
  readonly time: number
  readonly key: () => string
}

export type Order = (a: Ranked, b: Ranked) => number

/** Less than 0: `a` comes first. Newer ones first where scores are the same, then by key. */
export function orderBy(sort: Query['sort']): Order {
  const byKey = (a: Ranked, b: Ranked) => (a.key() < b.key() ? -1 : a.key() > b.key() ? 1 : 0)
  if (sort === 'time_asc') return (a, b) => a.time - b.time || byKey(a, b)
  if (sort === 'time_desc') return (a, b) => b.time - a.time || byKey(a, b)
  return (a, b) => b.score - a.score || b.time - a.time || byKey(a, b)
}

export class Candidate implements Ranked, Hit {
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

export const rankedAt = ([score, time, key]: Position): Ranked => ({ score, time, key: () => key })

export function pageOf(found: readonly Hit[], size: number, incomplete: Incomplete): Page {
  const hits = found.slice(0, size)
  const last = hits.at(-1)
  const has_more = found.length > size
  return { hits, has_more, ...(has_more && last ? { position: positionOf(last) } : {}), ...(incomplete ? { incomplete } : {}) }
}
