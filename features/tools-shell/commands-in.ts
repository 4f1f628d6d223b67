/** The wide reading of a line: every command that it may run, in the forms in which a rule may name it. Better one too many than one missed. */
import { type Command, forEachChild, type ParsedScript, type SyntaxNode, type Word } from 'unbash'
import { carriedAt, computes, isShell, runsOthers, takesScript } from './programs.ts'
import { baseOf, literal } from './words.ts'

/** Scripts within the words of scripts that are looked into. */
const DEPTH = 5
/** Characters of all forms together; a line with more is not taken apart to the end. */
const BUDGET = 300_000
/** Levels of the tree that are looked into. */
export const LEVELS = 200

/** Collects the commands below the nodes that it visits. */
export class CommandsIn {
  /** Every command as written, without quotes, and without the directory of its program. */
  readonly forms = new Set<string>()
  /** Something runs whose name the line does not tell: a variable, a pattern, a script from elsewhere, text that could not be understood. */
  uncertain = false
  readonly #parse: (text: string) => ParsedScript
  #budget = BUDGET
  #level = 0

  constructor(parse: (text: string) => ParsedScript) {
    this.#parse = parse
  }

  visit(node: SyntaxNode, depth = 0): void {
    if ('errors' in node && node.errors?.length) this.uncertain = true
    if (node.type === 'Command') this.#command(node, depth)
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
    if (!runsOthers(baseOf(values[0]!))) return
    if (isDark(words[carriedAt(values) ?? 0])) this.uncertain = true
    for (let at = 1; at < values.length && this.#budget > 0; at++) {
      this.#begins(command, words.slice(at), values.slice(at), depth)
      this.#guess(values[at]!, depth)
    }
  }

  /** These words as a command, which gets the redirections of the command they stand in. */
  #begins(command: Command, words: readonly (Word | undefined)[], values: readonly string[], depth: number): void {
    const [first = '', ...rest] = values
    const name = baseOf(first)
    this.#add([first, ...rest].join(' '))
    this.#add([name, ...rest].join(' '))
    if (computes(name)) for (const word of words.slice(1)) this.#computed(word, depth)
    if (name === 'git') this.#git(rest, depth)
    for (const index of takesScript(name, values)) {
      if (isDark(words[index]) || values[index]!.includes('{}')) this.uncertain = true
      else this.#text(values[index]!, depth)
    }
    if (name === 'eval') this.#text(rest.join(' '), depth)
    if (isShell(name) || name === 'source' || name === '.') this.#input(command, isShell(name), words.slice(1), rest, depth)
  }

  /** Aliases and settings given on the line, and the subcommands that run what they are given. */
  #git(rest: readonly string[], depth: number): void {
    for (const [index, value] of rest.entries()) if (rest[index - 1] === '-c') this.#text(value.replace(/^[^=]*=!?/, ''), depth)
    if (rest.some(value => /^(?:bisect|config|filter-branch|rebase|submodule)$/.test(value))) {
      for (const value of rest) this.#guess(value, depth)
      for (let at = 0; at < rest.length && this.#budget > 0; at++) this.#add(rest.slice(at).join(' '))
    }
  }

  /** A script that comes in a here document is looked into; one from a pipe or a descriptor is unknown. */
  #input(command: Command, shell: boolean, words: readonly (Word | undefined)[], rest: readonly string[], depth: number): void {
    let given = false
    for (const each of command.redirects) {
      if (each.type === 'Redirect') continue
      given = true
      const text = each.type === 'HereDoc' ? each.body.text : each.target && literal(each.target)
      if (text === undefined) this.uncertain = true
      else this.#text(text, depth)
    }
    if (given || (shell && rest.some(value => /^-\w*c|^--(?:version|help)$/.test(value)))) return
    const at = rest.findIndex(value => !value.startsWith('-'))
    if (at < 0 ? shell : isDark(words[at]) || /^\/(?:dev|proc)\//.test(rest[at]!)) this.uncertain = true
  }

  /** Words that the shell computes with run what stands in `$(...)`, also within quotes. */
  #computed(word: Word | undefined, depth: number): void {
    const text = word && literal(word)
    if (text !== undefined && /\$\(|`/.test(text)) this.#text(text, depth)
  }

  /** A word that may hold the text of a command: as it is, after `--flag=`, after `-f`. That it cannot be understood means nothing. */
  #guess(value: string, depth: number): void {
    if (!/[\s;&|<>()`$]/.test(value)) return
    const { uncertain } = this
    this.#text(value, depth)
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
    else this.forms.add(form)
  }
}

/** Whether only the running shell knows what the word says. */
function isDark(word: Word | undefined): boolean {
  return word !== undefined && literal(word) === undefined
}

function unquoted(text: string): string {
  return text.replace(/['"]/g, '')
}
