/** The wide reading of a line: every command that it may run, in the forms in which a rule may name it. Better one too many than one missed. */
import { type Assignment, type Command, forEachChild, type ParsedScript, type SyntaxNode, type Word } from 'unbash'
import { matchText } from '../../tools/index.ts'
import {
  carriedAt,
  commandsBegin,
  computes,
  isShell,
  isUnknown,
  namedAnew,
  programAt,
  programTexts,
  readsProgram,
  readsScript,
  runsOthers,
  runsScript,
  takesCommands,
  takesScript
} from './programs.ts'
import { baseOf, literal, unquoted } from './words.ts'

/** Scripts within the words of scripts that are looked into. */
const DEPTH = 5
/** Characters of all forms together; a line with more is not taken apart to the end. */
const BUDGET = 300_000
/** Levels of the tree that are looked into. */
export const LEVELS = 200
/** Flags before the name of a subcommand that are left out. */
const LEADING = 10
/** In a form: a first word that only the running shell knows. */
const DARK = '\0'

/** Collects the commands below the nodes that it visits. */
export class CommandsIn {
  /** Every command as written, without quotes, and without the directory of its program. */
  readonly #forms = new Set<string>()
  /** What may be a command of a program that nothing is known of. */
  readonly #suspected = new Set<string>()
  /** Something runs whose name the line does not tell: a variable, a pattern, a script from elsewhere, text that could not be understood. */
  uncertain = false
  readonly #parse: (text: string) => ParsedScript
  #found = this.#forms
  #budget = BUDGET
  #level = 0

  constructor(parse: (text: string) => ParsedScript) {
    this.#parse = parse
  }

  /** Whether one of them is what a rule means. */
  names(pattern: string): boolean {
    return [...this.#forms].some(form => means(pattern, form))
  }

  /** Whether one of them may be. */
  suspects(pattern: string): boolean {
    const subcommand = /^\S+ (\w[\w-]*)/.exec(pattern)?.[1] ?? DARK
    return [...this.#suspected].some(form => means(pattern, form.replace(DARK, subcommand)))
  }

  visit(node: SyntaxNode, depth = 0): void {
    if ('errors' in node && node.errors?.length) this.uncertain = true
    if (node.type === 'Command') this.#command(node, depth)
    if (node.type === 'Assignment') this.#assigned(node, depth)
    if (node.type === 'TestUnary') this.#computed(node.operand, depth)
    if (node.type === 'TestBinary') for (const word of [node.left, node.right]) this.#computed(word, depth)
    if (this.#level >= LEVELS) {
      this.uncertain = true
      return
    }
    this.#level++
    forEachChild(node, child => this.visit(child, depth))
    this.#level--
  }

  #command(command: Command, depth: number): void {
    for (const each of command.prefix) {
      const text = each.type === 'Assignment' && each.value.type === 'Word' ? literal(each.value) : undefined
      if (text !== undefined && command.name) this.#guess(text, depth) // PAGER='rm x' man ls
    }
    if (!command.name) return
    const words: (Word | undefined)[] = [command.name, ...command.args.map(each => (each.type === 'Word' ? each : undefined))]
    const values = [command.name.value, ...command.args.map(each => (each.type === 'Word' ? each.value : unquoted(each.text)))]
    this.#add([command.name, ...command.args].map(each => each.text).join(' '))
    if (isDark(command.name)) this.uncertain = true
    this.#begins(command, words, values, depth)
    const name = baseOf(values[0]!)
    if (words.length > 1 && isDark(words[1])) this.#suspect(() => this.#add([name, DARK, ...values.slice(2)].join(' ')))
    const from = commandsBegin(values)
    const carried = carriedAt(values) ?? 0
    if (from !== undefined && isDark(words[carried])) this.uncertain = true
    const quiet = carried > 0 && !isUnknown(baseOf(values[carried]!)) && !runsOthers(baseOf(values[carried]!)) // its words are no commands
    const program = programAt(values)
    if (program !== undefined && isDark(words[program], true)) this.uncertain = true
    if (name === 'xargs' && carried === values.length - 1) this.#suspect(() => this.#add(`${values[carried]} ${DARK}`))
    if (from === undefined && !isUnknown(name)) return
    const look = () => {
      if (from === undefined) for (const text of inputsOf(command)) this.#program(text ?? '')
      for (let at = from ?? 1; at < values.length && this.#budget > 0; at++) {
        if (!/\s/.test(values[at]!)) this.#begins(command, words.slice(at), values.slice(at), depth)
        if (quiet) this.#suspect(() => this.#guess(values[at]!, depth))
        else this.#guess(values[at]!, depth)
        if (from === undefined && CODE.test(values[at]!)) this.#program(values[at]!)
      }
    }
    if (from === undefined || runsScript(values)) this.#suspect(look)
    else look()
  }

  /** What is found by it may be commands, but need not. */
  #suspect(look: () => void): void {
    const { uncertain } = this
    const found = this.#found
    this.#found = this.#suspected
    look()
    this.#found = found
    this.uncertain = uncertain || this.#budget < 0
  }

