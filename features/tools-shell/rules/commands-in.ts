/** The wide reading of a line: every command that it may run, in the forms in which a rule may name it. Better one too many than one missed. */
import { type Assignment, type Command, type ParsedScript, parse, type SyntaxNode, type Word } from 'unbash'
import { yieldToLoop } from '../../../kernel/index.ts'
import { compileText } from '../../tools/index.ts'
import { carriedAt, commandPlaces, commandsBegin, entersShell, isSearch, ownWords, runsOthers } from './carriers.ts'
import { isInput, isNothing } from './files-in.ts'
import {
  computes,
  isInterpreter,
  isUnknown,
  programAt,
  programTexts,
  readsProgram,
  readsScript,
  runsScript,
  takesCommands,
  takesScript
} from './scripts.ts'
import { isProgramVariable, keepsCommands, namedAnew, spokenFor } from './settings.ts'
import { childrenOf, type Values, walk } from './survey.ts'
import { baseOf, isBash, isForeign, isShell, literal, unquoted } from './words.ts'

/** Scripts within the words of scripts that are looked into. */
const DEPTH = 5
/** Characters of all forms together; a line with more is not taken apart to the end. */
const BUDGET = 300_000
/** Flags before the name of a subcommand that are left out. */
const LEADING = 10
/** In a form: a first word that only the running shell knows; one that may come out as flags. */
const DARK = '\0'
const OPEN = '\x01'

/** Where something stands. */
interface Place {
  /** What is found may be commands, but need not. */
  readonly suspected: boolean
  /** That something cannot be understood means that the line cannot. */
  readonly counts: boolean
  /** A shell reads it that need not be bash. */
  readonly plain: boolean
  /** Its commands get their input from elsewhere. */
  readonly fed: boolean
  /** Scripts around it. */
  readonly depth: number
}

/** The words of a command, and the command that they stand in, whose redirections they get. */
interface Call {
  readonly command: Command
  /** Undefined: an assignment. */
  readonly words: readonly (Word | undefined)[]
  readonly values: readonly string[]
}

/** Collects the commands below a node. */
export class CommandsIn {
  /** Every command as written, without quotes, and without the directory of its program. */
  readonly #forms = new Set<string>()
  /** What may be a command of a program that nothing is known of. */
  readonly #suspected = new Set<string>()
  /** Something runs whose name the line does not tell: a variable, a pattern, a script from elsewhere, text that could not be understood. */
  uncertain = false
  readonly #values: Values
  readonly #todo: { readonly look: () => void; readonly place: Place }[] = []
  /** Scripts whose variables are not known yet. */
  #fresh: ParsedScript[] = []
  #place: Place
  #budget = BUDGET

  private constructor(values: Values, place: Pick<Place, 'plain' | 'fed'>) {
    this.#values = values
    this.#place = { ...place, suspected: false, counts: true, depth: 0 }
  }

  static async below(node: SyntaxNode, values: Values, place: Pick<Place, 'plain' | 'fed'>): Promise<CommandsIn> {
    const commands = new CommandsIn(values, place)
    commands.#later(() => commands.#visit(node))
    await commands.#readAll()
    return commands
  }

