/**
 * Finds where things stand in a TOML text: table headers, keys and the extent of their values. Texts that are not TOML give nonsense but
 * never an error: whoever uses the places has a parser look at what lies there.
 */
import { parse } from 'smol-toml'
import { yieldToLoop } from '../../kernel/index.ts'

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
export interface Block {
  /** Names of the header; none in the first block of a text, which has no header and may be empty. */
  readonly names: readonly string[]
  /** Where the names stand. */
  readonly extents: readonly Name[]
  /** `[[names]]`. */
  readonly array: boolean
  readonly start: number
  readonly entries: readonly Entry[]
  /** After the last entry and before comments that may belong to what follows. */
  readonly contentEnd: number
  readonly end: number
}

type GrowingBlock = { -readonly [K in keyof Block]: Block[K] } & { readonly entries: Entry[] }

const BRACKET = 0x5b
const HASH = 0x23
const LINE_FEED = 0x0a
const RETURN = 0x0d

/** The blocks of a text, the first one without a header. A long text is scanned in shares of the event loop. */
export async function scanToml(text: string): Promise<readonly Block[]> {
  let at = text.startsWith('\uFEFF') ? 1 : 0 // a byte order mark
  let block: GrowingBlock = { names: [], extents: [], array: false, start: 0, entries: [], contentEnd: at, end: text.length }
  const blocks = [block]
  while (at < text.length) {
    const here = skipBlank(text, at)
    const char = text.charCodeAt(here)
    if (char === BRACKET) {
      block.end = at
      block = openBlock(text, at, here)
      blocks.push(block)
      at = block.contentEnd
      if (blocks.length % 64 === 0) await yieldToLoop()
    } else if (here === text.length || char === HASH || char === LINE_FEED || char === RETURN) at = lineEnd(text, here)
    else {
      const entry = readEntry(text, at)
      block.entries.push(entry)
      block.contentEnd = entry.end
      at = entry.end
    }
  }
  return blocks
}

/** A block with its header in the line at `start`, where `open` is the first bracket. */
function openBlock(text: string, start: number, open: number): GrowingBlock {
  const array = text.charCodeAt(open + 1) === BRACKET
  const { names, extents, after } = readKey(text, open + (array ? 2 : 1))
  return { names, extents, array, start, entries: [], contentEnd: lineEnd(text, after), end: text.length }
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