  /** These words as a command, which gets the redirections of the command they stand in. */
  #begins(command: Command, words: readonly (Word | undefined)[], values: readonly string[], depth: number): void {
    const [first = '', ...rest] = values
    const name = baseOf(first)
    this.#add([first, ...rest].join(' '))
    this.#add([name, ...rest].join(' '))
    this.#add([name.toLowerCase(), ...rest].join(' ')) // some file systems find it under any case
    for (let at = 0; at < Math.min(rest.length, LEADING) && [rest[at], rest[at - 1]].some(word => word?.startsWith('-')); at++)
      this.#add([name, ...rest.slice(at + 1)].join(' ')) // `git -C dir push` is a `git push`
    if (computes(name)) for (const word of words.slice(1)) this.#computed(word, depth)
    if (name === 'git') this.#git(rest, words.slice(1), depth)
    for (const index of takesScript(name, values)) {
      if (isDark(words[index]) || values[index]!.includes('{}')) this.uncertain = true
      else this.#text(values[index]!, depth)
    }
    if (name === 'eval') this.#text(rest.join(' '), depth)
    if (name === 'alias') for (const value of rest) this.#text(value.replace(/^[^=]*=/, ''), depth)
    if (takesCommands(values)) this.uncertain = true
    for (const program of namedAnew(values)) this.#add(program)
    for (const text of programTexts(values)) {
      if (CODE.test(text)) this.#program(text)
      else if (text.startsWith('/')) this.#add(baseOf(text))
      else this.#suspect(() => this.#add(baseOf(text)))
    }
    if (readsProgram(values)) {
      const inputs = inputsOf(command)
      if (inputs.length === 0 || inputs.includes(undefined)) this.uncertain = true
      for (const text of inputs) this.#program(text ?? '')
    }
    if (readsScript(name)) this.#input(command, isShell(name), words.slice(1), rest, depth)
  }

  /** Aliases and settings given on the line, and the subcommands that run what they are given. */
  #git(rest: readonly string[], words: readonly (Word | undefined)[], depth: number): void {
    for (const [index, value] of rest.entries()) {
      if (/^(?:foreach|run|-x|--exec)$/.test(rest[index - 1] ?? '') && isDark(words[index])) this.uncertain = true
      const text = rest[index - 1] === '-c' ? value.replace(/^[^=]*=/, '') : undefined
      if (text === undefined) continue
      this.#text(text.replace(/^!/, ''), depth)
      this.#add(`git ${text}`)
    }
    if (rest.some(value => /^(?:bisect|config|filter-branch|for-each-repo|rebase|submodule)$/.test(value))) {
      for (const value of rest) this.#guess(value, depth)
      for (let at = 0; at < rest.length && this.#budget > 0; at++) this.#add(rest.slice(at).join(' '))
    }
  }

  /** A script that comes in a here document is looked into; one from a pipe or a descriptor is unknown. */
  #input(command: Command, shell: boolean, words: readonly (Word | undefined)[], rest: readonly string[], depth: number): void {
    const inputs = inputsOf(command)
    for (const text of inputs) {
      if (text === undefined) this.uncertain = true
      else this.#text(text, depth)
    }
    if (inputs.length > 0 || (shell && rest.some(value => /^-\w*c|^--(?:version|help)$/.test(value)))) return
    if (['at', 'batch'].includes(baseOf(command.name?.value ?? ''))) this.uncertain = true
    const at = shell && rest.some(value => /^-\w*s/.test(value)) ? -1 : rest.findIndex(value => !value.startsWith('-'))
    if (at < 0 ? shell : isDark(words[at]) || /^\/(?:dev|proc)\//.test(rest[at]!)) this.uncertain = true
  }

  /** Words that the shell computes with run what stands in `$(...)`, also within quotes. */
  #computed(word: Word | undefined, depth: number): void {
    const text = word && literal(word)
    if (text !== undefined && /\$\(|`/.test(text)) this.#text(text, depth)
  }

  /** What the shell runs when it uses the variable, and what programs run that get it from their environment. */
  #assigned({ name, value }: Assignment, depth: number): void {
    for (const word of value.type === 'Word' ? [value] : value.elements) {
      this.#computed(word, depth)
      const text = literal(word)
      if (text === undefined) continue
      if (/^(?:BASH_ALIASES|BASH_CMDS|PROMPT_COMMAND|PS\d)/.test(name)) this.#text(text.replace(/^\[[^\]]*\]=/, ''), depth)
      else if (/^[A-Z]/.test(name)) {
        this.#guess(text, depth)
        this.#suspect(() => this.#add(baseOf(text)))
      }
    }
  }

  /** The text of a program in another language: whatever may begin a command in it counts as one. */
  #program(text: string): void {
    this.#budget -= text.length
    if (text === '') return
    if (/\bsystem\s*\(?\s*[$@\w]/.test(text)) this.uncertain = true
    for (const piece of text.split(/["'`/|;&:{}()[\]!,=\n]/)) {
      const form = piece.trim().replace(/^-\w(?=\w+ )|^(?:[\d$,]*e|exec|\.?shell|spawn|system|\w+Command)\s+/, '')
      if (form !== '' && this.#budget > 0) this.#add(form)
    }
  }

  /** A word that may hold the text of a command: as it is, after `--flag=`, after `-f`. That it cannot be understood means nothing. */
  #guess(value: string, depth: number): void {
    if (!/[\s;&|<>()`$]/.test(value)) return
    const { uncertain } = this
    this.#text(value.replace(/^[!|]\s*/, ''), depth)
    if (/^-\w/.test(value)) this.#text(value.slice(2), depth)
    if (/^-\w*c/.test(value)) this.#text(value.replace(/^-\w*?c/, ''), depth)
    if (/^[\w.-]+=/.test(value)) this.#text(value.slice(value.indexOf('=') + 1), depth)
    this.uncertain = uncertain || this.#budget < 0
  }

  #text(text: string, depth: number): void {
    this.#budget -= text.length
    if (depth >= DEPTH || this.#budget < 0) this.uncertain = true
    else this.visit(this.#parse(text), depth + 1)
  }

  #add(form: string): void {
    this.#budget -= form.length
    if (this.#budget < 0) this.uncertain = true
    else this.#found.add(form)
  }
}

/** `rm *` means `rm` without arguments, too: they may come from elsewhere (xargs). */
function means(pattern: string, form: string): boolean {
  return matchText(pattern, form) || matchText(pattern, `${form} `)
}

/** What here documents and strings give to the command; undefined for text that only the running shell knows. */
function inputsOf(command: Command): (string | undefined)[] {
  return command.redirects.flatMap(each => {
    if (each.type === 'Redirect') return []
    return [each.type === 'HereDoc' ? each.body.text : each.target && literal(each.target)]
  })
}

/** What a word has that is code in some language, and no name. */
const CODE = /[^\w./@-]/

/** Whether only the running shell knows what the word says, or how it begins. */
function isDark(word: Word | undefined, begin = false): boolean {
  if (word === undefined || literal(word) !== undefined) return false
  return !begin || /^"?[$`]/.test(word.text)
}
