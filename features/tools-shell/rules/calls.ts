/** What a command runs by its words: itself in all forms, commands and scripts among its words, what it reads them from. */
import type { Command, Word } from 'unbash'
import { carriedAt, commandPlaces, commandsBegin, entersShell, ownWords, runsOthers, searches } from './carriers.ts'
import { isInput, isNothing } from './files-in.ts'
import { DYNAMIC, EXPANDING, type Findings, suspicion } from './findings.ts'
import {
  computing,
  interpreters,
  isUnknown,
  programAt,
  programTexts,
  readsProgram,
  runsScript,
  scriptReaders,
  takesCommands,
  takesScript
} from './scripts.ts'
import { isProgramVariable, keepsCommands, namedAnew, standsFor } from './settings.ts'
import { baseOf, isBash, literal, shells } from './words.ts'

/** Flags before the name of a subcommand that are left out. */
const LEADING = 10

/** The words of a command, and the command that they stand in, whose redirections they get. */
interface Call {
  readonly command: Command
  /** Undefined: an assignment. */
  readonly words: readonly (Word | undefined)[]
  readonly values: readonly string[]
}

/** Collects what the call runs. */
export function lookAt(call: Call, found: Findings): void {
  if (isDynamic(call.words[0])) found.doubt()
  begins(call, found)
  positions(call, found)
}

/** What words of a command may be commands. */
function positions(call: Call, found: Findings): void {
  const { words, values, command } = call
  const name = baseOf(values[0]!)
  const from = commandsBegin(values)
  const carried = carriedAt(values) ?? 0
  const unknown = from === undefined && (keepsCommands(values) || isUnknown(name))
  if (unknown || interpreters.test(name)) for (const text of inputsOf(command)) found.later(() => found.program(text ?? ''), suspicion)
  if (from === undefined && !unknown) return
  const place = unknown || runsScript(values) ? suspicion : undefined
  const quiet = carried > 0 && !isUnknown(baseOf(values[carried]!)) && !runsOthers(baseOf(values[carried]!)) // its words are no commands
  const look = (at: number) => {
    if (!found.goesOn) return
    if (at + 1 < values.length) found.later(() => look(at + 1))
    if (!/\s/.test(values[at]!)) begins({ command, words: words.slice(at), values: values.slice(at) }, found)
    const value = /^--?[\w-]+=(.+)/s.exec(values[at]!)?.[1] // --entrypoint=rm
    if (value !== undefined) found.suspect([baseOf(value), ...values.slice(at + 1)].join(' '))
    found.later(() => found.guess(values[at]!), quiet ? suspicion : undefined)
    if (unknown && CODE.test(values[at]!)) found.program(values[at]!)
  }
  found.later(() => look(from ?? 1), place)
}

/** These words as a command. */
function begins(call: Call, found: Findings): void {
  const { words, values } = call
  const [first = '', ...rest] = values
  const name = baseOf(first)
  found.add([first, ...rest].join(' '))
  found.add([name, ...rest].join(' '))
  found.add([name.toLowerCase(), ...rest].join(' ')) // some file systems find it under any case
  for (let at = 0; at < Math.min(rest.length, LEADING) && [rest[at], rest[at - 1]].some(word => word?.startsWith('-')); at++)
    found.add([name, ...rest.slice(at + 1)].join(' ')) // `git -C dir push` is a `git push`
  doubts(call, name, found)
  const second = words[1]
  if (isDynamic(second)) found.suspect([name, DYNAMIC, ...rest.slice(1)].join(' '))
  if (second && found.values.opens(second, false)) found.suspect([name, EXPANDING, ...rest.slice(1)].join(' '))
  if (name === 'xargs' && carriedAt(values) === rest.length) found.suspect(`${rest.at(-1)} ${DYNAMIC}`)
  const other = standsFor(values)
  if (other !== undefined) found.suspect(other)
  if (computing.has(name)) for (const word of words.slice(1)) found.computed(word)
  if (name === 'git') git(rest, found)
  for (const index of takesScript(name, values)) {
    if (isDynamic(words[index]) || values[index]!.includes('{}')) found.doubt()
    else found.text(values[index]!, name === 'trap' ? {} : { plain: !isBash(name) })
  }
  if (name === 'eval' && !words.slice(1).every(word => word && found.values.printsSettings(word))) found.text(rest.join(' '))
  if (name === 'alias') for (const value of rest) found.text(value.replace(/^[^=]*=/, ''))
  for (const program of namedAnew(values)) found.add(program)
  for (const [index, value] of rest.entries()) {
    const variable = /^(\w+)=(.*)/s.exec(value)
    if (variable && isDynamic(words[index + 1]) && isProgramVariable(variable[1]!)) found.text(variable[2]!)
  }
  for (const text of programTexts(values)) {
    if (CODE.test(text)) {
      found.later(() => found.program(text))
      found.later(() => found.guess(text))
    } else if (text.startsWith('/')) found.add(baseOf(text))
    else found.suspect(baseOf(text))
  }
  input(call, name, found)
}

