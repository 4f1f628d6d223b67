/**
 * Globs of permission rules and tool lists. Matching is linear in pattern times text, never exponential: the text comes from a model,
 * so no regular expression is built from it or run over it.
 */
import { join, relative } from 'node:path'
import { isInside } from './paths.ts'

type Token = { readonly kind: 'char'; readonly char: string } | { readonly kind: 'any' | 'star' } | Class
interface Class {
  readonly kind: 'class'
  readonly not: boolean
  readonly ranges: readonly (readonly [string, string])[]
}

/**
 * Matches a text as one piece: `*` is any run of characters (slashes, blanks, line breaks too), `?` one character, `\` escapes.
 * `fixed`: positions of the text that only a plain character of the pattern may match, never `*` or `?`.
 */
export function matchText(pattern: string, text: string, fixed?: (at: number) => boolean): boolean {
  return compileText(pattern)(text, fixed)
}

/** `matchText` for one pattern and many texts. */
export function compileText(pattern: string): (text: string, fixed?: (at: number) => boolean) => boolean {
  const parsed = tokens(pattern, false)
  return (text, fixed) => run(parsed, text, fixed)
}

/** Whether an entry of a list of tools means this one: names match exactly, `mcp__` entries as globs. */
export function meansTool(entry: string, tool: string): boolean {
  return entry.startsWith('mcp__') ? matchText(entry, tool) : entry === tool
}

/**
 * Matches a path against a path glob without regard to case: `*` and `?` stay within a segment, `**` spans segments, `[..]` and
 * `{a,b}` work as in shells. Absolute, `~`, `./` and relative forms of the path are tried. `path` is absolute.
 */
export function matchPath(pattern: string, path: string, places: { readonly cwd: string; readonly home: string }): boolean {
  const forms = [path]
  const below = relative(places.cwd, path)
  if (below !== '' && isInside(path, places.cwd)) forms.push(below)
  const full = pattern === '~' || pattern.startsWith('~/') ? join(places.home, pattern.slice(1)) : pattern.replace(/^\.\//, '')
  const fits = compilePathGlob(full.toLowerCase())
  return forms.some(form => fits(form.replaceAll('\\', '/').toLowerCase()))
}

/** Compiles a path glob (`*`, `?`, `**`, `[..]`, `{a,b}`) for slash-separated paths; case matters. */
export function compilePathGlob(pattern: string): (path: string) => boolean {
  const choices = braces(pattern).map(each => each.split('/').map(part => (part === '**' ? undefined : tokens(part, true))))
  return path => {
    const parts = path.split('/')
    return choices.some(choice => segments(choice, parts))
  }
}

function tokens(pattern: string, classes: boolean): Token[] {
  const out: Token[] = []
  for (let at = 0; at < pattern.length; at++) {
    const char = pattern[at]!
    const close = classes && char === '[' ? pattern.indexOf(']', at + 2) : -1
    if (char === '\\' && at + 1 < pattern.length) out.push({ kind: 'char', char: pattern[++at]! })
    else if (char === '*') {
      if (out.at(-1)?.kind !== 'star') out.push({ kind: 'star' })
    } else if (char === '?') out.push({ kind: 'any' })
    else if (close > 0) {
      out.push(classOf(pattern.slice(at + 1, close)))
      at = close
    } else out.push({ kind: 'char', char })
  }
  return out
}

function classOf(body: string): Class {
  const not = body.startsWith('!') || body.startsWith('^')
  const ranges: [string, string][] = []
  for (let at = not ? 1 : 0; at < body.length; at++) {
    const from = body[at]!
    const ranged = body[at + 1] === '-' && at + 2 < body.length
    ranges.push([from, ranged ? body[at + 2]! : from])
    if (ranged) at += 2
  }
  return { kind: 'class', not, ranges }
}

function fits(token: Token, char: string): boolean {
  if (token.kind === 'any') return true
  if (token.kind === 'char') return token.char === char
  if (token.kind === 'class') return token.ranges.some(([from, to]) => char >= from && char <= to) !== token.not
  return false
}

/** Greedy matching with one way back: to the last star. */
function run(pattern: readonly Token[], text: string, fixed: (at: number) => boolean = () => false): boolean {
  let at = 0
  let star = -1
  let mark = 0
  let pos = 0
  while (pos < text.length) {
    const token = pattern[at]
    if (token?.kind === 'star') {
      star = at++
      mark = pos
    } else if (token && fits(token, text[pos]!) && (token.kind === 'char' || !fixed(pos))) {
      at++
      pos++
    } else if (star >= 0 && !fixed(mark)) {
      at = star + 1
      pos = ++mark
    } else return false
  }
  while (pattern[at]?.kind === 'star') at++
  return at === pattern.length
}

/** As `run`, one level up: an undefined part of the pattern stands for any number of segments. */
function segments(parsed: readonly (readonly Token[] | undefined)[], path: readonly string[]): boolean {
  let at = 0
  let star = -1
  let mark = 0
  let pos = 0
  while (pos < path.length) {
    const part = parsed[at]
    if (at < parsed.length && part === undefined) {
      star = at++
      mark = pos
    } else if (part && run(part, path[pos]!)) {
      at++
      pos++
    } else if (star >= 0) {
      at = star + 1
      pos = ++mark
    } else return false
  }
  while (at < parsed.length && parsed[at] === undefined) at++
  return at === parsed.length
}

/** Expands `{a,b}`, innermost groups first, to at most 64 patterns. */
function braces(pattern: string): string[] {
  let list = [pattern]
  for (let round = 0; round < 8; round++) {
    const next = list.flatMap(expandOne)
    if (next.length === list.length || next.length > 64) return list
    list = next
  }
  return list
}

function expandOne(pattern: string): string[] {
  const group = /(?<!\\)\{([^{},]*,[^{}]*)(?<!\\)\}/.exec(pattern)
  if (!group?.[1]) return [pattern]
  const before = pattern.slice(0, group.index)
  const after = pattern.slice(group.index + group[0].length)
  return group[1].split(',').map(choice => before + choice + after)
}