  /** Whether one of them is what a rule means. */
  names(pattern: string): boolean {
    return anyMeans(pattern, this.#forms)
  }

  /** Whether one of them may be. */
  suspects(pattern: string): boolean {
    const [, flag, subcommand = DARK] = /^\S+ (?:(-[\w-]+)|(\w[\w-]*))/.exec(pattern) ?? []
    return anyMeans(pattern, this.#suspected, form => form.replace(DARK, subcommand).replace(OPEN, flag ?? OPEN))
  }

  async #readAll(): Promise<void> {
    for (let next = this.#todo.pop(); next && this.#budget >= 0; next = this.#todo.pop()) {
      this.#place = next.place
      next.look()
      const fresh = this.#fresh
      this.#fresh = []
      for (const script of fresh) await walk(script, node => this.#values.learn(node))
      const others = yieldToLoop()
      if (others) await others
    }
  }

  #later(look: () => void, change?: Partial<Place>): void {
    this.#todo.push({ look, place: change ? { ...this.#place, ...change } : this.#place })
  }

  #doubt(): void {
    if (this.#place.counts) this.uncertain = true
  }

  #visit(node: SyntaxNode): void {
    if ('errors' in node && node.errors?.length) this.#doubt()
    if (this.#place.plain && isForeign(node)) this.#doubt()
    switch (node.type) {
      case 'Command':
        this.#command(node)
        break
      case 'Assignment':
        this.#assigned(node)
        break
      case 'TestUnary':
        this.#computed(node.operand)
        break
      case 'TestBinary':
        for (const word of [node.left, node.right]) this.#computed(word)
        break
      case 'ArithmeticCommand':
        if (this.#place.plain) this.#text(node.body) // two groups in each other
    }
    for (const child of childrenOf(node)) this.#later(() => this.#visit(child), feeds(node, child) ? { fed: true } : undefined)
  }

  #command(command: Command): void {
    for (const each of command.prefix) {
      const text = each.type === 'Assignment' && each.value.type === 'Word' ? literal(each.value) : undefined
      if (text !== undefined && command.name) this.#guess(text) // PAGER='rm x' man ls
    }
    if (!command.name) return
    const words = [command.name, ...command.args.map(each => (each.type === 'Word' ? each : undefined))]
    const values = [command.name.value, ...command.args.map(each => (each.type === 'Word' ? each.value : unquoted(each.text)))]
    this.#add([command.name, ...command.args].map(each => each.text).join(' '))
    if (isDark(command.name)) this.#doubt()
    const call = { command, words, values }
    this.#begins(call)
    this.#look(call)
  }

  /** What words of a command may be commands. */
  #look(call: Call): void {
    const { words, values, command } = call
    const name = baseOf(values[0]!)
    const from = commandsBegin(values)
    const carried = carriedAt(values) ?? 0
    const unknown = from === undefined && (keepsCommands(values) || isUnknown(name))
    if (unknown || isInterpreter(name)) for (const text of inputsOf(command)) this.#later(() => this.#program(text ?? ''), suspicion)
    if (from === undefined && !unknown) return
    const place = unknown || runsScript(values) ? suspicion : undefined
    const quiet = carried > 0 && !isUnknown(baseOf(values[carried]!)) && !runsOthers(baseOf(values[carried]!)) // its words are no commands
    const look = (at: number) => {
      if (this.#budget < 0) return
      if (at + 1 < values.length) this.#later(() => look(at + 1))
      if (!/\s/.test(values[at]!)) this.#begins({ command, words: words.slice(at), values: values.slice(at) })
      const value = /^--?[\w-]+=(.+)/s.exec(values[at]!)?.[1] // --entrypoint=rm
      if (value !== undefined) this.#later(() => this.#add([baseOf(value), ...values.slice(at + 1)].join(' ')), suspicion)
      this.#later(() => this.#guess(values[at]!), quiet ? suspicion : undefined)
      if (unknown && CODE.test(values[at]!)) this.#program(values[at]!)
    }
    this.#later(() => look(from ?? 1), place)
  }

  /** These words as a command. */
  #begins(call: Call): void {
    const { words, values } = call
    const [first = '', ...rest] = values
    const name = baseOf(first)
    this.#add([first, ...rest].join(' '))
    this.#add([name, ...rest].join(' '))
    this.#add([name.toLowerCase(), ...rest].join(' ')) // some file systems find it under any case
    for (let at = 0; at < Math.min(rest.length, LEADING) && [rest[at], rest[at - 1]].some(word => word?.startsWith('-')); at++)
      this.#add([name, ...rest.slice(at + 1)].join(' ')) // `git -C dir push` is a `git push`
    this.#doubts(call, name)
    const second = words[1]
    if (isDark(second)) this.#later(() => this.#add([name, DARK, ...rest.slice(1)].join(' ')), suspicion)
    if (second && this.#values.opens(second, false)) this.#later(() => this.#add([name, OPEN, ...rest.slice(1)].join(' ')), suspicion)
    if (name === 'xargs' && carriedAt(values) === rest.length) this.#later(() => this.#add(`${rest.at(-1)} ${DARK}`), suspicion)
    const spoken = spokenFor(values)
    if (spoken !== undefined) this.#later(() => this.#add(spoken), suspicion)
    if (computes(name)) for (const word of words.slice(1)) this.#computed(word)
    if (name === 'git') this.#git(rest)
    for (const index of takesScript(name, values)) {
      if (isDark(words[index]) || values[index]!.includes('{}')) this.#doubt()
      else this.#text(values[index]!, name === 'trap' ? {} : { plain: !isBash(name) })
    }
    if (name === 'eval' && !words.slice(1).every(word => word && this.#values.printsSettings(word))) this.#text(rest.join(' '))
    if (name === 'alias') for (const value of rest) this.#text(value.replace(/^[^=]*=/, ''))
    for (const program of namedAnew(values)) this.#add(program)
    for (const [index, value] of rest.entries()) {
      const variable = /^(\w+)=(.*)/s.exec(value)
      if (variable && isDark(words[index + 1]) && isProgramVariable(variable[1]!)) this.#text(variable[2]!)
    }
    for (const text of programTexts(values)) {
      if (CODE.test(text)) {
        this.#program(text)
        this.#guess(text)
      } else if (text.startsWith('/')) this.#add(baseOf(text))
      else this.#later(() => this.#add(baseOf(text)), suspicion)
    }
    this.#input(call, name)
  }

  /** What only the running shell knows stands where a command does, or in front of one that it could put something before. */
  #doubts({ words, values }: Call, name: string): void {
    const program = programAt(values)
    if (commandPlaces(values).some(at => isDark(words[at]))) this.#doubt()
    if (program !== undefined && isDark(words[program], true)) this.#doubt()
    const [begin, end] = ownWords(values)
    if (words.slice(begin, end).some(word => word && this.#values.opens(word, !isSearch(name)))) this.#doubt()
    if (keepsCommands(values) && words.some(word => isDark(word))) this.#doubt()
    if (takesCommands(values)) this.#doubt()
  }

  /** Aliases and settings given on the line, and the subcommands that run what they are given. */
  #git(rest: readonly string[]): void {
    for (const [at, value] of rest.entries()) if (at > 0 && rest[at - 1] === '-c') this.#later(() => this.#setting(value))
    if (!rest.some(value => /^(?:bisect|config|filter-branch|for-each-repo|rebase|submodule)$/.test(value))) return
    for (const value of rest) this.#later(() => this.#guess(value))
    for (let at = 0; at < rest.length && this.#budget > 0; at++) {
      const form = rest.slice(at).join(' ')
      this.#add(form)
      if (rest.includes('config')) this.#add(`git ${form}`)
    }
  }

  /** `name=value`: a program, or an alias for words of git. */
  #setting(text: string): void {
    const value = text.replace(/^[^=]*=/, '')
    this.#text(value.replace(/^!/, ''))
    this.#add(`git ${value}`)
  }

  /** A program or script that comes in a here document is looked into; one from a pipe or a descriptor is unknown. */
  #input({ command, words, values }: Call, name: string): void {
    const inputs = inputsOf(command)
    const rest = values.slice(1)
    if (readsProgram(values)) {
      if (inputs.length === 0 || inputs.includes(undefined)) this.#doubt()
      for (const text of inputs) this.#program(text ?? '')
    }
    const fed = command.redirects.findLast(isInput)
    if (name === 'exec' && fed && carriedAt(values) === undefined) this.#doubt() // what follows reads from there
    const enters = entersShell(values)
    if (!readsScript(name) && !enters) return
    for (const text of inputs) {
      if (text === undefined) this.#doubt()
      else this.#text(text, { plain: !isBash(name) })
    }
    if (enters && (fed ? fed.type === 'Redirect' && !isNothing(fed) : this.#place.fed)) this.#doubt()
    if (enters || inputs.length > 0) return
    if (this.#place.fed && rest.includes('-')) this.#doubt()
    const shell = isShell(name)
    if (shell && rest.some(value => /^-\w*c|^--(?:version|help)$/.test(value))) return
    if (['at', 'batch'].includes(baseOf(command.name?.value ?? ''))) this.#doubt()
    const at = shell && rest.some(value => /^-\w*s/.test(value)) ? -1 : rest.findIndex(value => !value.startsWith('-'))
    if (at < 0 ? shell : isDark(words[at + 1]) || /^\/(?:dev|proc)\//.test(rest[at]!)) this.#doubt()
  }

  /** Words that the shell computes with run what stands in `$(...)`, also within quotes. */
  #computed(word: Word | undefined): void {
    const text = word && literal(word)
    if (text !== undefined && /\$\(|`/.test(text)) this.#text(text)
  }

  /** What the shell runs when it uses the variable, and what programs run that get it from their environment. */
  #assigned({ name, value }: Assignment): void {
    for (const word of value.type === 'Word' ? [value] : value.elements) {
      this.#computed(word)
      const text = literal(word)
      const runs = /^(?:BASH_ALIASES|BASH_CMDS|PROMPT_COMMAND|PS\d)/.test(name)
      if (runs && text !== undefined) this.#text(text.replace(/^\[[^\]]*\]=/, ''))
      else if (text === undefined && (runs || isProgramVariable(name))) this.#text(word.value)
      else if (text !== undefined && (/^[A-Z]/.test(name) || isProgramVariable(name))) {
        this.#guess(text)
        if (isProgramVariable(name)) this.#later(() => this.#program(text), suspicion)
        this.#later(() => this.#add(baseOf(text)), suspicion)
      }
    }
  }

  /** The text of a program in another language: whatever may begin a command in it counts as one. */
  #program(text: string): void {
    this.#budget -= text.length
    if (text === '') return
    if (/\bsystem\s*\(?\s*[$@\w]/.test(text)) this.#doubt()
    for (const piece of text.split(/["'`/|;&:{}()[\]!,=\n]/)) {
      const form = piece.trim().replace(/^-\w(?=\w+ )|^(?:[\d$,]*e|exec|\.?shell|spawn|system|\w+Command)\s+/, '')
      if (form !== '' && this.#budget > 0) this.#add(form)
    }
  }

  /** A word that may hold the text of a command: as it is, after `--flag=`, after `-f`. That it cannot be understood means nothing. */
  #guess(value: string): void {
    if (!/[\s;&|<>()`$]/.test(value)) return
    const guess = { counts: false, plain: true }
    this.#text(value.replace(/^\+?[!|]\s*/, ''), guess)
    if (/^-\w/.test(value)) this.#text(value.slice(2), guess)
    if (/^-\w*c/.test(value)) this.#text(value.replace(/^-\w*?c/, ''), guess)
    if (/^[\w.-]+=/.test(value)) this.#text(value.slice(value.indexOf('=') + 1), guess)
  }

  #text(text: string, change: Partial<Place> = {}): void {
    const { depth } = this.#place
    this.#budget -= text.length
    if (this.#budget < 0) this.uncertain = true
    else if (depth >= DEPTH) this.#doubt()
    else {
      const script = parse(text)
      this.#fresh.push(script)
      this.#later(() => this.#visit(script), { ...change, depth: depth + 1 })
    }
  }

  #add(form: string): void {
    this.#budget -= form.length
    if (this.#budget < 0) this.uncertain = true
    else (this.#place.suspected ? this.#suspected : this.#forms).add(form)
  }
}

const suspicion = { suspected: true, counts: false }

/** `rm *` means `rm` without arguments, too: they may come from elsewhere (xargs). */
function anyMeans(pattern: string, forms: Iterable<string>, change = (form: string) => form): boolean {
  const fits = compileText(pattern)
  for (const form of forms) if (fits(change(form)) || fits(`${change(form)} `)) return true
  return false
}

/** What here documents and strings give to the command; undefined for text that only the running shell knows. */
function inputsOf(command: Command): (string | undefined)[] {
  return command.redirects.flatMap(each => {
    if (each.type === 'Redirect') return []
    return [each.type === 'HereDoc' ? each.body.text : each.target && literal(each.target)]
  })
}

/** Whether commands below the node get their input from elsewhere: a pipe, a file, whoever calls a function. */
function feeds(node: SyntaxNode, child: SyntaxNode): boolean {
  switch (node.type) {
    case 'Pipeline':
      return child !== node.commands[0]
    case 'Redirected':
      return child === node.command && node.redirects.some(each => isInput(each) && !isNothing(each))
    case 'ProcessSubstitution':
      return node.operator === '>'
    default:
      return node.type === 'Function' || node.type === 'Coproc'
  }
}

/** What a word has that is code in some language, and no name. */
const CODE = /[^\w./@-]/

/** Whether only the running shell knows what the word says, or how it begins. */
function isDark(word: Word | undefined, begin = false): boolean {
  if (word === undefined || literal(word) !== undefined) return false
  return !begin || /^"?[$`]/.test(word.text)
}
