/** What the variables of a line may hold. */
import type { Command, SyntaxNode, Word, WordPart } from 'unbash'
import { list, literal } from './words.ts'

/** Builtins that assign to the variables that they are given by name. */
const assigning = new Set(list('declare export getopts let local mapfile printf read readarray readonly typeset'))
/** A value that is one word, and no flag. */
const PLAIN = /^(?!-)[^\s*?[]*$/
/** Substitutions that come out as one plain word. */
const oneWord = /^(?:nproc|whoami|id -[gu])$/
/** Programs that print settings for the shell, made by them alone. */
const shellSettings =
  /^(?:ssh-agent(?: -[cks])?|(?:\/[\w./-]+\/)?brew shellenv|direnv (?:export|hook) \w+|fnm env(?: --[\w-]+)*|(?:go|j|nod|pl|py|rb)env init(?: -(?:-\w[\w-]*)?(?: \w+)?)*|(?:mise|starship|zoxide) (?:activate|init) \w+|minikube docker-env|opam env)$/

/** The variable that a word names: `x` (as in `env x='a b'`) and `-vx` (as in `printf -vx`). */
function variableIn(word: string): string | undefined {
  if (!word.startsWith('-')) return word || undefined
  const mark = word.lastIndexOf('v', word.length - 2)
  return mark < 0 ? undefined : word.slice(mark + 1)
}

/** Values of one variable that are kept apart. */
const GIVEN = 10

/** What variables of a line may hold, as far as the line itself sets them. Others come from the server's environment, and are the user's. */
export class Values {
  /** Those that may hold more than one plain word. */
  readonly #open = new Set<string>()
  /** Those that the line sets to anything. */
  readonly #set = new Set<string>()
  /** Words that the line sets a variable to; undefined: something else. */
  readonly #given = new Map<string, Set<Word | undefined>>()
  #split = false
  #defines = false

  learn(node: SyntaxNode): void {
    if (node.type === 'Assignment') {
      this.#set.add(node.name)
      this.#keep(node.name, node.value.type === 'Word' && !node.append && !node.index ? node.value : undefined)
      const text = node.value.type === 'Word' && !node.append ? literal(node.value) : undefined
      if (text === undefined || !PLAIN.test(text)) this.#open.add(node.name)
      if (node.name === 'IFS') this.#split = true
    }
    if (node.type === 'For' && !node.wordlist?.every(word => PLAIN.test(literal(word) ?? ' '))) this.#open.add(node.name.value)
    if (node.type === 'For') for (const word of node.wordlist ?? [undefined]) this.#keep(node.name.value, word)
    if (node.type === 'Select') this.#leaveOpen(node.name.value)
    if (node.type === 'ParameterExpansion' && node.operation?.type === 'Default') this.#leaveOpen(node.parameter)
    if (node.type === 'Function') this.#defines = true
    if (node.type === 'Command') this.#command(node)
  }

  #command({ name, args }: Command): void {
    if (name?.value === 'alias' || name?.value === 'hash') this.#defines = true
    const assigns = assigning.has(name?.value ?? '')
    for (const each of args) {
      if (each.type !== 'Word') continue
      const [, word = '', rest] = /^(-?\w+)(?:\+?=(.*))?$/s.exec(each.value) ?? []
      const given = variableIn(word)
      if (given === undefined || (rest === undefined ? !assigns : literal(each) !== undefined && PLAIN.test(rest))) continue
      this.#leaveOpen(given)
    }
  }

  #leaveOpen(name: string): void {
    this.#open.add(name)
    this.#keep(name, undefined)
  }

  #keep(name: string, word: Word | undefined): void {
    const given = this.#given.get(name) ?? new Set()
    this.#given.set(name, given.add(given.size < GIVEN ? word : undefined))
  }

  /** What the line sets the variable to; undefined in it: something else. Undefined: it does not. */
  given(name: string): ReadonlySet<Word | undefined> | undefined {
    return this.#given.get(name)
  }

  /** Whether a variable in the word has its value from the line. */
  sets({ parts = [] }: Word): boolean {
    const set = (name: string) => this.#set.has(name) || this.#open.has(name)
    return parts.some(part => {
      const inner = part.type === 'DoubleQuoted' ? part.parts : [part]
      return inner.some(
        each => (each.type === 'SimpleExpansion' && set(each.text.slice(1))) || (each.type === 'ParameterExpansion' && set(each.parameter))
      )
    })
  }

  /** Whether the word may come out as other words than stand there, of the line's own making. `globs`: file patterns count. */
  opens({ parts = [] }: Word, globs: boolean): boolean {
    return parts.some(part => this.#opens(part, globs))
  }

  #opens(part: WordPart, globs: boolean): boolean {
    switch (part.type) {
      case 'Glob':
        return globs
      case 'DoubleQuoted':
        return part.parts.some(inner => /^\$(?:@|\{@|\{!?\w+\[@\])/.test(inner.text))
      case 'SimpleExpansion':
        return this.#holdsMore(part.text.slice(1))
      case 'ParameterExpansion':
        return part.prefix !== '#' && (part.prefix === '!' || part.index !== undefined || this.#holdsMore(part.parameter))
      case 'CommandExpansion':
        return !this.#prints(part, oneWord)
      case 'BraceExpansion':
      case 'ExtendedGlob':
        return true
      default:
        return false
    }
  }

  #holdsMore(name: string): boolean {
    return this.#split || this.#open.has(name) || /^(?:[\d@*]|IFS$|PS\d$|_$)/.test(name)
  }

  /** Whether the word is what a program prints that sets up a shell, and nothing else. */
  printsSettings({ parts = [] }: Word): boolean {
    const [only, ...others] = parts.flatMap((part): readonly WordPart[] => (part.type === 'DoubleQuoted' ? part.parts : [part]))
    return others.length === 0 && only?.type === 'CommandExpansion' && this.#prints(only, shellSettings)
  }

  /** Whether the substitution runs one of these and nothing in its place. */
  #prints({ script }: WordPart & { readonly type: 'CommandExpansion' }, known: RegExp): boolean {
    const command = script?.commands.length === 1 ? script.commands[0]?.command : undefined
    if (this.#defines || this.#split || command?.type !== 'Command' || command.prefix.length > 0 || command.redirects.length > 0)
      return false
    const words = [command.name, ...command.args].map(each => (each?.type === 'Word' ? literal(each) : undefined))
    return !words.includes(undefined) && known.test(words.join(' '))
  }
}
