/** One command and what its words say: what it runs, where that stands, and what it reads it from. Readings ask these facts and no words. */
import type { Command, Word } from 'unbash'
import { leading } from './flags.ts'
import { containerFlags, launching, type Program, programKey, programOf } from './programs.ts'
import { baseOf, literal, unquoted } from './words.ts'

/** Commands that carry each other in one line; the last one of more has no room left for its own. */
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
    this.mark = this.#launchMark()
    this.carried = this.#carriedAt()
  }

  /** What a command of the tree says that has a name. */
  static of(command: Command): Call {
    const all = [command.name, ...command.args]
    const words = all.map(each => (each?.type === 'Word' ? each : undefined))
    return new Call(
      command,
      words,
      all.map(each => (each?.type === 'Word' ? each.value : unquoted(each?.text ?? '')))
    )
  }

  /** The call that begins at one of its words. */
  at(index: number): Call {
    return new Call(this.command, this.words.slice(index), this.values.slice(index))
  }

  #launchMark(): number {
    const { values, program } = this
    if (!program.launcher) return -1
    if (!program.scripted) return values.findIndex(word => launching.test(word))
    const last = leading(values)
    return values.findIndex((word, at) => launching.test(word) && (/^(?:exec|dlx)$/.test(word) || (word !== '--' && at <= last)))
  }

  #carriedAt(): number | undefined {
    const { values, program, mark } = this
    if (mark > 0 && program.container) return this.#inContainer()
    const carrier = program.carrier ?? (mark > 0 ? { valued: 'p', operands: 0 } : undefined)
    if (!carrier || (program.name === 'command' && /^-\w*[vV]/.test(values[1] ?? ''))) return undefined // asks where a program is
    let at = Math.max(mark, 0) + 1
    for (let word = values[at]; word !== undefined; word = values[at]) {
      if (/^-./.test(word)) at += word.length === 2 && carrier.valued.includes(word[1]!) ? 2 : 1
      else if (/^[A-Za-z_]\w*=/.test(word)) at++
      else break
    }
    at += carrier.operands
    return at < values.length ? at : undefined
  }

  /** The command of `docker run` and its like stands behind the name of an image or container; that of `kubectl exec` behind `--`. */
  #inContainer(): number | undefined {
    const { values, mark } = this
    const dashes = values[0]?.endsWith('kubectl') ? values.indexOf('--', mark) : -1
    let at = mark + 1
    for (let word = values[at]; word?.startsWith('-'); word = values[at]) at += containerFlags.test(word) ? 1 : 2
    const from = dashes < 0 ? at + 1 : dashes + 1
    return from < values.length ? from : undefined
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

  /** Index of the first word that may begin a command that the first one runs; undefined: there is none. */
  get begin(): number | undefined {
    const { program, mark, carried, values } = this
    const at = program.name === 'command' && !carried ? 0 : program.runsOthers ? 1 : mark + 1
    return at > 0 && at < values.length ? at : undefined
  }

  /** What a launcher runs is a script that the project names: the words after it are its arguments. */
  get runsNamedScript(): boolean {
    return this.program.scripted && this.values[this.mark] === 'run'
  }

  /** The words after the first are rather arguments of a script than commands. */
  get runsScript(): boolean {
    return this.program.shell ? this.scripts.length === 0 : this.runsNamedScript
  }

  /** Indexes of the words that are commands for certain, whatever they say. */
  get places(): number[] {
    const { carried, program, values } = this
    if (carried !== undefined) return this.runsNamedScript ? [] : [carried]
    const { executing } = program
    return executing ? values.flatMap((word, at) => (executing.test(word) && at + 1 < values.length ? [at + 1] : [])) : []
  }

  /** From where to where words stand that say where its command begins. */
  get own(): readonly [number, number] {
    const { program, mark, carried, values } = this
    if (program.search) return [1, values.length]
    if (mark > 0 ? this.runsNamedScript : !program.carrier) return [0, 0]
    return [Math.max(mark, 0) + 1, carried ?? values.length]
  }

  /** Indexes of the words that begin a command that a rule has to name: the first, and where one carries another. */
  get chain(): readonly { readonly from: number; readonly call: Call }[] {
    const found: { from: number; call: Call }[] = [{ from: 0, call: this }]
    for (let last = found[0]!; found.length < CARRIED; found.push(last)) {
      const { program, carried } = last.call
      if (!program.carrier || program.chosen || carried === undefined) break
      last = { from: last.from + carried, call: last.call.at(carried) }
    }
    return found
  }

  /** It runs a shell that gets its commands from the input. */
  get entersShell(): boolean {
    const { program, carried, mark, values } = this
    if (carried !== undefined) return false
    if (program.container) return mark > 0 && values.some(word => /^(?:-[a-hj-z]*i[a-z]*|--interactive|--stdin)$/.test(word))
    return program.starts?.(values.slice(1)) === true
  }

  /** Indexes of the words that are the text of a script: after `-c` of a shell, the handler of `trap`. */
  get scripts(): number[] {
    const { program, values } = this
    if (program.name === 'trap') return [values[1] === '--' ? 2 : 1].filter(at => at < values.length)
    if (!program.scriptTaker) return []
    const at = values.findIndex((word, index) => index > 0 && /^-\w*[cC]$|^--(?:call|command|init-command)$/.test(word)) + 1
    return at > 0 && at < values.length ? [at] : []
  }

  /** Words that hold the text of a program that may run commands: all of an interpreter, of others those after or in flags that run something. */
  get programTexts(): readonly string[] {
    const { program, values } = this
    if (program.interpreter) return values.slice(1)
    const risks = program.partlyKnown ? undefined : program.risk?.(values)
    if (!risks) return []
    return values.filter((word, index) => index > 0 && (risks(word, index) || (index > 1 && risks(values[index - 1]!, index - 1))))
  }

  /** Index of the word that is the text of a program in another language. */
  get programAt(): number | undefined {
    const { program, values } = this
    const at = program.interpreter
      ? values.findIndex(word => /^-\w*[ceEpr]$|^--(?:eval|print)$/.test(word)) + 1
      : program.awk && !values.some(word => /^(?:-f|--file)/.test(word))
        ? values.findIndex((word, index) => index > 0 && !word.startsWith('-') && !/^-[Fv]$/.test(values[index - 1]!))
        : 0
    return at > 0 && at < values.length ? at : undefined
  }

  /** Its program may come from its input. */
  get readsProgram(): boolean {
    const { program, values } = this
    if (!program.interpreter && !program.awk) return false
    const rest = values.slice(1)
    if (rest.some(word => /^(?:-|\/dev\/(?:stdin|fd\/.*))$/.test(word))) return program.interpreter || rest.includes('-f')
    if (program.awk || /^g?make$|vi|^emacs$|^less$|^more$|^sftp$/.test(program.name)) return false
    return (
      program.name === 'ed' ||
      program.name === 'ex' ||
      rest.every(word => word.startsWith('-') && !/^(?:-[hvV]|--(?:help|test|version))$/.test(word))
    )
  }

  /** It runs what comes from its input, of which a rule says nothing. */
  get readsInput(): boolean {
    const { program, values } = this
    const options = /^(?:[-+](?!-(?:help|version)$)|\/(?:dev|proc)\/)/
    return this.readsProgram || (program.scriptReader && values.every((word, at) => at === 0 || options.test(word)))
  }

  /** What comes from its input may be a command: the words of `xargs` and `parallel` end where one begins. */
  get takesCommands(): boolean {
    const { program, values } = this
    if (program.name === 'find') return this.#replacesCommand()
    if (program.name !== 'xargs' && program.name !== 'parallel') return false
    const flags = values.slice(0, this.carried ?? values.length)
    const command = values[flags.length]
    if (command !== undefined && (command.includes('{}') || flags.some(flag => flag.replace(/^-[^-]*[IJ]/, '') === command))) return true
    const at = values.findIndex((word, index) => index > 0 && programOf(baseOf(word)).runsOthers)
    if (at < 0) return program.name === 'parallel' && values.length === 1
    const own = this.at(at)
    const replaces = values.slice(0, at).some(word => /^(?:-[^-]*[IiJ]|--replace)/.test(word))
    return replaces || (own.program.shell ? own.runsScript : own.carried === undefined)
  }

  /** What `find` finds stands in the place of a command. */
  #replacesCommand(): boolean {
    const { places, values } = this
    return places.some((from, index) => {
      const own = new Call(this.command, [], values.slice(from, places[index + 1] ?? values.length))
      return own.chain.some(({ call }) => call.values[0] === '{}')
    })
  }

  /** It keeps something that a program will run, as far as the name of the setting tells. */
  get keepsCommands(): boolean {
    const { program, values } = this
    const { settings } = program
    if (!settings) return false
    const at = values.slice(0, leading(values) + 1).findIndex((word, index) => index > 0 && settings.test(word))
    if (at < 0) return false
    const key = values.slice(at + 1).find(word => !/^(?:-.*|add|get|import|list|set|unset)$/.test(word))
    return key !== undefined && (/^["']?[$`]/.test(key) || programKey.test(`${values[at]} ${key}`))
  }

  /** Names of programs that get another name. */
  get renamed(): string[] {
    if (!this.program.renaming) return []
    return this.values.flatMap(word => {
      const found = /^\/(?:usr\/)?(?:local\/)?s?bin\/([^/]+)$|[$`]\(?(?:which|command -v|type -[pP]) +([\w.+-]+)/.exec(word)
      return found?.[1] ?? found?.[2] ?? []
    })
  }

  /** The command of another program that it stands for; undefined: for none. */
  get standsFor(): string | undefined {
    const { program, values } = this
    if (!program.substitute) return undefined
    const { mark, verbs } = program.substitute
    const at = mark === '' ? 1 : values.indexOf(mark) + 1
    const verb = at > 0 ? verbs.get(values[at] ?? '') : undefined
    return verb && [verb, ...values.slice(at + 1)].join(' ')
  }
}
