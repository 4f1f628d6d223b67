/**
 * Finds where things stand in a TOML text: table headers, keys and the extent of their values. Texts that are not TOML give nonsense but
 * never an error: whoever uses the places has a parser look at what lies there.
 */
import { parse } from 'smol-toml'

/** Extent of one name in a header. */
export interface Name {
  readonly start: number
  readonly end: number
}

export interface Header {
  readonly names: readonly string[]
  /** As many as there are names. */
  readonly extents: readonly Name[]
  readonly array: boolean
  /** After its line break. */
  readonly end: number
}

/** A key with its value. */
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

const BRACKET = 0x5b
const HASH = 0x23
const LINE_FEED = 0x0a
const RETURN = 0x0d

/** A key with a value on one line, as nearly all are. */
const plainLine = /[ \t]*[\w-]+[ \t]*=[ \t]*(?:"[^"\\\n]*"|'[^'\n]*'|[\w.:+-]+)[ \t]*(?:#[^\n]*)?\r?(?:\n|$)/y

/** Is there a header in the line that begins at `at`? */
export function isHeader(text: string, at: number): boolean {
  return text.charCodeAt(skipBlank(text, at)) === BRACKET
}

/** Where the next header line begins, or the text ends, counted from the line at `from`, which may be a header itself. */
export function nextHeader(text: string, from: number): number {
  let at = isHeader(text, from) ? lineEnd(text, skipHeader(text, from)) : from
  while (at < text.length) {
    plainLine.lastIndex = at
    if (plainLine.test(text)) {
      at = plainLine.lastIndex
      continue
    }
    const here = skipBlank(text, at)
    const char = text.charCodeAt(here)
    if (char === BRACKET) return at
    if (char === HASH || char === LINE_FEED || char === RETURN) at = lineEnd(text, here)
    else at = readEntry(text, at).end
  }
  return at
}

/** The header in the line that begins at `from`. */
export function readHeader(text: string, from: number): Header {
  const open = skipBlank(text, from)
  const array = text.charCodeAt(open + 1) === BRACKET
  const { names, extents, after } = readKey(text, open + (array ? 2 : 1))
  return { names, extents, array, end: lineEnd(text, after) }
}

/** The entries of a text without headers. */
export function readEntries(text: string, from: number): Entry[] {
  const entries: Entry[] = []
  for (let at = from; at < text.length; ) {
    const here = skipBlank(text, at)
    const char = text.charCodeAt(here)
    if (Number.isNaN(char)) break
    if (char === HASH || char === LINE_FEED || char === RETURN) at = lineEnd(text, here)
    else {
      const entry = readEntry(text, at)
      entries.push(entry)
      at = entry.end
    }
  }
  return entries
}

function readEntry(text: string, start: number): Entry {
  const { names, after } = readKey(text, skipBlank(text, start))
  const valueStart = skipBlank(text, after + 1)
  const valueEnd = skipValue(text, valueStart)
  return { names, start, valueStart, valueEnd, end: lineEnd(text, valueEnd) }
}

function skipHeader(text: string, from: number): number {
  const open = skipBlank(text, from)
  return readKey(text, open + (text.charCodeAt(open + 1) === BRACKET ? 2 : 1)).after
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
