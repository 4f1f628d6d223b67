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

/**
 * `$name`, `${name}`: a value as it is; `${name:-...}`, `${!name}` and `${name[i]}` compute one. `$_` and some of `$BASH_...` are words of the
 * line itself: what another command of it was given would stand here as something else.
 */
function isVariable(part: WordPart | DoubleQuotedChild): boolean {
  if (part.type === 'SimpleExpansion') return !isEcho(part.text.slice(1))
  if (part.type !== 'ParameterExpansion' || isEcho(part.parameter)) return false
  return part.prefix === undefined && part.index === undefined && part.operation === undefined
}

function isEcho(name: string): boolean {
  return name === '_' || name.startsWith('BASH_')
}

/** A file pattern that may come out as a flag or a subcommand: names of files stand in its place. */
export function mayBeFlag({ value, parts }: Word): boolean {
  return (parts ?? []).some(part => part.type === 'Glob') && (/^[-*?[]/.test(value) || !value.includes('/'))
}

/** The last segment of a program's path. */
export function baseOf(name: string): string {
  return name.slice(name.lastIndexOf('/') + 1)
}

/** The text of a word, roughly: without its quotes. */
export function unquoted(text: string): string {
  return text.replace(/['"]/g, '')
}
