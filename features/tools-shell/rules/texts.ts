/** What the words of a line may come out as, as far as the line and the server's environment tell. */
import type { DoubleQuotedChild, Word, WordPart } from 'unbash'
import type { Values } from './values.ts'
import { unquoted } from './words.ts'

/** In a text: something that only the running shell knows. */
export const UNKNOWN = '\0'
/** Texts of one word; of one with more there is no telling. */
const TEXTS = 64

/** `dirs`: those that the line may be in, for `$PWD` and `$OLDPWD`. */
export class Texts {
  readonly #values: Values
  readonly #dirs: ReadonlySet<string>
  readonly #known = new Map<string, readonly string[] | undefined>()

  constructor(values: Values, dirs: ReadonlySet<string>) {
    this.#values = values
    this.#dirs = dirs
  }

  /** File patterns stand as they are. Undefined: there are too many. */
  of(word: Word): readonly string[] | undefined {
    return word.parts ? this.#product(word.parts) : [word.value]
  }

  #product(parts: readonly (WordPart | DoubleQuotedChild)[]): readonly string[] | undefined {
    let texts: readonly string[] = ['']
    for (const part of parts) {
      const next = this.#part(part)
      if (!next || texts.length * next.length > TEXTS) return undefined
      texts = texts.flatMap(text => next.map(more => text + more))
    }
    return texts
  }

  #part(part: WordPart | DoubleQuotedChild): readonly string[] | undefined {
    switch (part.type) {
      case 'Literal':
      case 'SingleQuoted':
      case 'AnsiCQuoted':
        return [part.value]
      case 'Glob':
        return [part.text]
      case 'ExtendedGlob':
        return ['*']
      case 'DoubleQuoted':
      case 'LocaleString':
        return this.#product(part.parts)
      case 'SimpleExpansion':
        return this.#variable(part.text.slice(1))
      case 'ParameterExpansion':
        return part.operation || part.prefix || part.index ? [UNKNOWN] : this.#variable(part.parameter)
      case 'BraceExpansion':
        return choices(unquoted(part.text).replace(/\$(?:\w+|\{[^}]*\}|\([^)]*\))/g, UNKNOWN))
      default:
        return [UNKNOWN]
    }
  }

  #variable(name: string): readonly string[] | undefined {
    if (!/^[A-Za-z_]/.test(name)) return [UNKNOWN]
    const own = process.env[name] ?? ''
    if (name === 'PWD') return [...this.#dirs]
    if (name === 'OLDPWD') return [...this.#dirs, own]
    if (this.#known.has(name)) return this.#known.get(name)
    const given = this.#values.given(name)
    if (!given) return [own]
    this.#known.set(name, [UNKNOWN]) // what it holds where its value names itself
    const texts = new Set([own])
    for (const word of given) for (const text of (word && this.of(word)) ?? [UNKNOWN]) texts.add(text)
    const all = texts.size > TEXTS ? undefined : [...texts]
    this.#known.set(name, all)
    return all
  }
}

/** Longer brace lists, and deeper ones, are not taken apart. */
const LIST_CHARS = 4096
const LIST_ROUNDS = 20

/** What a brace list stands for; of a range, any name. Undefined: too much. */
function choices(given: string): readonly string[] | undefined {
  if (given.length > LIST_CHARS) return undefined
  let list = [given]
  for (let round = 0; round < LIST_ROUNDS; round++) {
    // innermost first; braces around a single word are no list, and stay
    list = list.map(text => text.replace(/\{([^{}]*)\}/g, (group, inner: string) => single(inner) ?? group))
    const next = list.flatMap(oneLess)
    if (next.length > TEXTS) return undefined
    if (next.every((each, at) => each === list[at])) return next.map(text => text.replaceAll(OPEN, '{').replaceAll(CLOSE, '}'))
    list = next
  }
  return undefined
}

const [OPEN, CLOSE] = ['\x01', '\x02']

function single(inner: string): string | undefined {
  if (/^(?:-?\d+|[a-zA-Z])\.\.(?:-?\d+|[a-zA-Z])(?:\.\.-?\d+)?$/.test(inner)) return '*'
  return inner.includes(',') ? undefined : OPEN + inner + CLOSE
}

function oneLess(text: string): string[] {
  const group = /\{([^{}]*)\}/.exec(text)
  if (!group) return [text]
  const [before, after] = [text.slice(0, group.index), text.slice(group.index + group[0].length)]
  return group[1]!.split(',').map(choice => before + choice + after)
}
