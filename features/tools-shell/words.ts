/** Questions about a word of a shell line. */
import type { DoubleQuotedChild, Word, WordPart } from 'unbash'

/** The word as the shell hands it on, when its text alone tells: no variable, substitution, file pattern or brace list in it. */
export function literal(word: Word): string | undefined {
  return (word.parts ?? []).every(isText) ? word.value : undefined
}

/**
 * Whether a wildcard of a rule may stand for the word: text, file patterns and plain variables, but nothing that runs or computes, and no
 * `$'...'`, which a shell other than bash ends elsewhere.
 */
export function isPlain(word: Pick<Word, 'parts'>): boolean {
  return (word.parts ?? []).every(part => part.type !== 'AnsiCQuoted' && (isText(part) || isLookup(part)))
}

function isText(part: WordPart): boolean {
  if (part.type === 'DoubleQuoted' || part.type === 'LocaleString') return part.parts.every(inner => inner.type === 'Literal')
  return part.type === 'Literal' || part.type === 'SingleQuoted' || part.type === 'AnsiCQuoted'
}

function isLookup(part: WordPart): boolean {
  if (part.type === 'Glob') return (part.parts ?? []).every(inner => inner.type === 'Literal')
  if (part.type === 'DoubleQuoted' || part.type === 'LocaleString')
    return part.parts.every(inner => inner.type === 'Literal' || isVariable(inner))
  return isVariable(part)
}

/** `$name`, `${name}`: a value as it is; `${name:-...}`, `${!name}` and `${name[i]}` compute one. */
function isVariable(part: WordPart | DoubleQuotedChild): boolean {
  if (part.type === 'SimpleExpansion') return true
  return part.type === 'ParameterExpansion' && part.prefix === undefined && part.index === undefined && part.operation === undefined
}

/** The last segment of a program's path. */
export function baseOf(name: string): string {
  return name.slice(name.lastIndexOf('/') + 1)
}
