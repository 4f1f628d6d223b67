/** One command and what its words say: which program it is, what that runs, and what it reads it from. Both readings ask these facts. */
import type { Command, Word } from 'unbash'
import { containerFlags, launching, type Program, programOf } from './programs.ts'
import { leading } from './risk.ts'
import { baseOf, literal, unquoted } from './words.ts'

/** How many commands may carry each other (`sudo env nice rm`); what stands behind the last of them is not looked at. */
const CARRIED = 20

export class Call {
  /** The command that its words stand in. */
  readonly command: Command
  /** As they stand in the tree. Undefined: an assignment. */
  readonly words: readonly (Word | undefined)[]
  /** As the program gets them, as far as the text tells. */
  readonly values: readonly string[]
  readonly program: Program
  /** Index of the word after which words of a launcher are a command; -1: there is none. */
  readonly mark: number
  /** Index of the command that the first word runs; undefined: there is none, or no telling. */
  readonly carried: number | undefined

  constructor(command: Command, words: readonly (Word | undefined)[], values: readonly string[]) {
    this.command = command
    this.words = words
    this.values = values
    this.program = programOf(baseOf(values[0] ?? ''))
    this.mark = this.program.launcher ? launchMark(values, this.program) : -1
    this.carried = this.program.carrier || this.mark > 0 ? carriedAt(values, this.program, this.mark) : undefined
  }

  /** Of a command that has a name. */
  static of(command: Command): Call {
    const words: (Word | undefined)[] = [command.name]
    const values = [command.name?.value ?? '']
    for (const each of command.args) {
      words.push(each.type === 'Word' ? each : undefined)
      values.push(each.type === 'Word' ? each.value : unquoted(each.text))
    }
    return new Call(command, words, values)
  }

  /** The call that begins at one of its words. */
  at(index: number, end?: number): Call {
    return new Call(this.command, this.words.slice(index, end), this.values.slice(index, end))
  }

  /** Only the running shell knows what the word says; with `begin`, how it begins. */
  isDynamic(index: number, begin = false): boolean {
    const word = this.words[index]
    return word !== undefined && literal(word) === undefined && (!begin || /^"?[$`]/.test(word.text))
  }

  /** What here documents and strings give to the command; undefined for text that only the running shell knows. */
  get inputs(): (string | undefined)[] {
    return this.command.redirects.flatMap(each => {
      if (each.type === 'Redirect') return []
      return [each.type === 'HereDoc' ? each.body.text : each.target && literal(each.target)]
    })
  }

  /** The words that begin a command that a rule has to name: the first, and where one carries another. */
  get chain(): readonly { readonly from: number; readonly call: Call }[] {
    const found: { from: number; call: Call }[] = [{ from: 0, call: this }]
    for (let last = found[0]!; found.length < CARRIED; found.push(last)) {
      const { program, carried } = last.call
      if (!program.carrier || program.chosen || carried === undefined) break
      last = { from: last.from + carried, call: last.call.at(carried) }
    }
    return found
  }

  /** What a launcher runs is a script that the project names: the words after it are its arguments. */
  get runsNamedScript(): boolean {
    return this.program.scripted && this.values[this.mark] === 'run'
  }

  /** The words after the first are rather arguments of a script than commands. */
  get runsScript(): boolean {
    return this.program.shell ? this.script === undefined : this.runsNamedScript
  }

  /** Index of the word that is the text of a script: after `-c` of a shell, the handler of `trap`. */
  get script(): number | undefined {
    const { program, values } = this
    const trap = values[1] === '--' ? 2 : 1
    const isMark = (word: string, index: number) => index > 0 && /^-\w*[cC]$|^--(?:call|command|init-command)$/.test(word)
    const at = program.name === 'trap' ? trap : program.scriptTaker ? values.findIndex(isMark) + 1 : 0
    return at > 0 && at < values.length ? at : undefined
  }

  /** Texts on the line that a shell reads: after `-c`, of `eval`, in a here document for a shell. */
  get scripts(): string[] {
    const { program, values, script } = this
    const own = program.name === 'eval' ? values.slice(1).join(' ') : script === undefined ? undefined : values[script]
    return [own, ...(program.scriptReader ? this.inputs : [])].filter(text => text !== undefined)
  }

  /** The program of an interpreter may come from its input. */
  get readsProgram(): boolean {
    const { program, values } = this
    const rest = values.slice(1)
    const isInput = (word: string) => /^(?:-|\/(?:dev|proc)\/(?:stdin|.*\bfd\/.*))$/.test(word.replace(/^(?:-\w*[fE]|--\w+=)(?=.)/, ''))
    const streams = program.awk || /^g?sed$/.test(program.name)
    if (rest.some(isInput)) return program.interpreter || (streams && rest.some(word => /^(?:-\w*[fEW]|--(?:exec|file))/.test(word)))
    if (!program.interpreter || /^g?make$|vi|^emacs$|^less$|^more$|^sftp$/.test(program.name)) return false
    if (program.name === 'ed' || program.name === 'ex') return true
    const informs = /^py/.test(program.name) ? /^(?:-h|-V+|--(?:help|version))$/ : /^(?:-[hvV]|--(?:help|test|version))$/
    return rest.every(word => word.startsWith('-') && !informs.test(word))
  }

  /** It takes commands from its input also when its words name something else: debuggers, editors, clients of data bases. */
  get takesCommands(): boolean {
    const { program, values } = this
    if (/^(?:ftp|gdb|n?vi|nvim|vim|view|mariadb|mysql|psql|sftp|sqlite[\d.]*|telnet)$/.test(program.name)) return true
    const flag = /^py/.test(program.name) ? /^-[a-zA-Z]*i/ : program.name === 'perl' ? /^-\w*d/ : undefined
    return flag !== undefined && values.some((word, at) => at > 0 && flag.test(word))
  }

  /** It runs what comes from its input, of which a rule says nothing. */
  get readsInput(): boolean {
    const { program, values } = this
    if (program.interpreter || program.awk || /^g?sed$/.test(program.name)) return this.readsProgram
    const isFlag = /^(?:[-+](?!-(?:help|version)$)|\/(?:dev|proc)\/)/
    return program.scriptReader && values.every((word, at) => at === 0 || isFlag.test(word))
  }
}

function launchMark(values: readonly string[], { scripted }: Program): number {
  if (!scripted) return values.findIndex(word => launching.test(word))
  const last = leading(values)
  return values.findIndex((word, at) => launching.test(word) && (/^(?:exec?|dlx)$/.test(word) || (word !== '--' && at <= last)))
}

function carriedAt(values: readonly string[], { name, container, carrier }: Program, mark: number): number | undefined {
  let at = Math.max(mark, 0) + 1
  if (container) {
    // behind the name of an image or container; that of `kubectl exec` behind `--`
    const dashes = name === 'kubectl' ? values.indexOf('--', mark) : -1
    for (let word = values[at]; word?.startsWith('-'); word = values[at]) at += containerFlags.test(word) ? 1 : 2
    at = (dashes < 0 ? at : dashes) + 1
  } else {
    if (name === 'command' && /^-\w*[vV]/.test(values[1] ?? '')) return undefined // asks where a program is
    const { valued, operands } = carrier ?? { valued: 'p', operands: 0 }
    for (let word = values[at]; word !== undefined; word = values[at]) {
      if (/^-./.test(word)) at += word.length === 2 && valued.includes(word[1]!) ? 2 : 1
      else if (/^[A-Za-z_]\w*=/.test(word)) at++
      else break
    }
    at += operands
  }
  return at < values.length ? at : undefined
}
