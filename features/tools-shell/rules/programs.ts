/** Which programs run others, and where in their words. What the flags of programs do besides is in `flags.ts`. */
import { leads, riskOf, SHELLS } from './flags.ts'
import { baseOf, list } from './words.ts'

/** Programs that run the rest of their words: `name:flags that take the next word:words between flags and command`. */
const carriers = new Map(
  list(`aa-exec:np arch builtin bunx busybox bwrap caffeinate catchsegv ccache choom:np chroot::1 chrt:DPT:1 command dbus-run-session distcc doas:Cu
    dumb-init entr env:CSu exec:a fakeroot firejail flock:Ew:1 gosu::1 i386 ionice:cn ld-linux-aarch64.so.1 ld-linux-x86-64.so.2 ld.so linux32
    linux64 ltrace:aeolnpsux nice:n nohup npx:cp nsenter:tGS numactl:CNPilmpw pkexec pnpx:p prlimit:p proxychains proxychains4 rlwrap runuser:cgGu setarch::1
    setpriv setsid ssh:BbcDEeFIiJLlmOopQRSWw:1 start-stop-daemon stdbuf:eio strace:abeEIOopPsSuUX sudo:CDghpRrTtUu systemd-run:EHMpu taskset::1 time:fo timeout:ks:1 tini
    torify torsocks toybox unbuffer unshare:RwSG uvx:p valgrind watch:n x86_64 xargs:adEILnPs xvfb-run:efnps`).map(entry => {
    const [name = '', valued = '', operands = '0'] = entry.split(':')
    return [name, { valued, operands: Number(operands) }]
  })
)

/** Those that are called for nothing else than to run what follows: a wildcard after their name stands for it. */
const chosen = new Set(['bunx', 'npx', 'pnpx', 'ssh', 'uvx'])

/** Commands that carry each other in one line; the last one of more has no room left for its own. */
const CARRIED = 20

/** Programs and builtins that run what stands somewhere in their words: no wildcard of a rule stands for any of it. */
const runners = new Set(
  list(`. alias at batch bind capsh compgen complete coproc crontab enable eval fc hash history mapfile parallel readarray screen script source su
    tmux trap`)
)
const shells = new Set(list(SHELLS))
/** Programs that run others only with certain words; `riskOf` knows these. */
const sometimes = new Set(['fd', 'fdfind', 'find', 'jobs'])

/** Builtins that assign to variables or compute with their words (`a[$(...)]` runs a command there). */
const assigning = new Set(list('declare export getopts let local printf read readonly set shopt test typeset unset wait ['))
/** Those of them that are harmless without one of their flags. */
const flagged = new Set(['printf', 'test', '[', 'wait'])

/** Programs whose words after one of the second kind are a command, or the text of one. */
const launchers = new Set(list('bun bundle conda direnv docker kubectl nix nix-shell npm perf pipenv pnpm podman poetry uv yarn'))
const launching = /^(?:exec|x|run|dlx|stat|record|-c|--call|--command|--run|--)$/
/** Launchers whose `run` runs what the project names; those whose first word after a mark names a container. */
const scripted = new Set(['bun', 'npm', 'pnpm', 'yarn'])
const containers = new Set(['docker', 'kubectl', 'podman'])

/** Interpreters of other languages, and programs whose texts may begin commands: what stands in their words is looked through for commands. */
const interpreters =
  /^(?:deno|ed|emacs|ex|expect|g?make|gdb|less|lua(?:jit)?|more|node(?:js)?|n?vim?|osascript|perl|php|pypy|python|ruby|sqlite|tclsh|view)[\d.]*$/

const isAwk = /^[gmn]?awk$/

/** Programs that give another name to a program. */
const namers = new Set(['cp', 'install', 'link', 'ln', 'mv'])

/** Programs that run none of their words. Those that nothing is known of may run any. */
const inert = new Set(
  list(`: [[ adb apk apt apt-get aws base64 basename biome brew bzip2 cal cat cd chgrp chmod chown cksum clang clear cmp code column comm cut date dd
    df diff dig dirname dnf du echo egrep eslint export expr false fgrep file flake8 fold free g++ gcc gh glab go grep groups gunzip gzip head
    help host hostname id info jest join jq kill killall ln ls lsof md5sum mkdir mktemp mocha mvn mypy netstat nl nproc open openssl pacman paste
    patch pgrep pip pip3 pkill popd prettier printenv ps pushd pwd pytest readlink realpath rev rg rm rmdir ruff rustc seq sha1sum sha256sum sleep
    stat strings stty sync tac tail tee terraform top touch tr true truncate tsc tty type umask uname unlink unzip uptime vitest wc wget
    whereis which who whoami winget xxd xz yes zcat zypper`)
)

