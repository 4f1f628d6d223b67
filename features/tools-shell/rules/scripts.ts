/** Programs that run texts: shells, interpreters of other languages, builtins that compute; and where these texts come from. */
import { carriedAt, chosen, commandPlaces, commandsFrom, launchers, runners, runsNamedScript, runsOthers } from './carriers.ts'
import { riskOf } from './flags.ts'
import { namers } from './settings.ts'
import { baseOf, list, shells } from './words.ts'

/** Builtins that assign to variables or compute with their words (`a[$(...)]` runs a command there). */
const assigning = new Set(list('declare export getopts let local printf read readonly set shopt test typeset unset wait ['))
/** Those, and the ones that run what stands somewhere in their words. */
export const computing: ReadonlySet<string> = new Set([...assigning, ...runners])
/** Those of them that are harmless without one of their flags. */
export const flagged = new Set(['printf', 'test', '[', 'wait'])

/** Interpreters of other languages, and programs whose texts may begin commands: what stands in their words is looked through for commands. */
export const interpreters =
  /^(?:deno|ed|emacs|ex|expect|g?make|gdb|less|lua(?:jit)?|more|node(?:js)?|n?vim?|osascript|perl|php|pypy|python|ruby|sftp|sqlite|tclsh|view)[\d.]*$/

const isAwk = /^[gmn]?awk$/

/** Programs that run none of their words. Those that nothing is known of may run any. */
const inert = new Set(
  list(`: [[ adb apk apt apt-get aws base64 basename biome brew bzip2 cal cat cd chgrp chmod chown cksum clang clear cmp code column comm cut date dd
    df diff dig dirname dnf du echo egrep eslint export expr false fgrep file flake8 fold free g++ gcc gh glab go grep groups gunzip gzip head
    help host hostname id info jest join jq kill killall ln ls lsof md5sum mkdir mktemp mocha mvn mypy netstat nl nproc open openssl pacman paste
    patch pgrep pip pip3 pkill popd prettier printenv ps pushd pwd pytest readlink realpath rev rg rm rmdir ruff rustc seq sha1sum sha256sum sleep
    stat strings stty sync tac tail tee terraform top touch tr true truncate tsc tty type umask uname unlink unzip uptime vitest wc wget
    whereis which who whoami winget xxd xz yes zcat zypper`)
)

/** Programs of which some words are known to run others; the rest may, too. */
const partlyKnown = new Set(list('cmake ip just mariadb mysql psql'))

/** Whether words of the program that nothing is said of here may begin a command. */
export function isUnknown(name: string): boolean {
  if (inert.has(name) || runsOthers(name)) return false
  return (
    !assigning.has(name) &&
    !launchers.has(name) &&
    !interpreters.test(name) &&
    !namers.has(name) &&
    (partlyKnown.has(name) || !riskOf(name))
  )
}

/** Words that hold the text of a program that may run commands: all of an interpreter, of others those after or in flags that run something. */
export function programTexts(words: readonly string[]): string[] {
  const name = baseOf(words[0] ?? '')
  if (interpreters.test(name)) return words.slice(1)
  const risks = partlyKnown.has(name) ? undefined : riskOf(name)?.(words)
  if (!risks) return []
  return words.filter((word, index) => index > 0 && (risks(word, index) || (index > 1 && risks(words[index - 1]!, index - 1))))
}

/** Index of the word that is the text of a program in another language. */
export function programAt(words: readonly string[]): number | undefined {
  const name = baseOf(words[0] ?? '')
  const at = interpreters.test(name)
    ? words.findIndex(word => /^-\w*[ceEpr]$|^--(?:eval|print)$/.test(word)) + 1
    : isAwk.test(name) && !words.some(word => /^(?:-f|--file)/.test(word))
      ? words.findIndex((word, index) => index > 0 && !word.startsWith('-') && !/^-[Fv]$/.test(words[index - 1]!))
      : 0
  return at > 0 && at < words.length ? at : undefined
}

/** Whether its program may come from its input. */
export function readsProgram(words: readonly string[]): boolean {
  const name = baseOf(words[0] ?? '')
  const rest = words.slice(1)
  if (rest.some(word => /^(?:-|\/dev\/(?:stdin|fd\/.*))$/.test(word)))
    return interpreters.test(name) || (isAwk.test(name) && rest.includes('-f'))
  if (!interpreters.test(name) || /^g?make$|vi|^emacs$|^less$|^more$|^sftp$/.test(name)) return false
  return name === 'ed' || name === 'ex' || rest.every(word => word.startsWith('-') && !/^(?:-[hvV]|--(?:help|test|version))$/.test(word))
}

/** Programs whose commands may come from their input, in the language of the shell. */
export const scriptReaders: ReadonlySet<string> = new Set([...shells, 'at', 'batch', 'crontab', 'su', 'source', '.'])

/** Whether it runs what comes from its input, of which a rule says nothing. */
export function readsInput(words: readonly string[]): boolean {
  const name = baseOf(words[0] ?? '')
  return (
    readsProgram(words) ||
    (scriptReaders.has(name) && words.every((word, at) => at === 0 || /^(?:[-+](?!-(?:help|version)$)|\/(?:dev|proc)\/)/.test(word)))
  )
}

/** Whether the words after the first are rather arguments of a script than commands. */
export function runsScript(words: readonly string[]): boolean {
  const name = baseOf(words[0] ?? '')
  return shells.has(name) ? takesScript(name, words).length === 0 : runsNamedScript(words)
}

/** Indexes of the words that are the text of a script: after `-c` of a shell, the handler of `trap`. */
export function takesScript(name: string, words: readonly string[]): number[] {
  if (name === 'trap') return [words[1] === '--' ? 2 : 1].filter(at => at < words.length)
  if (!shells.has(name) && !chosen.has(name) && !['capsh', 'flock', 'runuser', 'script', 'su'].includes(name)) return []
  const at = words.findIndex((word, index) => index > 0 && /^-\w*[cC]$|^--(?:call|command|init-command)$/.test(word)) + 1
  return at > 0 && at < words.length ? [at] : []
}

/** Whether what comes from its input may be a command: the words of `xargs` and `parallel` end where one begins. */
export function takesCommands(words: readonly string[]): boolean {
  const name = baseOf(words[0] ?? '')
  if (name === 'find') return replacesCommand(words)
  if (name !== 'xargs' && name !== 'parallel') return false
  const flags = words.slice(0, carriedAt(words) ?? words.length)
  const command = words[flags.length]
  if (command !== undefined && (command.includes('{}') || flags.some(flag => flag.replace(/^-[^-]*[IJ]/, '') === command))) return true
  const at = words.findIndex((word, index) => index > 0 && runsOthers(baseOf(word)))
  if (at < 0) return name === 'parallel' && words.length === 1
  const own = words.slice(at)
  const replaces = words.slice(0, at).some(word => /^(?:-[^-]*[IiJ]|--replace)/.test(word))
  if (shells.has(baseOf(own[0]!))) return replaces || runsScript(own)
  return replaces || carriedAt(own) === undefined
}

/** Whether what `find` finds stands in the place of a command. */
function replacesCommand(words: readonly string[]): boolean {
  const places = commandPlaces(words)
  return places.some((from, index) => {
    const own = words.slice(from, places[index + 1] ?? words.length)
    return commandsFrom(own).some(at => own[at] === '{}')
  })
}
