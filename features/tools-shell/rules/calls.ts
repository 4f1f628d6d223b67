/** What a command runs by its words: itself in all forms, commands and scripts among its words, what it reads them from. */
import type { Call } from './call.ts'
import { isInput, isNothing } from './files-in.ts'
import { DYNAMIC, EXPANDING, type Findings, suspicion } from './findings.ts'
import { isProgramVariable, programOf } from './programs.ts'
import { baseOf, isBash } from './words.ts'

/** Flags before the name of a subcommand that are left out. */
const LEADING = 10
/** What a word has that is code in some language, and no name. */
const CODE = /[^\w./@-]/

/** Collects what the call runs. */
export function lookAt(call: Call, found: Findings): void {
  if (call.isDynamic(0)) found.doubt()
  begins(call, found)
  positions(call, found)
}

/** What words of a command may be commands. */
function positions(call: Call, found: Findings): void {
  const { values, program, carried, begin } = call
  const unknown = begin === undefined && (call.keepsCommands || program.unknown)
  if (unknown || program.interpreter) for (const text of call.inputs) found.later(() => found.program(text ?? ''), suspicion)
  if (begin === undefined && !unknown) return
  const runs = carried === undefined ? undefined : programOf(baseOf(values[carried]!))
  const quiet = runs && !runs.unknown && !runs.runsOthers // its words are no commands
  const look = (at: number) => {
    if (!found.goesOn) return
    if (at + 1 < values.length) found.later(() => look(at + 1))
    if (!/\s/.test(values[at]!)) begins(call.at(at), found)
    const value = /^--?[\w-]+=(.+)/s.exec(values[at]!)?.[1] // --entrypoint=rm
    if (value !== undefined) found.suspect([baseOf(value), ...values.slice(at + 1)].join(' '))
    found.later(() => found.guess(values[at]!), quiet ? suspicion : undefined)
    if (unknown && CODE.test(values[at]!)) found.program(values[at]!)
  }
  found.later(() => look(begin ?? 1), unknown || call.runsScript ? suspicion : undefined)
}

/** These words as a command. */
function begins(call: Call, found: Findings): void {
  const { words, values, program } = call
  const { name } = program
  const [first = '', ...rest] = values
  found.add([first, ...rest].join(' '))
  found.add([name, ...rest].join(' '))
  found.add([name.toLowerCase(), ...rest].join(' ')) // some file systems find it under any case
  for (let at = 0; at < Math.min(rest.length, LEADING) && (rest[at]!.startsWith('-') || rest[at - 1]?.startsWith('-')); at++)
    found.add([name, ...rest.slice(at + 1)].join(' ')) // `git -C dir push` is a `git push`
  doubts(call, found)
  if (call.isDynamic(1)) found.suspect([name, DYNAMIC, ...rest.slice(1)].join(' '))
  if (words[1] && found.values.opens(words[1], false)) found.suspect([name, EXPANDING, ...rest.slice(1)].join(' '))
  if (name === 'xargs' && call.carried === rest.length) found.suspect(`${rest.at(-1)} ${DYNAMIC}`)
  if (call.standsFor !== undefined) found.suspect(call.standsFor)
  if (program.computes) for (const word of words.slice(1)) found.computed(word)
  if (name === 'git') git(rest, found)
  for (const index of call.scripts) {
    if (call.isDynamic(index) || values[index]!.includes('{}')) found.doubt()
    else found.text(values[index]!, name === 'trap' ? {} : { plain: !isBash(name) })
  }
  if (name === 'eval' && !words.slice(1).every(word => word && found.values.printsSettings(word))) found.text(rest.join(' '))
  if (name === 'alias') for (const value of rest) found.text(value.replace(/^[^=]*=/, ''))
  for (const renamed of call.renamed) found.add(renamed)
  for (const [index, value] of rest.entries()) {
    const variable = /^(\w+)=(.*)/s.exec(value)
    if (variable && call.isDynamic(index + 1) && isProgramVariable(variable[1]!)) found.text(variable[2]!)
  }
  for (const text of call.programTexts) {
    if (CODE.test(text)) {
      found.later(() => found.program(text))
      found.later(() => found.guess(text))
    } else if (text.startsWith('/')) found.add(baseOf(text))
    else found.suspect(baseOf(text))
  }
  input(call, found)
}

/** What only the running shell knows stands where a command does, or in front of one that it could put something before. */
function doubts(call: Call, found: Findings): void {
  const { words, program, programAt } = call
  if (call.places.some(at => call.isDynamic(at))) found.doubt()
  if (programAt !== undefined && call.isDynamic(programAt, true)) found.doubt()
  if (words.slice(...call.own).some(word => word && found.values.opens(word, !program.search))) found.doubt()
  if (call.keepsCommands && words.some((_, at) => call.isDynamic(at))) found.doubt()
  if (call.takesCommands) found.doubt()
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
function input(call: Call, found: Findings): void {
  const { command, values, program, inputs, entersShell } = call
  const { name, shell } = program
  const rest = values.slice(1)
  if (call.readsProgram) {
    if (inputs.length === 0 || inputs.includes(undefined)) found.doubt()
    for (const text of inputs) found.program(text ?? '')
  }
  const fed = command.redirects.findLast(isInput)
  if (name === 'exec' && fed && call.carried === undefined) found.doubt() // what follows reads from there
  if (!program.scriptReader && !entersShell) return
  for (const text of inputs) {
    if (text === undefined) found.doubt()
    else found.text(text, { plain: !isBash(name) })
  }
  if (entersShell && (fed ? fed.type === 'Redirect' && !isNothing(fed) : found.place.fed)) found.doubt()
  if (entersShell || inputs.length > 0) return
  if (found.place.fed && rest.includes('-')) found.doubt()
  if (shell && rest.some(value => /^-\w*c|^--(?:version|help)$/.test(value))) return
  if (['at', 'batch'].includes(baseOf(command.name?.value ?? ''))) found.doubt()
  const at = shell && rest.some(value => /^-\w*s/.test(value)) ? -1 : rest.findIndex(value => !value.startsWith('-'))
  if (at < 0 ? shell : call.isDynamic(at + 1) || /^\/(?:dev|proc)\//.test(rest[at]!)) found.doubt()
}