/** What only the running shell knows stands where a command does, or in front of one that it could put something before. */
function doubts({ words, values }: Call, name: string, found: Findings): void {
  const program = programAt(values)
  if (commandPlaces(values).some(at => isDynamic(words[at]))) found.doubt()
  if (program !== undefined && isDynamic(words[program], true)) found.doubt()
  const [begin, end] = ownWords(values)
  if (words.slice(begin, end).some(word => word && found.values.opens(word, !searches.has(name)))) found.doubt()
  if (keepsCommands(values) && words.some(word => isDynamic(word))) found.doubt()
  if (takesCommands(values)) found.doubt()
}

/** Aliases and settings given on the line, and the subcommands that run what they are given. */
function git(rest: readonly string[], found: Findings): void {
  for (const [at, value] of rest.entries()) if (at > 0 && rest[at - 1] === '-c') found.later(() => setting(value, found))
  if (!rest.some(value => /^(?:bisect|config|filter-branch|for-each-repo|rebase|submodule)$/.test(value))) return
  for (const value of rest) found.later(() => found.guess(value))
  for (let at = 0; at < rest.length && found.goesOn; at++) {
    const form = rest.slice(at).join(' ')
    found.add(form)
    if (rest.includes('config')) found.add(`git ${form}`)
  }
}

/** `name=value`: a program, or an alias for words of git. */
function setting(text: string, found: Findings): void {
  const value = text.replace(/^[^=]*=/, '')
  found.text(value.replace(/^!/, ''))
  found.add(`git ${value}`)
}

/** A program or script that comes in a here document is looked into; one from a pipe or a descriptor is unknown. */
function input({ command, words, values }: Call, name: string, found: Findings): void {
  const inputs = inputsOf(command)
  const rest = values.slice(1)
  if (readsProgram(values)) {
    if (inputs.length === 0 || inputs.includes(undefined)) found.doubt()
    for (const text of inputs) found.program(text ?? '')
  }
  const fed = command.redirects.findLast(isInput)
  if (name === 'exec' && fed && carriedAt(values) === undefined) found.doubt() // what follows reads from there
  const enters = entersShell(values)
  if (!scriptReaders.has(name) && !enters) return
  for (const text of inputs) {
    if (text === undefined) found.doubt()
    else found.text(text, { plain: !isBash(name) })
  }
  if (enters && (fed ? fed.type === 'Redirect' && !isNothing(fed) : found.place.fed)) found.doubt()
  if (enters || inputs.length > 0) return
  if (found.place.fed && rest.includes('-')) found.doubt()
  const shell = shells.has(name)
  if (shell && rest.some(value => /^-\w*c|^--(?:version|help)$/.test(value))) return
  if (['at', 'batch'].includes(baseOf(command.name?.value ?? ''))) found.doubt()
  const at = shell && rest.some(value => /^-\w*s/.test(value)) ? -1 : rest.findIndex(value => !value.startsWith('-'))
  if (at < 0 ? shell : isDynamic(words[at + 1]) || /^\/(?:dev|proc)\//.test(rest[at]!)) found.doubt()
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

/** Whether only the running shell knows what the word says; with `begin`, how it begins. */
function isDynamic(word: Word | undefined, begin = false): boolean {
  if (word === undefined || literal(word) !== undefined) return false
  return !begin || /^"?[$`]/.test(word.text)
}
