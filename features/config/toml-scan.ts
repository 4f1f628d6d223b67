/** Finds where things stand in a TOML text that a parser has accepted already: table headers, keys and the extent of their values. */
import { parse } from 'smol-toml'

/** Names and, inside arrays of tables, positions. */
export type Path = readonly (string | number)[]

export interface Entry {
  /** Address from the root. */
  readonly path: Path
  /** Start of its line. */
  readonly start: number
  readonly valueStart: number
  readonly valueEnd: number
  /** After its line break. */
  readonly end: number
}

/** Extent of one name in a header. */
export interface Name {
  readonly start: number
  readonly end: number
}

/** A header with the entries below it; the first section is the root and has no header. */
export interface Section {
  readonly path: Path
  /** Names of the header, as many as the path has names. */
  readonly names: readonly Name[]
  readonly array: boolean
  readonly start: number
  /** After the header's line break. */
  readonly bodyStart: number
  readonly entries: Entry[]
}

export function scan(text: string): Section[] {
  const sections: Section[] = [{ path: [], names: [], array: false, start: 0, bodyStart: text.startsWith('\uFEFF') ? 1 : 0, entries: [] }]
  const counts = new Map<string, number>()
  for (let at = sections[0]!.bodyStart; at < text.length; ) {
    const here = skipBlank(text, at)
    const char = text[here]
    if (char === undefined) break
    if (char === '#' || char === '\n' || char === '\r') {
      at = lineEnd(text, here)
    } else if (char === '[') {
      const array = text[here + 1] === '['
      const [keys, after, names] = readKey(text, here + (array ? 2 : 1))
      const path = resolve(keys, counts, array)
      const end = lineEnd(text, after)
      sections.push({ path, names, array, start: at, bodyStart: end, entries: [] })
      at = end
    } else {
      const section = sections.at(-1)!
      const [names, equals] = readKey(text, here)
      const valueStart = skipBlank(text, equals + 1)
      const valueEnd = skipValue(text, valueStart)
      const end = lineEnd(text, valueEnd)
      section.entries.push({ path: [...section.path, ...names], start: at, valueStart, valueEnd, end })
      at = end
    }
  }
  return sections
}

/** Puts the position of the current element behind every name that is an array of tables. */
function resolve(names: readonly string[], counts: Map<string, number>, array: boolean): Path {
  const path: (string | number)[] = []
  names.forEach((name, index) => {
    path.push(name)
    const key = JSON.stringify(path)
    const last = index === names.length - 1
    if (last && array) counts.set(key, (counts.get(key) ?? -1) + 1)
    const count = counts.get(key)
    if (count !== undefined) path.push(count)
  })
  return path
}

function skipBlank(text: string, from: number): number {
  let at = from
  while (text[at] === ' ' || text[at] === '\t') at++
  return at
}

/** After the next line break. */
function lineEnd(text: string, from: number): number {
  const found = text.indexOf('\n', from)
  return found < 0 ? text.length : found + 1
}

/** Dotted key; answers its names, the position of what follows (`=` or `]`) and where each name stands. */
function readKey(text: string, from: number): [string[], number, Name[]] {
  const names: string[] = []
  const extents: Name[] = []
  let at = skipBlank(text, from)
  for (;;) {
    const start = at
    const quote = text[at]
    if (quote === '"' || quote === "'") {
      const end = skipString(text, at)
      const quoted = text.slice(at, end)
      names.push(quoted.includes('\\') ? (parse(`k = ${quoted}`).k as string) : quoted.slice(1, -1))
      at = end
    } else {
      const end = at + /^[^\s.=\]]*/.exec(text.slice(at, at + 1_000))![0].length
      names.push(text.slice(at, end))
      at = end
    }
    extents.push({ start, end: at })
    at = skipBlank(text, at)
    if (text[at] !== '.') return [names, at, extents]
    at = skipBlank(text, at + 1)
  }
}

function skipValue(text: string, from: number): number {
  const first = text[from]
  if (first === '"' || first === "'") return skipString(text, from)
  if (first !== '[' && first !== '{') return from + /^[^,\]}#\r\n]*/.exec(text.slice(from, from + 1_000))![0].trimEnd().length
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
  at += close.length
  if (long) for (let extra = 0; extra < 2 && text[at] === quote; extra++) at++
  return at
}
