/** What is known of programs by their names. What a command makes of its words is in `call.ts`, which words change it in `flags.ts`. */
import { riskOf } from './flags.ts'
import { list, SHELLS } from './words.ts'

/** Kinds of programs and builtins, by name. */
const kinds = {
  /** They assign to variables or compute with their words (`a[$(...)]` runs a command there). */
  assigning: 'declare export getopts let local printf read readonly set shopt test typeset unset wait [',
  /** Carriers that are called for nothing else than to run what follows: a wildcard after their name stands for it. */
  chosen: 'bunx npx pnpx ssh uvx',
  /** Launchers whose first word after a mark names a container. */
  container: 'docker kubectl podman',
  /** Harmless without one of their flags. */
  flagged: 'printf test [ wait',
  /** They run none of their words. Those that nothing is known of may run any. */
  inert: `: [[ adb apk apt apt-get aws base64 basename biome brew bzip2 cal cat cd chgrp chmod chown cksum clang clear cmp code column comm cut
    date dd df diff dig dirname dnf du echo egrep eslint export expr false fgrep file flake8 fold free g++ gcc gh glab go grep groups gunzip
    gzip head help host hostname id info jest join jq kill killall ln ls lsof md5sum mkdir mktemp mocha mvn mypy netstat nl nproc open openssl
    pacman paste patch pgrep pip pip3 pkill popd prettier printenv ps pushd pwd pytest readlink realpath rev rg rm rmdir ruff rustc seq sha1sum
    sha256sum sleep stat strings stty sync tac tail tee terraform top touch tr true truncate tsc tty type umask uname unlink unzip uptime vitest
    wc wget whereis which who whoami winget xxd xz yes zcat zypper`,
  /** Their words after a mark (`launching`) are a command, or the text of one. */
  launcher: 'bun bundle conda direnv docker kubectl nix nix-shell npm perf pipenv pnpm podman poetry uv yarn',
  /** Some of their words are known to run others; the rest may, too. */
  partlyKnown: 'cmake ip just mariadb mysql psql',
  /** They give another name to a program. */
  renaming: 'cp install link ln mv',
  /** They run what stands somewhere in their words: no wildcard of a rule stands for any of it. */
  runner: `. alias at batch bind capsh compgen complete coproc crontab enable eval fc hash history mapfile parallel readarray screen script source su
    tmux trap`,
  /** Launchers whose `run` runs what the project names. */
  scripted: 'bun npm pnpm yarn',
  /** Their commands may come from their input, in the language of the shell. */
  scriptReader: `${SHELLS} at batch crontab su source .`,
  /** They take the text of a script after `-c`. */
  scriptTaker: `${SHELLS} bunx npx pnpx ssh uvx capsh flock runuser script su`,
  /** They run others for what they find. */
  search: 'fd fdfind find',
  shell: SHELLS
}
const sets = Object.entries(kinds).map(([kind, names]) => [kind as keyof typeof kinds, new Set(list(names))] as const)

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

/** Programs that run a shell where no command follows, which reads its commands from the input; some only with a flag, or not with one. */
const shellStarters = new Map<string, (flags: readonly string[]) => boolean>([
  ...list('aa-exec chroot fakeroot firejail i386 linux32 linux64 nsenter pkexec setarch unshare x86_64').map(
    name => [name, () => true] as const
  ),
  ['ssh', flags => !flags.some(flag => /^-\w*[GNOQVW]/.test(flag))],
  ['sudo', flags => flags.some(flag => /^-\w*[is]|^--(?:login|shell)$/.test(flag))],
  ['doas', flags => flags.some(flag => /^-\w*s/.test(flag))]
])

/** Words after which a command stands that the program runs for what it finds. */
const executing = new Map([
  ['fd', /^(?:-\w*[xX]|--exec(?:-batch)?)$/],
  ['fdfind', /^(?:-\w*[xX]|--exec(?:-batch)?)$/],
  ['find', /^-(?:exec|ok)(?:dir)?$/],
  ['git', /^(?:foreach|run|-x|--exec)$/]
])

export const launching = /^(?:exec?|x|run|dlx|stat|record|-c|--call|--command|--run|--)$/
/** Flags of programs with containers that take no value. */
export const containerFlags =
  /=|^-[dPitq]+$|^--(?:build|detach|init|interactive|no-deps|no-healthcheck|no-TTY|privileged|publish-all|quiet|read-only|remove-orphans|rm|service-ports|stdin|tty)$/

