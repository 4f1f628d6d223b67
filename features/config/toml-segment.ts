/** A table of a TOML text with its lines: the piece of which documents are made, kept from one version of the file to the next. */
import { parse } from 'smol-toml'
import { isTable, settled, type Table } from './tables.ts'
import { type Entry, type Header, readEntries, readHeader } from './toml-scan.ts'

/** A header with all lines up to the next one; the first segment of a document has no header and may be empty. */
export class Segment {
  readonly text: string
  /** Names of the header; none in the first segment. */
  readonly names: readonly string[]
  /** `[[names]]`. */
  readonly array: boolean
  /** What stands below the header, frozen; undefined when a parser does not see one header with its lines here. */
  readonly body: Table | undefined
  readonly #first: boolean
  #entries: readonly Entry[] | undefined

  /** `first`: the text begins a document and has no header. */
  constructor(text: string, first: boolean) {
    this.text = text
    this.#first = first
    const header = first ? undefined : this.header
    this.names = header?.names ?? []
    this.array = header?.array ?? false
    this.body = bodyOf(text, this.names, this.array)
  }

  /** Of any segment but the first. */
  get header(): Header {
    return readHeader(this.text, 0)
  }

  /** Where the lines below the header begin. */
  get bodyStart(): number {
    return this.#first ? beginning(this.text) : this.header.end
  }

  get entries(): readonly Entry[] {
    this.#entries ??= readEntries(this.text, this.bodyStart)
    return this.#entries
  }

  /** After the last entry and before comments that may belong to what follows. */
  get contentEnd(): number {
    return this.entries.at(-1)?.end ?? this.bodyStart
  }
}

/** Position of the first line: a text may begin with a byte order mark. */
export function beginning(text: string): number {
  return text.startsWith('\uFEFF') ? 1 : 0
}

function bodyOf(text: string, names: readonly string[], array: boolean): Table | undefined {
  let at: unknown
  try {
    at = parse(text, { integersAsBigInt: 'asNeeded' })
  } catch {
    return undefined // the text as a whole is parsed then, and that says what is wrong
  }
  for (const name of names) {
    if (!isTable(at) || !Object.hasOwn(at, name) || Object.keys(at).length !== 1) return undefined
    at = at[name]
  }
  if (array) {
    if (!Array.isArray(at) || at.length !== 1) return undefined
    at = at[0]
  }
  return isTable(at) ? settled(at) : undefined
}
