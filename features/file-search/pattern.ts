/** Regular expressions as ripgrep reads them, for the search without it: JavaScript spells much of them otherwise, or means something else. */
import { type GrepRequest, namesReturns } from './engine.ts'

const wordChars = '[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}]'
const notWord = wordChars.replace('[', '[^')
const starts = `(?<!${wordChars})(?=${wordChars})`
const ends = `(?<=${wordChars})(?!${wordChars})`

/** Escapes of kinds of characters, also in classes. */
const kinds: Readonly<Record<string, string>> = {
  d: '\\p{Nd}',
  D: '\\P{Nd}',
  s: '\\p{White_Space}',
  S: '\\P{White_Space}',
  w: wordChars,
  W: notWord
}
const controls: Readonly<Record<string, string>> = { a: '\x07', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' }
const bounds: Readonly<Record<string, string>> = {
  B: `(?:(?<=${wordChars})(?=${wordChars})|(?<!${wordChars})(?!${wordChars}))`,
  '<': starts,
  'b{start}': starts,
  '>': ends,
  'b{end}': ends,
  'b{start-half}': `(?<!${wordChars})`,
  'b{end-half}': `(?!${wordChars})`,
  b: `(?:${starts}|${ends})`
}
const boundary = new RegExp(`^(?:${Object.keys(bounds).join('|').replaceAll('{', '\\{')})`)

/** Of ASCII alone. */
const named: Readonly<Record<string, string>> = {
  alnum: '0-9A-Za-z',
  alpha: 'A-Za-z',
  ascii: '\\x00-\\x7f',
  blank: '\\t\\x20',
  cntrl: '\\x00-\\x1f\\x7f',
  digit: '0-9',
  graph: '\\x21-\\x7e',
  lower: 'a-z',
  print: '\\x20-\\x7e',
  punct: '\\x21-\\x2f\\x3a-\\x40\\x5b-\\x60\\x7b-\\x7e',
  space: '\\t-\\r\\x20',
  upper: 'A-Z',
  word: '0-9A-Z_a-z',
  xdigit: '0-9A-Fa-f'
}

const asciiClass = new RegExp(`^\\[:(\\^?(?:${Object.keys(named).join('|')})):\\]`)

/** One character, everywhere. */
const literal = (char: string) => (/\w/.test(char) ? char : `\\u{${char.codePointAt(0)!.toString(16)}}`)

/**
 * The pattern of a request, for lines, or with `multiline` for all of a text. Throws SyntaxError for one that ripgrep would refuse, and for
 * what cannot be said here.
 */
export function patternOf(request: GrepRequest): RegExp {
  const { pattern, literal: isText = false, ignore_case, multiline } = request
  if (isText) assertOnLine(pattern, multiline)
  const [head = '', flags = ''] = (isText ? undefined : /^\(\?([imsu]+)\)/.exec(pattern)) ?? []
  const source = isText
    ? Array.from(pattern, literal).join('')
    : new Translation(pattern.slice(head.length), request, multiline || flags.includes('s')).all()
  try {
    return new RegExp(source, `gvms${ignore_case || flags.includes('i') ? 'i' : ''}`)
  } catch (error) {
    throw new SyntaxError(`no regular expression: ${String(error).replace(/^.*: /s, '')}`, { cause: error })
  }
}

function assertOnLine(text: string, multiline: boolean): void {
  if (!multiline && text.includes('\n')) throw new SyntaxError('a line has no line break in it')
}

class Translation {
  readonly #pattern: string
  readonly #dot: string
  /** Where JavaScript's lines begin and end, and those here do not. */
  readonly #noBound: { readonly '^': string; readonly $: string }
  /** Line breaks may stand in the pattern. */
  #breaks: boolean
  #at = 0

  constructor(pattern: string, request: GrepRequest, dotAll: boolean) {
    this.#pattern = pattern
    this.#breaks = request.multiline
    const returns = namesReturns(request)
    this.#dot = dotAll ? '.' : returns ? '[^\\n]' : '[^\\r\\n]'
    const others = returns ? '[\\r\\u2028\\u2029]' : '[\\u2028\\u2029]'
    const within = '(?!(?<=\\r)\\n)'
    this.#noBound = { '^': `(?<!${others})${within}`, $: `(?!${others})${within}` }
  }

  all(): string {
    let source = ''
    while (this.#at < this.#pattern.length) source += this.#piece()
    return source
  }

  /** What the rest begins with, which is then done; its first group if there is one. */
  #take(pattern: RegExp): string | undefined {
    const found = pattern.exec(this.#pattern.slice(this.#at))
    this.#at += found?.[0].length ?? 0
    return found?.[1] ?? found?.[0]
  }

  #piece(): string {
    const char = this.#take(/^./su)!
    if (char === '\\') return this.#bound() ?? this.#kind() ?? literal(this.#char())
    if (char === '[') return this.#class()
    if (char === '(') return this.#opening()
    if (char === '.') return this.#dot
    if (char === '^' || char === '$') return `(?:${char}${this.#noBound[char]})`
    if (char === '{') return `{${this.#take(/^\d+(?:,\d*)?\}/) ?? this.#refused('a repetition')}`
    if ('*+?|)'.includes(char)) return char
    assertOnLine(char, this.#breaks)
    return literal(char)
  }

  #opening(): string {
    if (!this.#pattern.startsWith('?', this.#at)) return '('
    if (this.#take(/^\?:/)) return '(?:'
    const name = this.#take(/^\?P?<(\w+)>/)
    return name === undefined ? this.#refused('a group') : `(?<${name}>`
  }

  #bound(): string | undefined {
    return bounds[this.#take(boundary) ?? '']
  }

  #kind(): string | undefined {
    const kind = this.#take(/^[dDsSwW]/)
    if (kind !== undefined) return kinds[kind]
    const sign = this.#take(/^[pP]/)
    if (sign === undefined) return undefined
    const property = this.#take(/^\{([^}]+)\}/) ?? this.#take(/^\w/) ?? ''
    const name = [property, `Script=${property}`].find(isProperty) ?? this.#refused(`the property ${property}`)
    return `\\${sign}{${name}}`
  }

  /** The character behind a backslash. */
  #char(): string {
    const code = this.#take(/^(?:x[\dA-Fa-f]{2}|u[\dA-Fa-f]{4}|U[\dA-Fa-f]{8}|[xuU]\{[\dA-Fa-f]{1,8}\})/)
    const char = code === undefined ? this.#take(/^[!-/:;=?@[-`{-~afnrtv]/) : charOf(code)
    if (char === undefined) return this.#refused('an escape')
    const meant = code === undefined ? (controls[char] ?? char) : char
    assertOnLine(meant, this.#breaks)
    return meant
  }

  /** What stands behind an opening bracket, up to its end. */
  #class(): string {
    const sign = this.#take(/^\^/) ?? ''
    const outside = this.#breaks
    this.#breaks ||= sign !== ''
    let source = '['
    let empty = true
    while (empty || !this.#take(/^\]/)) {
      const operator = this.#take(/^(?:&&|--|~~)/)
      if (operator === '~~') return this.#refused('a class')
      source += operator === undefined ? this.#member() : `]${operator}[`
      empty = false
    }
    this.#breaks = outside
    return `[${sign}${source}]]`
  }

  #member(): string {
    const name = this.#take(asciiClass)
    if (name !== undefined) return name.startsWith('^') ? `[^${named[name.slice(1)]}]` : `[${named[name]}]`
    if (this.#take(/^\[/)) return this.#class()
    const escaped = this.#take(/^\\/) !== undefined
    const kind = escaped ? this.#kind() : undefined
    if (kind !== undefined) return this.#take(/^-(?![-\]])/) ? this.#refused('a range') : kind
    const from = literal(this.#one(escaped))
    if (!this.#take(/^-(?![-\]])/)) return from
    return `${from}-${literal(this.#one(this.#take(/^\\/) !== undefined))}`
  }

  #one(escaped: boolean): string {
    return escaped ? this.#char() : (this.#take(/^./su) ?? this.#refused('a class that does not end'))
  }

  #refused(what: string): never {
    throw new SyntaxError(`${what} is not understood before character ${this.#at + 1} of the pattern`)
  }
}

/** Undefined: there is no such character. */
function charOf(code: string): string | undefined {
  const number = Number.parseInt(code.replace(/[xuU{}]/g, ''), 16)
  return number > 0x10ffff || (number >= 0xd800 && number < 0xe000) ? undefined : String.fromCodePoint(number)
}

function isProperty(name: string): boolean {
  try {
    return /^[\w=]+$/.test(name) && new RegExp(`\\p{${name}}`, 'v').test('') !== undefined
  } catch {
    return false
  }
}
