/** The documents that are searched, and by which terms each is found. In memory of the worker; what it costs is bounded. */
import { headOf } from '../../kernel/index.ts'
import { termsOf } from './tokens.ts'

export type Role = 'user' | 'assistant' | 'title'

/** Characters of a document that are searched. */
export const documentChars = 20_000
/** Characters of all texts that stay in memory; those of others are read from where they came from. */
const keptChars = 64 * 1024 * 1024
/** Postings pack the number of a document and how often a term occurs in it. */
const countBits = 8
const maxCount = 255
/** Numbers of documents, dead ones included: postings must stay positive in 32 bits. */
const maxDocuments = 2 ** 23

/** A document before it has a number. */
export interface NewDocument {
  readonly session_id: string
  /** Empty: it is about the whole session. */
  readonly agent_id: string
  /** Of its message, within the agent. */
  readonly number: number
  readonly role: Role
  /** ms */
  readonly time: number
  readonly turn?: number | undefined
  readonly step?: number | undefined
  /** Where its record is in the journal of the agent. */
  readonly at: number
}

export interface Document extends Omit<NewDocument, 'time'> {
  readonly id: number
  /** Terms in it. */
  readonly length: number
  /** ms; that of a title moves. */
  time: number
  text: string | undefined
}

/** Postings of one term, by number of document. Short lists are arrays: most terms are rare. */
class Postings {
  size = 0
  #few: number[] | undefined = []
  #many = new Uint32Array(0)

  add(id: number, count: number): void {
    const posting = (id << countBits) | Math.min(count, maxCount)
    if (this.#few) {
      this.#few.push(posting)
      if (this.#few.length > 16) {
        this.#many = Uint32Array.from([...this.#few, ...new Array(8).fill(0)])
        this.#few = undefined
      }
    } else {
      if (this.size === this.#many.length) {
        const larger = new Uint32Array(Math.ceil(this.size * 1.5))
        larger.set(this.#many)
        this.#many = larger
      }
      this.#many[this.size] = posting
    }
    this.size++
  }

  /** Sorted; `size` of them count. */
  get list(): ArrayLike<number> {
    return this.#few ?? this.#many
  }
}

/** Orders documents of the same time. */
export const keyOf = ({ session_id, agent_id, number }: Document): string => `${session_id}/${agent_id}/${String(number).padStart(9, '0')}`

export const idIn = (posting: number): number => posting >>> countBits
export const countIn = (posting: number): number => posting & maxCount

/** How many postings of a list belong to documents below `end`. */
export function postingsBelow({ list, size }: { readonly list: ArrayLike<number>; readonly size: number }, end: number): number {
  let [low, high] = [0, size]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (idIn(list[middle] as number) < end) low = middle + 1
    else high = middle
  }
  return low
}

export class Corpus {
  /** By number; undefined: it is gone. */
  #documents: (Document | undefined)[] = []
  #terms = new Map<string, Postings>()
  /** Living ones. */
  size = 0
  #kept: Document[] = []
  #keptFrom = 0
  #chars = 0

  /** Numbers given out: documents from here on are newer than now. */
  get end(): number {
    return this.#documents.length
  }

  get full(): boolean {
    return this.size >= maxDocuments / 2
  }

  add(given: NewDocument, whole: string): Document {
    const text = headOf(whole, documentChars)
    const { counts, length } = termsOf(text)
    const id = this.#documents.length
    const { session_id, agent_id, number, role, time, turn, step, at } = given
    const document: Document = { session_id, agent_id, number, role, time, turn, step, at, id, length, text }
    this.#documents.push(document)
    this.size++
    for (const [term, count] of counts) {
      let postings = this.#terms.get(term)
      if (!postings) {
        postings = new Postings()
        this.#terms.set(term, postings)
      }
      postings.add(id, count)
    }
    this.#keep(document, text)
    return document
  }

  remove(document: Document): void {
    if (this.#documents[document.id] !== document) return
    this.#documents[document.id] = undefined
    this.size--
    this.#chars -= document.text?.length ?? 0
    document.text = undefined
  }

  at(id: number): Document | undefined {
    return this.#documents[id]
  }

  postings(term: string): Postings | undefined {
    return this.#terms.get(term)
  }

  /** All terms that occur, also in documents that are gone. */
  terms(): IterableIterator<[string, Postings]> {
    return this.#terms.entries()
  }

  /** Whether so much of it is gone that it should be built anew. */
  get isSparse(): boolean {
    return this.end - this.size > 20_000 && this.end > this.size * 2
  }

  /** Texts of titles stay: they are in no journal. */
  #keep(document: Document, text: string): void {
    if (document.role === 'title') return
    this.#kept.push(document)
    this.#chars += text.length
    while (this.#chars > keptChars && this.#keptFrom < this.#kept.length) {
      const oldest = this.#kept[this.#keptFrom++] as Document
      this.#chars -= oldest.text?.length ?? 0
      oldest.text = undefined
    }
    if (this.#keptFrom > 10_000) {
      this.#kept = this.#kept.slice(this.#keptFrom)
      this.#keptFrom = 0
    }
  }
}
