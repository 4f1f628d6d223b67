/**
 * Finds where things stand in a TOML text: table headers, keys and the extent of their values. Texts that are not TOML give nonsense but
 * never an error: whoever uses the places has a parser look at what lies there.
 */
import { parse } from 'smol-toml'

/** Extent of one name in a header or key. */
interface Name {
  readonly start: number
  readonly end: number
}

/** A key with its value. Positions count from the beginning of the text. */
export interface Entry {
  /** Names of the dotted key. */
  readonly names: readonly string[]
  /** Where they stand. */
  readonly extents: readonly Name[]
  /** Start of its line. */
  readonly start: number
  readonly valueStart: number
  readonly valueEnd: number
  /** After its line break. */
  readonly end: number
}

/** What a block says about itself: the names of its header (none in the first block of a text, which has no header and may be empty). */
export interface Header {
  readonly names: readonly string[]
  /** `[[names]]`. */
  readonly array: boolean
}

/** Where things stand in a block. */
interface Lines extends Header {
  /** Where the names stand. */
  readonly extents: readonly Name[]
  readonly entries: readonly Entry[]
  /** After the last entry and before comments that may belong to what follows. */
  readonly contentEnd: number
  readonly end: number
}

const BRACKET = 0x5b
const HASH = 0x23
const LINE_FEED = 0x0a
const RETURN = 0x0d

/** A header with all lines up to the next one. Its lines are looked at when somebody asks. */
export class Block implements Lines {
  readonly names: readonly string[]
  readonly array: boolean
  readonly start: number
  readonly end: number
  readonly #text: string
  #lines: Lines | undefined

  constructor(text: string, start: number, end: number, { names, array }: Header) {
    this.names = names
    this.array = array
    this.start = start
    this.end = end
    this.#text = text
  }

  get extents(): readonly Name[] {
    return this.#read().extents
  }

  get entries(): readonly Entry[] {
    return this.#read().entries
  }

  get contentEnd(): number {
    return this.#read().contentEnd
  }

  #read(): Lines {
    this.#lines ??= this.names.length > 0 ? scanBlock(this.#text, this.start) : scanRoot(this.#text)
    return this.#lines
  }
}

/** The first block of a text. */
export function scanRoot(text: string): Lines {
  const start = text.startsWith('\uFEFF') ? 1 : 0 // a byte order mark
  return { names: [], extents: [], array: false, ...scanLines(text, start) }
}

/** The block whose header is in the line at `start`. */
export function scanBlock(text: string, start: number): Lines {
  const { names, extents, array, after } = readHeader(text, start)
  const { entries, contentEnd, end } = scanLines(text, lineEnd(text, after))
  return { names, extents, array, entries, contentEnd, end }
}

/** The header in the line at `start`. */
export function readHeader(text: string, start: number): Header & { readonly extents: readonly Name[]; readonly after: number } {
  const open = skipBlank(text, start)
  const array = text.charCodeAt(open + 1) === BRACKET
  const { names, extents, after } = readKey(text, open + (array ? 2 : 1))
  return { names, extents, array, after }
}

/** The lines up to the next header. */
function scanLines(text: string, from: number): Pick<Lines, 'entries' | 'contentEnd' | 'end'> {
  const entries: Entry[] = []
  let contentEnd = from
  let at = from
  while (at < text.length) {
    const here = skipBlank(text, at)
    const char = text.charCodeAt(here)
    if (char === BRACKET) break
    if (here === text.length || char === HASH || char === LINE_FEED || char === RETURN) at = lineEnd(text, here)
    else {
      const entry = readEntry(text, at)
      entries.push(entry)
      at = entry.end
      contentEnd = at
    }
  }
  return { entries, contentEnd, end: at }
}

function readEntry(text: string, start: number): Entry {
  const { names, extents, after } = readKey(text, skipBlank(text, start))
  const valueStart = skipBlank(text, after + 1)
  const valueEnd = skipValue(text, valueStart)
  return { names, extents, start, valueStart, valueEnd, end: lineEnd(text, valueEnd) }
}

function skipBlank(text: string, from: number): number {
  let at = from
  for (let char = text.charCodeAt(at); char === 0x20 || char === 0x09; ) char = text.charCodeAt(++at)
  return at
}

/** After the next line break. */
function lineEnd(text: string, from: number): number {
  const found = text.indexOf('\n', from)
  return found < 0 ? text.length : found + 1
}

const bareName = /[^\s.=\]]*/y

/** Dotted key; `after` is the position of what follows (`=` or `]`). */
function readKey(text: string, from: number): { names: string[]; extents: Name[]; after: number } {
  const names: string[] = []
  const extents: Name[] = []
  let at = skipBlank(text, from)
  for (;;) {
    const start = at
    const quote = text[at]
    if (quote === '"' || quote === "'") {
      at = skipString(text, at)
      names.push(unquoted(text.slice(start, at)))
    } else {
      bareName.lastIndex = at
      bareName.test(text)
      at = bareName.lastIndex
      names.push(text.slice(start, at))
    }
    extents.push({ start, end: at })
    at = skipBlank(text, at)
    if (text[at] !== '.') return { names, extents, after: at }
    at = skipBlank(text, at + 1)
  }
}

function unquoted(quoted: string): string {
  if (!quoted.includes('\\') || quoted.startsWith("'")) return quoted.slice(1, -1)
  try {
    return parse(`k = ${quoted}`).k as string
  } catch {
    return quoted // no TOML
  }
}

const bareValue = /[^,\]}#\r\n]*/y

function skipValue(text: string, from: number): number {
  const first = text[from]
  if (first === '"' || first === "'") return skipString(text, from)
  if (first !== '[' && first !== '{') {
    bareValue.lastIndex = from
    bareValue.test(text)
    return from + text.slice(from, bareValue.lastIndex).trimEnd().length
  }
  let depth = 0
  for (let at = from; at < text.length; ) {
    const char = text[at]
    if (char === '"' || char === "'") at = skipString(text, at)
    else if (char === '#') at = lineEnd(text, at)
    else {
      if (char === '[' || char === '{') depth++
      if ((char === ']' || char === '}') && --depth === 0) return at + 1
      at++
    }
  }
  return text.length
}

/** After the closing quote; a string of three quotes may end with up to five. */
function skipString(text: string, from: number): number {
  const quote = text[from]!
  const long = text.startsWith(quote.repeat(3), from)
  const close = long ? quote.repeat(3) : quote
  let at = from + close.length
  while (at < text.length && !text.startsWith(close, at)) at += text[at] === '\\' && quote === '"' ? 2 : 1
  at = Math.min(text.length, at + close.length)
  if (long) for (let extra = 0; extra < 2 && text[at] === quote; extra++) at++
  return at
}