/** Index of the first word that may begin a command that the first one runs; undefined: there is none. */
export function commandsBegin(words: readonly string[]): number | undefined {
  const name = baseOf(words[0] ?? '')
  const at = name === 'command' && !carriedAt(words) ? 0 : runsOthers(name) ? 1 : launchMark(words) + 1
  return at > 0 && at < words.length ? at : undefined
}

/** Index of the word after which words of a launcher are a command; -1: there is none. */
function launchMark(words: readonly string[]): number {
  const name = baseOf(words[0] ?? '')
  if (!launchers.has(name)) return -1
  return words.findIndex(
    (word, index) => launching.test(word) && (!scripted.has(name) || /^(?:exec|dlx)$/.test(word) || (word !== '--' && leads(index, words)))
  )
}

/** Whether words of the program that nothing is said of here may begin a command. */
export function isUnknown(name: string): boolean {
  if (inert.has(name) || runsOthers(name)) return false
  return !assigning.has(name) && !launchers.has(name) && !interpreters.test(name) && !namers.has(name) && !riskOf(name)
}

/** Words that hold the text of a program that may run commands: all of an interpreter, of others those after or in flags that run something. */
export function programTexts(words: readonly string[]): string[] {
  const name = baseOf(words[0] ?? '')
  const risk = riskOf(name)
  if (interpreters.test(name)) return words.slice(1)
  return words.filter(
    (word, index) => index > 0 && (risk?.(word, index, words) || (index > 1 && risk?.(words[index - 1]!, index - 1, words)))
  )
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
  if (!interpreters.test(name) || /^g?make$|vi|^emacs$|^less$|^more$/.test(name)) return false
  return name === 'ed' || name === 'ex' || rest.every(word => word.startsWith('-') && !/^(?:-[hvV]|--(?:help|test|version))$/.test(word))
}

/** Whether its commands may come from its input, in the language of the shell. */
export function readsScript(name: string): boolean {
  return shells.has(name) || ['at', 'batch', 'crontab', 'su', 'source', '.'].includes(name)
}

/** Whether it runs what comes from its input, of which a rule says nothing. */
export function readsInput(words: readonly string[]): boolean {
  const name = baseOf(words[0] ?? '')
  return (
    readsProgram(words) ||
    (readsScript(name) && words.every((word, at) => at === 0 || /^(?:[-+](?!-(?:help|version)$)|\/(?:dev|proc)\/)/.test(word)))
  )
}

/** Names of programs that get another name. */
export function namedAnew(words: readonly string[]): string[] {
  if (!namers.has(baseOf(words[0] ?? ''))) return []
  return words.flatMap(word => /^\/(?:usr\/)?(?:local\/)?s?bin\/([^/]+)$/.exec(word)?.[1] ?? [])
}

/** Whether what comes from its input may be a command: the words of `xargs` and `parallel` end where one begins. */
export function takesCommands(words: readonly string[]): boolean {
  const name = baseOf(words[0] ?? '')
  if (name === 'find') {
    const commands = words.flatMap((word, index) => (/^-(?:exec|ok)(?:dir)?$/.test(word) ? [words.slice(index + 1)] : []))
    return commands.some(own => commandsFrom(own).some(at => own[at] === '{}'))
  }
  if (name !== 'xargs' && name !== 'parallel') return false
  const flags = words.slice(0, carriedAt(words) ?? words.length)
  const command = words[flags.length]
  if (command !== undefined && (command.includes('{}') || flags.some(flag => flag.replace(/^-[^-]*[IJ]/, '') === command))) return true
  const at = words.findIndex((word, index) => index > 0 && runsOthers(baseOf(word)))
  if (at < 0) return name === 'parallel' && words.length === 1
  const own = words.slice(at)
  const replaces = words.slice(0, at).some(word => /^(?:-[^-]*[IiJ]|--replace)/.test(word))
  if (isShell(baseOf(own[0]!))) return replaces || takesScript(baseOf(own[0]!), own).length === 0
  return replaces || carriedAt(own) === undefined
}

