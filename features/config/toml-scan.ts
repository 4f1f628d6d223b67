/**
 * Finds where things stand in a TOML text: table headers, keys and the extent of their values. Texts that are not TOML give nonsense but
 * never an error: whoever uses the places has a parser look at what lies there.
 */
import { parse } from 'smol-toml'
import { breathe } from '../../kernel/index.ts'

/** Extent of one name in a header. */
interface Name {
  readonly start: number
  readonly end: number
}

/** A key with its value. Positions count from the beginning of the text. */
export interface Entry {
  /** Names of the dotted key. */
  readonly names: readonly string[]
  /** Start of its line. */
  readonly start: number
  readonly valueStart: number
  readonly valueEnd: number
  /** After its line break. */
  readonly end: number
}

/** A header with all lines up to the next one. */
export class Block {
  /** Names of the header; none in the first block of a text, which has no header and may be empty. */
  readonly names: readonly string[]
  /** Where the names stand. */
  readonly extents: readonly Name[]
  /** `[[names]]`. */
  readonly array: boolean
  readonly start: number
  readonly end: number
  readonly #text: string
  readonly #bodyStart: number
  #entries: readonly Entry[] | undefined

  constructor(text: string, start: number, end: number, { names, extents, array, end: bodyStart }: Header) {
    this.#text = text
    this.#bodyStart = bodyStart
    this.start = start
    this.end = end
    this.names = names
    this.extents = extents
    this.array = array
  }

  get entries(): readonly Entry[] {
    this.#entries ??= readEntries(this.#text, this.#bodyStart, this.end)
    return this.#entries
  }

  /** After the last entry and before comments that may belong to what follows. */
  get contentEnd(): number {
    return this.entries.at(-1)?.end ?? this.#bodyStart
  }
}

interface Header {
  readonly names: readonly string[]
  readonly extents: readonly Name[]
  readonly array: boolean
  /** After its line break. */
  readonly end: number
}

/** The blocks of a text, the first one without a header. A long text is scanned in shares of the event loop. */
export async function scanToml(text: string): Promise<readonly Block[]> {
  const first = text.startsWith('\uFEFF') ? 1 : 0 // a byte order mark
  let at = isHeader(text, first) ? first : nextHeader(text, first)
  const blocks = [new Block(text, 0, at, { names: [], extents: [], array: false, end: first })]
  while (at < text.length) {
    const header = readHeader(text, at)
    const end = nextHeader(text, header.end)
    blocks.push(new Block(text, at, end, header))
    at = end
    if (blocks.length % 64 === 0) await breathe()
  }
  return blocks
}

const BRACKET = 0x5b
const HASH = 0x23
const LINE_FEED = 0x0a
const RETURN = 0x0d

/** A key with a value on one line, as nearly all are. */
const plainLine = /[ \t]*[\w-]+[ \t]*=[ \t]*(?:"[^"\\\n]*"|'[^'\n]*'|[\w.:+-]+)[ \t]*(?:#[^\n]*)?\r?(?:\n|$)/y

function isHeader(text: string, at: number): boolean {
  return text.charCodeAt(skipBlank(text, at)) === BRACKET
}

/** Where the next header line begins, or the text ends, counted from the line at `from`. */
function nextHeader(text: string, from: number): number {
  let at = from
  while (at < text.length) {
    plainLine.lastIndex = at
    if (plainLine.test(text)) {
      at = plainLine.lastIndex
      continue
    }
    const here = skipBlank(text, at)
    const char = text.charCodeAt(here)
    if (char === BRACKET) return at
    at = isEmpty(char) ? lineEnd(text, here) : readEntry(text, at).end
  }
  return at
}

/** The header in the line that begins at `from`. */
function readHeader(text: string, from: number): Header {
  const open = skipBlank(text, from)
  const array = text.charCodeAt(open + 1) === BRACKET
  const { names, extents, after } = readKey(text, open + (array ? 2 : 1))
  return { names, extents, array, end: lineEnd(text, after) }
}

function readEntries(text: string, from: number, to: number): Entry[] {
  const entries: Entry[] = []
  for (let at = from; at < to; ) {
    const here = skipBlank(text, at)
    if (here >= to) break
    if (isEmpty(text.charCodeAt(here))) at = lineEnd(text, here)
    else {
      const entry = readEntry(text, at)
      entries.push(entry)
      at = entry.end
    }
  }
  return entries
}

/** A comment or nothing at all follows on the line. */
function isEmpty(char: number): boolean {
  return char === HASH || char === LINE_FEED || char === RETURN
}

function readEntry(text: string, start: number): Entry {
  const { names, after } = readKey(text, skipBlank(text, start))
  const valueStart = skipBlank(text, after + 1)
  const valueEnd = skipValue(text, valueStart)
  return { names, start, valueStart, valueEnd, end: lineEnd(text, valueEnd) }
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