/** Interpreters of other languages, and programs whose texts may begin commands: what stands in their words is looked through for commands. */
const interpreters =
  /^(?:deno|ed|emacs|ex|expect|g?make|gdb|less|lua(?:jit)?|more|node(?:js)?|n?vim?|osascript|perl|php|pypy|python|ruby|sftp|sqlite|tclsh|view)[\d.]*$/

/** Programs with subcommands that do what another program does: `program mark:subcommand=that ...`; the mark stands before it. */
const substitutes = new Map(
  [
    `cmake -E:copy=cp copy_directory=cp copy_directory_if_different=cp copy_if_different=cp create_hardlink=ln create_symlink=ln
      make_directory=mkdir remove=rm remove_directory=rm rename=mv`,
    'gio :copy=cp move=mv remove=rm trash=rm',
    'hadoop fs:-cp=cp -mkdir=mkdir -mv=mv -rm=rm',
    'hdfs dfs:-cp=cp -mkdir=mkdir -mv=mv -rm=rm'
  ].map(entry => {
    const [head = '', verbs = ''] = entry.split(':')
    const [name = '', mark = ''] = head.split(' ')
    return [name, { mark, verbs: new Map(list(verbs).map(verb => verb.split('=') as [string, string])) }] as const
  })
)

/** Subcommands that keep settings and aliases, or run their words, by program. */
const settingsOf = new Map<string, RegExp>([
  ['aws', /^configure$/],
  ['cargo', /^watch$/],
  ...list('gh glab').map(name => [name, /^(?:alias|codespace|config|cs|ext(?:ension)?)$/] as const),
  ...list('git hg jj').map(name => [name, /^config$/] as const),
  ['go', /^env$/],
  ['kubectl', /^config$/],
  ...list('npm pnpm yarn').map(name => [name, /^(?:c|config|explore|pkg|set)$/] as const)
])
/** Names of settings whose values are run, or lead to what is run. */
export const programKey =
  /alias|askpass|browser|\bcc\b|clean|cmd|codespace|command|credential|cxx|driver|editor|exec|explore|ext|external|filter|fsmonitor|helper|hook|include|insteadof|pack|pager|process|program|script|shell|smudge|ssh|template|tool|update|vcs|viewer|watch/i

/** Whether programs run what the environment variable says. */
export function isProgramVariable(name: string): boolean {
  return /(?:^|_)(?:ASKPASS|BROWSER|COMMAND|DIFF|EDITOR|PAGER|RSH|VISUAL)$|^(?:GIT_CONFIG_|GIT_SSH|LESS(?:CLOSE|OPEN)$|SHELL$)|script_shell$/.test(
    name
  )
}

export type Program = ReturnType<typeof factsOf>

/** Of the names that came lately; a hostile line has many, and long ones. */
const kept = new Map<string, Program>()
const [KEPT, KEPT_CHARS] = [500, 64]

/** The facts about the program of this name (without a directory). */
export function programOf(name: string): Program {
  const known = kept.get(name)
  if (known) return known
  const program = factsOf(name)
  if (kept.size >= KEPT) kept.clear()
  if (name.length <= KEPT_CHARS) kept.set(name, program)
  return program
}

function factsOf(name: string) {
  const is = Object.fromEntries(sets.map(([kind, names]) => [kind, names.has(name)])) as Record<keyof typeof kinds, boolean>
  const carrier = carriers.get(name)
  const interpreter = interpreters.test(name)
  const risk = riskOf(name)
  /** Its words may be commands, or the text of one. */
  const runsOthers = carrier !== undefined || is.runner || is.shell || is.search || name === 'jobs'
  const isKnown = is.inert || runsOthers || is.assigning || is.launcher || interpreter || is.renaming || (risk && !is.partlyKnown)
  return {
    ...is,
    name,
    carrier,
    interpreter,
    awk: /^[gmn]?awk$/.test(name),
    /** Which of its words make it do something else than its name says. */
    risk,
    /** File patterns among its words could come out as a flag that matters. */
    risky: risk !== undefined || is.flagged,
    starts: shellStarters.get(name),
    executing: executing.get(name),
    substitute: substitutes.get(name),
    settings: settingsOf.get(name),
    computes: is.assigning || is.runner,
    runsOthers,
    /** Nothing is said of it here: any of its words may begin a command. */
    unknown: !isKnown
  }
}
