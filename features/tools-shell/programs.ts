/** What is known of programs: which ones run others, and which of their words run or write something else than the name says. */
import { baseOf } from './words.ts'

/** How the words of a program begin that runs the rest of them. */
interface Carrier {
  /** Letters of the flags that take the next word. */
  readonly valued?: string
  /** Words between the flags and the carried command. */
  readonly operands?: number
}

const carriers: Readonly<Record<string, Carrier>> = {
  'aa-exec': { valued: 'np' },
  arch: {},
  builtin: {},
  busybox: {},
  bwrap: {},
  caffeinate: {},
  catchsegv: {},
  ccache: {},
  choom: { valued: 'np' },
  chroot: { operands: 1 },
  chrt: { valued: 'DPT', operands: 1 },
  command: {},
  'dbus-run-session': {},
  distcc: {},
  doas: { valued: 'Cu' },
  'dumb-init': {},
  entr: {},
  env: { valued: 'CSu' },
  exec: { valued: 'a' },
  fakeroot: {},
  firejail: {},
  flock: { valued: 'Ew', operands: 1 },
  gosu: { operands: 1 },
  i386: {},
  ionice: { valued: 'cn' },
  'ld-linux-aarch64.so.1': {},
  'ld-linux-x86-64.so.2': {},
  'ld.so': {},
  linux32: {},
  linux64: {},
  ltrace: { valued: 'aeolnpsux' },
  nice: { valued: 'n' },
  nohup: {},
  nsenter: { valued: 'tGS' },
  numactl: { valued: 'CNPilmpw' },
  pkexec: {},
  prlimit: { valued: 'p' },
  proxychains: {},
  proxychains4: {},
  rlwrap: {},
  runuser: { valued: 'cgGu' },
  setarch: { operands: 1 },
  setpriv: {},
  setsid: {},
  'start-stop-daemon': {},
  stdbuf: { valued: 'eio' },
  strace: { valued: 'abeEIOopPsSuUX' },
  sudo: { valued: 'CDghpRrTtUu' },
  'systemd-run': { valued: 'EHMpu' },
  taskset: { operands: 1 },
  time: { valued: 'fo' },
  timeout: { valued: 'ks', operands: 1 },
  tini: {},
  torify: {},
  torsocks: {},
  toybox: {},
  unbuffer: {},
  unshare: { valued: 'RwSG' },
  valgrind: {},
  watch: { valued: 'n' },
  x86_64: {},
  'xvfb-run': { valued: 'efnps' }
}

/** Commands that carry each other in one line; the last one of more has no room left for its own. */
const CARRIED = 20

/** Programs and builtins that run what stands somewhere in their words: no wildcard of a rule stands for any of it. */
const runners = new Set(
  '. alias at batch bind capsh compgen complete coproc crontab enable eval fc hash history mapfile parallel readarray script source su trap xargs'.split(
    ' '
  )
)
const shells = new Set('ash bash csh dash fish ksh mksh rbash sh tcsh zsh'.split(' '))
/** Programs that run others only with certain words; `risky` knows these. */
const sometimes = new Set(['bunx', 'fd', 'fdfind', 'find', 'jobs', 'npx', 'pnpx', 'ssh', 'uvx'])

/** Builtins that assign to variables or compute with their words (`a[$(...)]` runs a command there). */
const assigning = new Set('declare export getopts let local printf read readonly set shopt test typeset unset wait ['.split(' '))

/** Programs whose words after one of the second kind are a command, or the text of one. */
const launchers = new Set(
  'bun bundle cargo conda direnv docker kubectl nix-shell npm perf pipenv pnpm podman poetry screen tmux uv yarn'.split(' ')
)
const launching = /^(?:exec|x|run|dlx|stat|record|new(?:-.*)?|split-window|-c|-d?m|--call|--command|--run|--)$/

/** Interpreters of other languages, and programs whose texts may begin commands: what stands in their words is looked through for commands. */
const interpreters = /^(?:deno|ed|emacs|ex|expect|g?make|gdb|lua|node(?:js)?|n?vim?|osascript|perl|php|python|ruby|tclsh|view)[\d.]*$/

/** Programs that give another name to a program. */
const namers = new Set(['cp', 'install', 'link', 'ln', 'mv'])

/** Index of the first word that may begin a command in `launcher run ... <command>`; undefined: there is none. */
export function launchedAt(words: readonly string[]): number | undefined {
  const at = launchers.has(baseOf(words[0] ?? '')) ? words.findIndex(word => launching.test(word)) : -1
  return at < 0 || at + 1 >= words.length ? undefined : at + 1
}