export const isShell = (name: string): boolean => shells.has(name)
/** Whether words after the name may be a command, or the text of one. */
export const runsOthers = (name: string): boolean => carriers.has(name) || runners.has(name) || shells.has(name) || sometimes.has(name)
export const computes = (name: string): boolean => assigning.has(name) || runners.has(name)

/** Whether the words after the first are rather arguments of a script than commands. */
export function runsScript(words: readonly string[]): boolean {
  const name = baseOf(words[0] ?? '')
  if (shells.has(name)) return takesScript(name, words).length === 0
  return scripted.has(name) && words[launchMark(words)] === 'run'
}

/** Indexes of the words that are the text of a script: after `-c` of a shell, the handler of `trap`. */
export function takesScript(name: string, words: readonly string[]): number[] {
  if (name === 'trap') return [words[1] === '--' ? 2 : 1].filter(at => at < words.length)
  if (!shells.has(name) && !chosen.has(name) && !['capsh', 'flock', 'runuser', 'script', 'su'].includes(name)) return []
  const at = words.findIndex((word, index) => index > 0 && /^-\w*[cC]$|^--(?:call|command|init-command)$/.test(word)) + 1
  return at > 0 && at < words.length ? [at] : []
}

/** Index of the command that the first word runs; undefined when there is none, or no telling. */
export function carriedAt(words: readonly string[]): number | undefined {
  const name = baseOf(words[0] ?? '')
  const mark = containers.has(name) ? -1 : launchMark(words)
  const carrier = carriers.get(name) ?? (mark > 0 ? { valued: 'p', operands: 0 } : undefined)
  if (!carrier || (name === 'command' && /^-\w*[vV]/.test(words[1] ?? ''))) return undefined // asks where a program is
  let at = Math.max(mark, 0) + 1
  for (let word = words[at]; word !== undefined; word = words[at]) {
    if (/^-./.test(word)) at += word.length === 2 && carrier.valued.includes(word[1]!) ? 2 : 1
    else if (/^[A-Za-z_]\w*=/.test(word)) at++
    else break
  }
  at += carrier.operands
  return at < words.length ? at : undefined
}

/** Indexes of the words that a rule must spell out: no wildcard stands for them. `words[0]` is the program. */
export function mustSpell(words: readonly string[]): ReadonlySet<number> {
  const found = new Set<number>()
  for (const from of commandsFrom(words)) {
    const own = words.slice(from)
    const name = baseOf(own[0]!)
    const whole = alwaysWhole(name, own)
    const risk = riskOf(name)
    const mark = launchMark(own)
    if (from > 0) found.add(from)
    if (mark > 0 && !runsScript(own)) found.add(from + mark)
    for (const [index, word] of own.entries()) if (whole || (index > 0 && risk?.(word, index, own))) found.add(from + index)
    if (whole) break
  }
  return found
}

/** Whether a file pattern among the words could come out as a flag that matters. */
export function hasRiskyFlags(words: readonly string[]): boolean {
  return commandsFrom(words).some(from => isRisky(baseOf(words[from]!)))
}

const isRisky = (name: string): boolean => riskOf(name) !== undefined || flagged.has(name)

/** Where commands begin: at the first word, and where one carries another. */
function commandsFrom(words: readonly string[]): number[] {
  const found = [0]
  for (let at = chosenAt(words); at !== undefined && found.length < CARRIED; ) {
    const from: number = found.at(-1)! + at
    found.push(from)
    at = chosenAt(words.slice(from))
  }
  return found
}

/** As `carriedAt`, where the rule has to name the command. */
function chosenAt(words: readonly string[]): number | undefined {
  return carriers.has(baseOf(words[0]!)) && !chosen.has(baseOf(words[0]!)) ? carriedAt(words) : undefined
}

/** Whether nothing but the whole command may be allowed. */
function alwaysWhole(name: string, words: readonly string[]): boolean {
  if (name === 'printf') return words.some((word, index) => index === 1 && word.startsWith('-v'))
  if (name === 'test' || name === '[') return words.some(word => word === '-v' || word === '-R')
  if (name === 'wait') return words.some(word => word.startsWith('-') && word.includes('p'))
  if (name === 'source' || name === '.') return false
  if (name === 'xargs') {
    // what comes from its input may be a flag of the command
    const carried = baseOf(words[carriedAt(words) ?? words.length] ?? 'echo')
    return isRisky(carried) || runsOthers(carried)
  }
  return assigning.has(name) || runners.has(name)
}
