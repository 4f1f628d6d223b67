/** Questions about a word of a shell line. */
import type { DoubleQuotedChild, SyntaxNode, Word, WordPart } from 'unbash'

/** The word as the shell hands it on, when its text alone tells: no variable, substitution, file pattern or brace list in it. */
export function literal(word: Word): string | undefined {
  return (word.parts ?? []).every(isText) ? word.value : undefined
}

/** The text that a word gives in a here document: `"$(cat <<'EOF' ...)"`. */
function echoed({ parts = [] }: Pick<Word, 'parts'>): string | undefined {
  const [quoted, ...others] = parts
  const [part, ...more] = quoted?.type === 'DoubleQuoted' ? quoted.parts : []
  if (others.length + more.length > 0 || part?.type !== 'CommandExpansion' || part.script?.commands.length !== 1) return undefined
  const command = part.script.commands[0]?.command
  if (command?.type !== 'Command' || command.name?.text !== 'cat' || command.args.length > 0 || command.prefix.length > 0) return undefined
  const [input, ...inputs] = command.redirects
  if (inputs.length > 0 || input?.type !== 'HereDoc' || input.operator !== '<<' || input.descriptor) return undefined
  if (!input.delimiter?.quoted && /[\\$`]/.test(input.body.text)) return undefined
  return input.body.text.replace(/(?<!\n)\n+$/, '')
}

/** As the program gets it, where the text of the line tells; as written, where not. */
export function textOf(word: Word): string {
  return echoed(word) ?? word.value
}

/**
 * Whether a wildcard of a rule may stand for the word: text, file patterns and plain variables, but nothing that runs or computes, and no
 * `$'...'`, which a shell other than bash ends elsewhere.
 */
export function isPlain(word: Pick<Word, 'parts'>): boolean {
  if (echoed(word) !== undefined) return true
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
  return /^(?:_|BASH_.*|IFS|PS\d)$/.test(name)
}

/**
 * A word that may come out as a flag or a subcommand: names of files stand in the place of a pattern, and what a variable without quotes
 * holds may end in a blank (`a$PS4-delete`). `moves`: the line goes to a directory, whose name has any.
 */
export function mayBeFlags({ value, parts = [] }: Word, moves: boolean): boolean {
  if (parts.some(part => part.type === 'Glob') && (/^[-*?[]/.test(value) || !value.includes('/'))) return true
  return parts.some((part, at) => {
    if (part.type !== 'SimpleExpansion' && part.type !== 'ParameterExpansion') return false
    return /^-/.test(parts[at + 1]?.text.replace(/^['"\\]+/, '') ?? '') || (moves && /^\$\{?(?:OLDPWD|PWD|DIRSTACK)\b/.test(part.text))
  })
}

/** A path that goes down and up again: what a wildcard of a rule stands for lies below what the rule names. */
export function climbs(path: string): boolean {
  return /\/\.(?:\.|[^/]*[*?[][^/]*)(?:\/|$)/.test(path.replace(/^(?:\.\.?\/+)+/, ''))
}

/** Words of a command that are looked at: one with more is not understood. */
export const WORDS = 2000

/** The last segment of a program's path. */
export function baseOf(name: string): string {
  return name.slice(name.lastIndexOf('/') + 1)
}

/** The text of a word, roughly: without its quotes. */
export function unquoted(text: string): string {
  return text.replace(/['"]/g, '')
}

/** Names in a text, separated by blanks. */
export function list(text: string): string[] {
  return text.split(/\s+/).filter(name => name !== '')
}

export const SHELLS = 'ash bash csh dash fish ksh mksh rbash sh tcsh yash zsh'
/** Those that read what bash adds to the language as bash does. */
export const isBash = (name: string): boolean => name === 'bash' || name === 'rbash'

/** Whether shells other than bash read what the node stands for as something else. */
export function isForeign(node: SyntaxNode): boolean {
  switch (node.type) {
    case 'AnsiCQuoted':
    case 'ArithmeticCommand':
    case 'ArithmeticFor':
    case 'ArrayValue':
    case 'Coproc':
    case 'ExtendedGlob':
    case 'FileDescriptorVariable':
    case 'HereString':
    case 'LocaleString':
    case 'ProcessSubstitution':
    case 'Select':
    case 'TestCommand':
      return true
    case 'ArithmeticExpansion':
      return node.text.startsWith('$[')
    case 'Assignment':
      return node.append === true || node.index !== undefined
    case 'CaseItem':
      return node.terminator !== undefined && node.terminator !== ';;'
    case 'CommandExpansion':
      return node.text.startsWith('${')
    case 'Function':
      return node.name.pos > node.pos
    case 'Pipeline':
      return node.operators.includes('|&')
    case 'Redirect':
      return node.operator.startsWith('&>')
    default:
      return false
  }
}
