/** What a command runs by its words: itself in all forms, commands and scripts among its words, what it reads them from. */
import { compilePathGlob } from '../../tools/index.ts'
import type { Call } from './call.ts'
import { DYNAMIC, EXPANDING, type Findings, runsWithin, suspicion } from './findings.ts'
import { isProgramVariable, programKey, programOf } from './programs.ts'
import { isInput, isNothing } from './redirects.ts'
import { leading } from './risk.ts'
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
  const { values, program, carried, mark } = call
  const from = program.name === 'command' && carried === undefined ? 0 : program.runsOthers ? 1 : mark + 1
  const begin = from > 0 && from < values.length ? from : undefined
  const unknown = begin === undefined && (program.unknown || keepsCommands(call))
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
  const rest = values.slice(1)
  if (/^\/(?:dev|proc)\/(?:.*\/)?(?:fd\/|exe$)/.test(values[0]!)) found.doubt() // what is open there
  found.add(values.join(' '))
  found.add([name, ...rest].join(' '))
  found.add([name.toLowerCase(), ...rest].join(' ')) // some file systems find it under any case
  for (let at = 0; at < Math.min(rest.length, LEADING) && (rest[at]!.startsWith('-') || rest[at - 1]?.startsWith('-')); at++)
    found.add([name, ...rest.slice(at + 1)].join(' ')) // `git -C dir push` is a `git push`
  if (keepsCommands(call) && words.some((_, at) => call.isDynamic(at))) found.doubt()
  if (program.carrier || program.launcher || program.search || program.executing) carries(call, found)
  if (call.isDynamic(1)) found.suspect([name, DYNAMIC, ...rest.slice(1)].join(' '))
  if (words[1] && found.values.opens(words[1], false)) found.suspect([name, EXPANDING, ...rest.slice(1)].join(' '))
  if (program.computes) for (const word of words.slice(1)) found.computed(word)
  for (const value of values) if (/^\{\w+\[/.test(value) && runsWithin.test(value)) found.text(value) // {a[i]}>x
  if (name === 'git') git(rest, found)
  const script = program.computes || program.scriptTaker ? call.script : undefined
  if (script !== undefined) {
    if (call.isDynamic(script) || values[script]!.includes('{}')) found.doubt()
    else found.text(values[script]!, name === 'trap' ? {} : { plain: !isBash(name) })
  }
  if ((name === 'parallel' || name === 'xargs') && takesCommands(call)) found.doubt()
  if (name === 'xargs' && call.carried === rest.length) found.suspect(`${rest.at(-1)} ${DYNAMIC}`)
  if (name === 'eval' && !words.slice(1).every(word => word && found.values.printsSettings(word))) found.text(rest.join(' '))
  if (name === 'alias') for (const value of rest) found.text(value.replace(/^[^=]*=/, ''))
  if (program.renaming) {
    for (const value of values) {
      const path = /^\/(?:usr\/)?(?:local\/)?s?bin\/([^/]+)$|[$`]\(?(?:which|command -v|type -[pP]) +([\w.+-]+)/.exec(value)
      if (path) found.add(path[1] ?? path[2] ?? '')
    }
    const programs = (path: string) => path.startsWith('/') && ['bin', 'sbin', 'usr'].some(compilePathGlob(path.split('/')[1]!))
    if (values.some((path, at) => at > 0 && call.isDynamic(at) && programs(path))) found.doubt()
  }
  if (program.substitute) {
    const { mark, verbs } = program.substitute
    const at = mark === '' ? 1 : values.indexOf(mark) + 1
    const verb = at > 0 ? verbs.get(values[at] ?? '') : undefined
    if (verb !== undefined) found.suspect([verb, ...values.slice(at + 1)].join(' '))
  }
  for (const [index, value] of rest.entries()) {
    const variable = /^(\w+)=(.*)/s.exec(value)
    if (variable && call.isDynamic(index + 1) && isProgramVariable(variable[1]!)) found.text(variable[2]!)
  }
  if (program.interpreter || program.awk || program.risk) texts(call, found)
  if (program.scriptReader || program.starts || program.container) input(call, found)
}

/** What carries another command: only the running shell knows which, or what stands in front of it. */
function carries(call: Call, found: Findings): void {
  const { words, values, program, carried, mark } = call
  const places = carried === undefined || call.runsNamedScript ? [] : [carried]
  if (carried === undefined)
    for (const [at, word] of values.entries()) if (program.executing?.test(word) && at + 1 < values.length) places.push(at + 1)
  for (const [index, at] of places.entries()) {
    if (call.isDynamic(at)) found.doubt()
    const isFound = program.name === 'find' && call.at(at, places[index + 1]).chain.some(each => each.call.values[0] === '{}')
    if (isFound) found.doubt()
  }
  const hasOwn = mark > 0 ? !call.runsNamedScript : program.carrier
  const own = program.search ? words.slice(1) : hasOwn ? words.slice(Math.max(mark, 0) + 1, carried) : []
  if (own.some(word => word && found.values.opens(word, !program.search))) found.doubt()
  if (program.name === 'exec' && carried === undefined && call.command.redirects.some(isInput)) found.doubt() // what follows reads from there
}

/** Whether what comes from the input may be a command: the words of `xargs` and `parallel` end where one begins. */
function takesCommands(call: Call): boolean {
  const { values, carried } = call
  const flags = values.slice(0, carried)
  const command = values[flags.length]
  if (command !== undefined && (command.includes('{}') || flags.some(flag => flag.replace(/^-[^-]*[IJ]/, '') === command))) return true
  const at = values.findIndex((word, index) => index > 0 && programOf(baseOf(word)).runsOthers)
  if (at < 0) return call.program.name === 'parallel' && values.length === 1
  const own = call.at(at)
  const replaces = values.slice(0, at).some(word => /^(?:-[^-]*[IiJ]|--replace)/.test(word))
  return replaces || (own.program.shell ? own.runsScript : own.carried === undefined)
}

/** Whether it keeps something that a program will run, as far as the name of the setting tells. */
function keepsCommands({ values, program: { settings } }: Call): boolean {
  const last = settings ? leading(values) : 0
  const at = values.findIndex((word, index) => index > 0 && index <= last && settings?.test(word))
  if (at < 0) return false
  const key = values.slice(at + 1).find(word => !/^(?:-.*|add|get|import|list|set|unset)$/.test(word))
  return key !== undefined && (/^["']?[$`]/.test(key) || programKey.test(`${values[at]} ${key}`))
}

/** The text of a program in another language: on the line, or from its input. */
function texts(call: Call, found: Findings): void {
  const { values, inputs } = call
  const { interpreter, awk, partlyKnown, risk } = call.program
  const risks = interpreter || partlyKnown ? undefined : risk?.(values)
  for (const [index, text] of values.entries()) {
    if (index === 0 || !(interpreter || risks?.(text, index) || (index > 1 && risks?.(values[index - 1]!, index - 1)))) continue
    if (CODE.test(text)) {
      found.later(() => found.program(text))
      found.later(() => found.guess(text))
    } else if (text.startsWith('/')) found.add(baseOf(text))
    else found.suspect(baseOf(text))
  }
  const fromFile = awk && values.some(word => /^(?:-f|--file)/.test(word))
  const at = interpreter
    ? values.findIndex(word => /^-\w*[ceEpr]$|^--(?:eval|print)$/.test(word)) + 1
    : awk && !fromFile
      ? values.findIndex((word, index) => index > 0 && !word.startsWith('-') && !/^-[Fv]$/.test(values[index - 1]!))
      : 0
  if (at > 0 && call.isDynamic(at, true)) found.doubt()
  if (at > 0 && awk) pipes(values[at]!, found)
  if (/^g?sed$/.test(call.program.name) && values.some((text, index) => risks?.(text, index) && runsItsInput(text))) found.doubt()
  if (!call.readsProgram) return
  if (inputs.length === 0 || inputs.includes(undefined)) found.doubt()
  for (const text of inputs) found.program(text ?? '')
}

/** Longer programs are taken for some that do what is asked about. */
const PROGRAM_CHARS = 2000

/** `sed` runs what it reads: a command `e`, or a replacement with that flag. */
function runsItsInput(text: string): boolean {
  if (text.length > PROGRAM_CHARS) return true
  return /(?:^|[\s;{}!\d$/,])e\s*(?:$|[;}\n])|s(\W)(?:\\.|(?!\1).)*\1(?:\\.|(?!\1).)*\1[gpiImM\d]*e/s.test(text)
}

/** Commands at the ends of pipes in `awk`: a text is one, and a shell runs what it gets there; what only the program knows may be any. */
function pipes(text: string, found: Findings): void {
  if (!text.includes('|')) return
  if (text.length > PROGRAM_CHARS) {
    found.doubt()
    return
  }
  for (const [, quoted = ''] of text.matchAll(/\|&?\s*"((?:\\.|[^"\\])*)"/g))
    found.later(() => found.text(quoted, { plain: true }), { fed: true, counts: true })
  const bare = text
    .replace(/"(?:\\.|[^"\\])*"/gs, '""')
    .replace(/(^|[\s(,;{!~&|])\/(?:\\.|[^/\\\n])*\//g, '$1""')
    .replaceAll('||', ' ')
    .replace(/""\s*\|&?\s*getline/g, '')
  if (/\|&?\s*(?!\s|&|"").|\|&?\s*""\s*[\w$("]/s.test(bare)) found.doubt()
}

/** Aliases and settings given on the line, and the subcommands that run what they are given. */
function git(rest: readonly string[], found: Findings): void {
  for (const [at, value] of rest.entries()) {
    if (at > 0 && rest[at - 1] === '-c') found.later(() => setting(value, found))
    const [, helper] = /(?:^|=)ext::(.*)/s.exec(value) ?? []
    if (helper !== undefined) found.later(() => found.guess(helper.replaceAll('% ', ' ')))
  }
  if (!rest.some(value => /^(?:bisect|config|filter-branch|for-each-repo|rebase|remote-ext|submodule)$/.test(value))) return
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

/** A script that comes in a here document is looked into; one from a pipe or a descriptor is unknown. */
function input(call: Call, found: Findings): void {
  const { command, values, program, inputs, carried } = call
  const { name, shell } = program
  const rest = values.slice(1)
  const entersShell =
    carried === undefined &&
    (program.container
      ? call.mark > 0 && rest.some(word => /^(?:-[a-hj-z]*i[a-z]*|--interactive|--stdin)$/.test(word))
      : program.starts?.(rest))
  if (!program.scriptReader && !entersShell) return
  const isMade = (at: number) => call.isDynamic(at + 1) || /^\/(?:dev|proc)\//.test(rest[at] ?? '')
  if (shell && rest.some((_, at) => /^--(?:init-file|rcfile)$/.test(rest[at - 1] ?? '') && isMade(at))) found.doubt()
  for (const text of inputs) {
    if (text === undefined) found.doubt()
    else found.text(text, { plain: !isBash(name) })
  }
  const fed = command.redirects.findLast(isInput)
  if (entersShell && (fed ? fed.type === 'Redirect' && !isNothing(fed) : found.place.fed)) found.doubt()
  if (entersShell || inputs.length > 0) return
  // what a descriptor leads to may be set anywhere
  const isFed = found.place.fed || (fed?.type === 'Redirect' && fed.operator === '<&' && !isNothing(fed))
  if (isFed && rest.includes('-')) found.doubt()
  if (shell && rest.some(value => /^-\w*c|^--(?:version|help)$/.test(value))) return
  if (['at', 'batch'].includes(baseOf(command.name?.value ?? ''))) found.doubt()
  const at = shell && rest.some(value => /^-\w*s/.test(value)) ? -1 : rest.findIndex(value => !value.startsWith('-'))
  if (at < 0 ? shell : isMade(at)) found.doubt()
}