/** Words that hold the text of a program that may run commands: all of an interpreter, of others those after or in flags that run something. */
export function programTexts(words: readonly string[]): string[] {
  const name = baseOf(words[0] ?? '')
  const risk = name === 'git' ? undefined : riskOf(name)
  if (interpreters.test(name)) return words.slice(1)
  return words.filter(
    (word, index) => index > 0 && (risk?.(word, index, words) || (index > 1 && risk?.(words[index - 1]!, index - 1, words)))
  )
}

/** Whether its program may come from its input. */
export function readsProgram(words: readonly string[]): boolean {
  const name = baseOf(words[0] ?? '')
  return (
    interpreters.test(name) &&
    (words.length === 1 ? !/^g?make$|vi|^emacs$/.test(name) : words.some(word => /^(?:-|\/dev\/(?:stdin|fd\/.*))$/.test(word)))
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
  const at = words.findIndex((word, index) => index > 0 && runsOthers(baseOf(word)))
  if (at < 0) return name === 'parallel' && words.length === 1
  const own = words.slice(at)
  const replaces = words.slice(0, at).some(word => /^(?:-[^-]*[IiJ]|--replace)/.test(word))
  if (isShell(baseOf(own[0]!))) return replaces || takesScript(baseOf(own[0]!), own).length === 0
  return replaces || carriedAt(own) === undefined
}

export const isShell = (name: string): boolean => shells.has(name)
/** Whether words after the name may be a command, or the text of one. */
export const runsOthers = (name: string): boolean =>
  Object.hasOwn(carriers, name) || runners.has(name) || shells.has(name) || sometimes.has(name)
export const computes = (name: string): boolean => assigning.has(name) || runners.has(name)

/** Indexes of the words that are the text of a script: after `-c` of a shell, the handler of `trap`. */
export function takesScript(name: string, words: readonly string[]): number[] {
  if (name === 'trap') return words.length > 2 && !words[1]!.startsWith('-') ? [1] : []
  if (!shells.has(name) && !['capsh', 'flock', 'runuser', 'script', 'su'].includes(name)) return []
  const at = words.findIndex((word, index) => index > 0 && /^-\w*c$/.test(word)) + 1
  return at > 0 && at < words.length ? [at] : []
}

/** Index of the command that the first word runs; undefined when there is none, or no telling. */
export function carriedAt(words: readonly string[]): number | undefined {
  const name = baseOf(words[0] ?? '')
  const carrier = Object.hasOwn(carriers, name) ? carriers[name] : undefined
  if (!carrier) return undefined
  let at = 1
  for (let word = words[at]; word !== undefined; word = words[at]) {
    if (word === '--') {
      at++
      break
    }
    if (/^-./.test(word)) at += word.length === 2 && carrier.valued?.includes(word[1]!) ? 2 : 1
    else if (/^[A-Za-z_]\w*=/.test(word)) at++
    else break
  }
  at += carrier.operands ?? 0
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
    if (from > 0) found.add(from)
    for (const [index, word] of own.entries()) if (whole || (index > 0 && risk?.(word, index, own))) found.add(from + index)
    if (whole) break
  }
  return found
}

/** Whether a file pattern among the words could come out as a flag that matters. */
export function hasRiskyFlags(words: readonly string[]): boolean {
  return commandsFrom(words).some(from => riskOf(baseOf(words[from]!)) !== undefined || flagged.has(baseOf(words[from]!)))
}

/** Where commands begin: at the first word, and where one carries another. */
function commandsFrom(words: readonly string[]): number[] {
  const found = [0]
  for (let at = carriedAt(words); at !== undefined && found.length < CARRIED; ) {
    const from: number = found.at(-1)! + at
    found.push(from)
    at = carriedAt(words.slice(from))
  }
  return found
}

function riskOf(name: string): Risk | undefined {
  return Object.hasOwn(risky, name) ? risky[name] : undefined
}

/** Builtins that are harmless without one of their flags. */
const flagged = new Set(['printf', 'test', '[', 'wait'])

/** Whether nothing but the whole command may be allowed. */
function alwaysWhole(name: string, words: readonly string[]): boolean {
  if (name === 'printf') return words.some((word, index) => index === 1 && word.startsWith('-v'))
  if (name === 'test' || name === '[') return words.some(word => word === '-v' || word === '-R')
  if (name === 'wait') return words.some(word => word.startsWith('-') && word.includes('p'))
  if (name === 'source' || name === '.') return /^\/(?:dev|proc)\//.test(words[1] ?? '')
  return assigning.has(name) || runners.has(name)
}

