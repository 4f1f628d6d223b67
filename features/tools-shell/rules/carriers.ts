/** Programs that run others: which, and where in their words. What else words of programs make them do is in `flags.ts`. */
import { leading } from './flags.ts'
import { baseOf, list, shells } from './words.ts'

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
export const chosen = new Set(['bunx', 'npx', 'pnpx', 'ssh', 'uvx'])

/** Those that run a shell where no command follows, which reads its commands from the input; some only with a flag, or not with one. */
const shellStarters = new Map<string, (flags: readonly string[]) => boolean>([
  ...list('aa-exec chroot fakeroot firejail i386 linux32 linux64 nsenter pkexec setarch unshare x86_64').map(
    name => [name, () => true] as const
  ),
  ['ssh', flags => !flags.some(flag => /^-\w*[GNOQVW]/.test(flag))],
  ['sudo', flags => flags.some(flag => /^-\w*[is]|^--(?:login|shell)$/.test(flag))],
  ['doas', flags => flags.some(flag => /^-\w*s/.test(flag))]
])

/** Commands that carry each other in one line; the last one of more has no room left for its own. */
const CARRIED = 20

/** Programs and builtins that run what stands somewhere in their words: no wildcard of a rule stands for any of it. */
export const runners = new Set(
  list(`. alias at batch bind capsh compgen complete coproc crontab enable eval fc hash history mapfile parallel readarray screen script source su
    tmux trap`)
)
/** Programs that run others for what they find. */
export const searches = new Set(['fd', 'fdfind', 'find'])

/** Words after which a command stands that the program runs for what it finds. */
const executing = new Map([
  ['fd', /^(?:-\w*[xX]|--exec(?:-batch)?)$/],
  ['fdfind', /^(?:-\w*[xX]|--exec(?:-batch)?)$/],
  ['find', /^-(?:exec|ok)(?:dir)?$/],
  ['git', /^(?:foreach|run|-x|--exec)$/]
])

/** Programs whose words after one of the second kind are a command, or the text of one. */
export const launchers = new Set(list('bun bundle conda direnv docker kubectl nix nix-shell npm perf pipenv pnpm podman poetry uv yarn'))
const launching = /^(?:exec|x|run|dlx|stat|record|-c|--call|--command|--run|--)$/
/** Launchers whose `run` runs what the project names; those whose first word after a mark names a container. */
const scripted = new Set(['bun', 'npm', 'pnpm', 'yarn'])
const containers = new Set(['docker', 'kubectl', 'podman'])
/** Flags of these that take no value. */
const containerFlags =
  /=|^-[dPitq]+$|^--(?:build|detach|init|interactive|no-deps|no-healthcheck|no-TTY|privileged|publish-all|quiet|read-only|remove-orphans|rm|service-ports|stdin|tty)$/

/** Whether words after the name may be a command, or the text of one. */
export const runsOthers = (name: string): boolean =>
  carriers.has(name) || runners.has(name) || shells.has(name) || searches.has(name) || name === 'jobs'

/** Index of the first word that may begin a command that the first one runs; undefined: there is none. */
export function commandsBegin(words: readonly string[]): number | undefined {
  const name = baseOf(words[0] ?? '')
  const at = name === 'command' && !carriedAt(words) ? 0 : runsOthers(name) ? 1 : launchMark(words) + 1
  return at > 0 && at < words.length ? at : undefined
}

/** Index of the word after which words of a launcher are a command; -1: there is none. */
export function launchMark(words: readonly string[]): number {
  const name = baseOf(words[0] ?? '')
  if (!launchers.has(name)) return -1
  if (!scripted.has(name)) return words.findIndex(word => launching.test(word))
  const last = leading(words)
  return words.findIndex((word, index) => launching.test(word) && (/^(?:exec|dlx)$/.test(word) || (word !== '--' && index <= last)))
}

/** Whether what the launcher runs is a script that the project names: the words after it are its arguments. */
export function runsNamedScript(words: readonly string[]): boolean {
  return scripted.has(baseOf(words[0] ?? '')) && words[launchMark(words)] === 'run'
}

/** Index of the command that the first word runs; undefined when there is none, or no telling. */
export function carriedAt(words: readonly string[]): number | undefined {
  const name = baseOf(words[0] ?? '')
  const mark = launchMark(words)
  if (mark > 0 && containers.has(name)) return inContainer(words, mark)
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

/** The command of `docker run` and its like stands behind the name of an image or container; that of `kubectl exec` behind `--`. */
function inContainer(words: readonly string[], mark: number): number | undefined {
  const dashes = words[0]?.endsWith('kubectl') ? words.indexOf('--', mark) : -1
  let at = mark + 1
  for (let word = words[at]; word?.startsWith('-'); word = words[at]) at += containerFlags.test(word) ? 1 : 2
  const from = dashes < 0 ? at + 1 : dashes + 1
  return from < words.length ? from : undefined
}

/** Indexes of the words that are commands for certain, whatever they say. */
export function commandPlaces(words: readonly string[]): number[] {
  const name = baseOf(words[0] ?? '')
  const carried = carriedAt(words)
  if (carried !== undefined) return runsNamedScript(words) ? [] : [carried]
  const mark = executing.get(name)
  return mark ? words.flatMap((word, at) => (mark.test(word) && at + 1 < words.length ? [at + 1] : [])) : []
}

/** From where to where words stand that say where its command begins. */
export function ownWords(words: readonly string[]): readonly [number, number] {
  const name = baseOf(words[0] ?? '')
  if (searches.has(name)) return [1, words.length]
  const mark = launchMark(words)
  if (mark > 0 ? runsNamedScript(words) : !carriers.has(name)) return [0, 0]
  return [Math.max(mark, 0) + 1, carriedAt(words) ?? words.length]
}

/** Whether it runs a shell that gets its commands from the input. */
export function entersShell(words: readonly string[]): boolean {
  const name = baseOf(words[0] ?? '')
  if (carriedAt(words) !== undefined) return false
  if (containers.has(name)) return launchMark(words) > 0 && words.some(word => /^(?:-[a-hj-z]*i[a-z]*|--interactive|--stdin)$/.test(word))
  return shellStarters.get(name)?.(words.slice(1)) === true
}

/** Where commands begin that a rule has to name: at the first word, and where one carries another. */
export function commandsFrom(words: readonly string[]): number[] {
  const found = [0]
  for (let from = 0; found.length < CARRIED; ) {
    const own = words.slice(from)
    const name = baseOf(own[0] ?? '')
    const at = carriers.has(name) && !chosen.has(name) ? carriedAt(own) : undefined
    if (at === undefined) break
    from += at
    found.push(from)
  }
  return found
}