type Risk = (word: string, index: number, words: readonly string[]) => boolean
const flags =
  (pattern: RegExp): Risk =>
  word =>
    pattern.test(word)

/** Long options may be shortened, short ones put together: better one too many than one missed. */
const risky: Readonly<Record<string, Risk>> = {
  awk: word => /system|getline|[|>@]/.test(word) || /^(?:-[dfiopDElv]|--[a-z])/.test(word),
  curl: flags(/^(?:-[^-]*[cDJKoOTE]|--(?:alt|conf|coo|cert|dump|eng|etag-s|hsts|lib|out|rem|stderr|trace|upload))|%output/),
  env: flags(/^(?:-[^-]*S|--s)/),
  fd: flags(/^(?:-[^-]*[xX]|--ex)/),
  find: flags(/^-(?:exec|execdir|ok|okdir|delete|fprint|fprint0|fprintf|fls|files0-from)$/),
  git: (word, _index, words) =>
    /^(?:-[cCOx]|-[^-]*O|--(?:conf|exec|ext|git-d|op|ou|rec|send|sep|smtp|te|to|up|work-t)|config$|daemon$|difftool$|filter-branch$|foreach$|instaweb$|mergetool$)/.test(
      word
    ) ||
    /^[\w-]+::/.test(word) ||
    (word === 'run' && words.includes('bisect')) ||
    (/^-u/.test(word) && words.includes('clone')) ||
    (/^-o/.test(word) && words.some(other => other === 'archive' || other === 'format-patch')),
  jobs: flags(/^-[^-]*x/),
  man: flags(/^(?:-[^-]*[CHP]|--(?:pag|html|conf))/),
  rg: flags(/^--(?:pre|host)/),
  rsync: flags(/^(?:-[^-]*e|--(?:rsh|rsync|daemon|log|write|partial-dir|temp))/),
  sed: (word, index, words) => /^(?:-[^-]*[if]|--(?:i|f))/.test(word) || !isHarmlessSed(word, index, words),
  shuf: flags(/^(?:-[^-]*o|--o)/),
  sort: flags(/^(?:-[^-]*[oT]|--(?:o|c|te|f))/),
  split: flags(/^--f/),
  ssh: flags(/^-[^-]*[oEFSw]/),
  tar: (word, index) => /^(?:-[^-]*[FI]|--(?:use|to-c|ch|rsh|rmt|info|new|in))/.test(word) || (index === 1 && /^[a-zA-Z]*[FI]/.test(word)),
  tree: flags(/^-[^-]*o/),
  uniq: (word, index, words) => !word.startsWith('-') && words.slice(1, index).some(other => !other.startsWith('-')),
  yq: flags(/^(?:-[^-]*[is]|--(?:in|sp))/),
  zip: flags(/^(?:-[^-]*T|--u)/)
}
const aliases: Readonly<Record<string, string>> = {
  fdfind: 'fd',
  gawk: 'awk',
  mawk: 'awk',
  nawk: 'awk',
  gsed: 'sed',
  scp: 'ssh',
  sftp: 'ssh'
}
for (const [name, known] of Object.entries(aliases)) (risky as Record<string, Risk>)[name] = risky[known]!

/** Printing, deleting and replacing; `w` writes files, `e` runs commands, and what is not understood may do either. */
const sedText = (mark: string) => `(?:[^${mark}\\\\\\n]|\\\\.)*${mark}`
const sedReplacements = ['/', '|', '#', ','].map(mark => `s\\${mark}${sedText(`\\${mark}`).repeat(2)}[gpiI\\d]*`)
const sedCommand = `[\\s\\d,$!~+]*(?:/${sedText('/')}I?[ \\t]*)?(?:[pdqDPgGhHnNx=]|${sedReplacements.join('|')})[ \\t]*(?:[;\\n]|$)`
const harmlessSed = new RegExp(`^(?:${sedCommand})+$`)

function isHarmlessSed(word: string, index: number, words: readonly string[]): boolean {
  if (word.startsWith('-')) return !/^(?:-[^-]*e.|--e)/.test(word)
  const marked = words[index - 1] === '-e' || /^-[^-]*e$/.test(words[index - 1] ?? '')
  const first = words.findIndex((other, at) => at > 0 && !other.startsWith('-')) === index
  const script = marked || (first && !words.some(other => /^-[^-]*e/.test(other)))
  return !script || harmlessSed.test(word)
}
