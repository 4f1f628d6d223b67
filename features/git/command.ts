/**
 * Runs git on a repository that nobody vouched for. What its own configuration would have git start (hooks, monitors, filters, drivers for diffs and
 * merges, transports) does not run; what the user configured for all repositories stays.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { lstat, realpath } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { AppError, errorSpec, shellWord, withStreams } from '../../kernel/index.ts'
import { lookBehind, runBehind, smallText } from '../file-search/index.ts'

export const GitUnavailable = errorSpec('git_unavailable', 40908, 'git is not available here')
export const isUnavailable = (error: unknown): boolean => AppError.is(error) && error.code === GitUnavailable.code

/** Larger configurations are left to git. */
const PLAIN_BYTES = 256 * 1024

/** Longer runs are ended. */
const GIT_MS = 30_000
/** Of what it says when it fails so much is looked at. */
const SAID_CHARS = 4096

export interface Repository {
  /** Directory in which git runs, links resolved. */
  readonly cwd: string
  /** Root of the work tree. */
  readonly top: string
  /** Environment and settings of every call. */
  readonly env: NodeJS.ProcessEnv
}

/** Programs that repositories may name, by the keys of their settings. */
const programs = /^(?:filter\..*\.(?:clean|smudge|process|required)|diff\..*\.(?:command|textconv)|merge\..*\.driver)$/is

const settings: readonly (readonly [key: string, value: string])[] = [
  ['core.fsmonitor', 'false'],
  ['core.hooksPath', '/dev/null'],
  ['core.sshCommand', 'false'],
  ['core.pager', 'cat'],
  ['core.quotePath', 'false'],
  ['credential.helper', ''],
  ['diff.external', ''],
  ['protocol.allow', 'never'],
  ['safe.bareRepository', 'explicit'],
  ['status.submoduleSummary', 'false']
]

/** Finds the repository around a directory. Throws GitUnavailable (40908) without a repository, or without git. */
export async function repositoryAt(cwd: string, signal: AbortSignal): Promise<Repository> {
  const real = await realpath(cwd)
  const top = await topOf(real)
  const env = environment(top, settings)
  if (await isPlain(join(top, '.git'))) return { cwd: real, top, env }
  // The settings with the place of each: what the repository says about programs is overruled, by the user's own words if there are any.
  const listed = await collect({ cwd: real, top, env }, ['config', '--list', '--show-scope', '--includes', '-z'], signal, 4 * 1024 * 1024)
  const overruled = new Map<string, string>()
  const trusted = new Map<string, string>()
  const parts = listed.text.split('\0')
  for (let at = 0; at + 1 < parts.length; at += 2) {
    const entry = parts[at + 1]!
    const end = entry.indexOf('\n')
    const [key, value] = end < 0 ? [entry, 'true'] : [entry.slice(0, end), entry.slice(end + 1)]
    if (!programs.test(key)) continue
    if (parts[at] === 'global' || parts[at] === 'system') trusted.set(key, value)
    else overruled.set(key, key.endsWith('.required') ? 'false' : '')
  }
  if (listed.cut) throw new AppError(GitUnavailable, { message: 'the configuration of the repository is too large' })
  const more = [...overruled].map(([key, fallback]) => [key, trusted.get(key) ?? fallback] as const)
  return more.length === 0 ? { cwd: real, top, env } : { cwd: real, top, env: environment(top, [...settings, ...more]) }
}

/** Whether the settings are all in one place, and name neither programs nor other files: then git need not be asked for them. */
async function isPlain(dir: string): Promise<boolean> {
  try {
    const file = join(dir, 'config')
    if (!(await lstat(file)).isFile()) return false
    const [own, inOtherPlace, ofWorkTree] = await Promise.all([
      smallText(file, PLAIN_BYTES),
      lstat(join(dir, 'commondir')).catch(() => undefined), // mostly there is none
      lstat(join(dir, 'config.worktree')).catch(() => undefined) // the same
    ])
    return own !== undefined && !inOtherPlace && !ofWorkTree && !/\[\s*(?:filter|diff|merge|include)/i.test(own)
  } catch {
    return false // a file, as in linked work trees, or nothing that can be read: git knows
  }
}

/** The nearest directory above that has a `.git`. Throws GitUnavailable (40908) without one. */
export async function topOf(from: string): Promise<string> {
  for (let dir = from; ; dir = dirname(dir)) {
    if (await lstat(join(dir, '.git')).catch(() => undefined)) return dir // mostly there is none
    if (dirname(dir) === dir) throw new AppError(GitUnavailable, { message: 'not a git repository' })
  }
}

/** Nothing that steers git comes from outside; the work tree is where the repository lies, whatever it says. */
function environment(top: string, pairs: readonly (readonly [string, string])[]): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = {
    LC_ALL: 'C',
    GIT_WORK_TREE: top,
    GIT_CEILING_DIRECTORIES: dirname(top),
    GIT_OPTIONAL_LOCKS: '0',
    GIT_TERMINAL_PROMPT: '0',
    GIT_LITERAL_PATHSPECS: '1',
    GIT_ALLOW_PROTOCOL: 'none',
    GIT_NO_LAZY_FETCH: '1',
    GIT_CONFIG_COUNT: String(pairs.length)
  }
  for (const name of ['PATH', 'HOME', 'XDG_CONFIG_HOME', 'SystemRoot', 'LD_LIBRARY_PATH']) {
    const value = process.env[name]
    if (value !== undefined) env[name] = value
  }
  for (const [at, [key, value]] of pairs.entries()) {
    env[`GIT_CONFIG_KEY_${at}`] = key
    env[`GIT_CONFIG_VALUE_${at}`] = value
  }
  return env
}

function whyNot(said: string, top: string): string {
  return said.includes('safe.directory')
    ? `git works in repositories of other users when it is told so: git config --global --add safe.directory ${shellWord(top)}`
    : 'git does not take this as a repository'
}

export interface Output {
  readonly text: string
  /** There was more than `bytes`. */
  readonly cut: boolean
}

const notStarted = (cause: unknown) => new AppError(GitUnavailable, { message: 'git cannot be started', cause })

/** Not every refusal of the system comes as an event. */
function started(spawned: () => ChildProcess): ChildProcess {
  try {
    return withStreams(spawned())
  } catch (error) {
    throw notStarted(error)
  }
}

/** What git prints, at most `bytes` of it. `codes`: exit codes that are no failure; `input`: what git reads. Throws GitUnavailable (40908) for every other one. */
export function collect(
  repository: Repository,
  args: readonly string[],
  signal: AbortSignal,
  bytes: number,
  codes = [0],
  input?: string
): Promise<Output> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    const { cwd, env, top } = repository
    const child = started(() =>
      spawn('git', ['--no-pager', ...args], {
        cwd,
        env,
        stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
        detached: true,
        windowsHide: true
      })
    )
    runBehind(child)
    child.stdin?.on('error', () => undefined) // it has ended, and says why
    child.stdin?.end(input)
    const chunks: Buffer[] = []
    let size = 0
    let refusal: string | undefined
    const stop = () => {
      try {
        process.kill(-child.pid!, 'SIGKILL')
      } catch {
        child.kill('SIGKILL') // no group of its own, or gone
      }
    }
    const refuse = (message: string) => {
      refusal ??= message
      stop()
    }
    const timer = setTimeout(() => refuse(`git took longer than ${GIT_MS} ms`), GIT_MS)
    const look = { root: top, above: [], reader: 'git' } as const
    const endLook = lookBehind(look, () => refuse('a file that git reads for its rules is too large'))
    signal.addEventListener('abort', stop, { once: true })
    child.stdout!.on('data', (chunk: Buffer) => {
      if (size > bytes) return
      size += chunk.length
      chunks.push(chunk)
      if (size > bytes) stop()
    })
    let said = ''
    child.stderr!.on('data', (chunk: Buffer) => {
      if (said.length < SAID_CHARS) said += chunk.toString('latin1')
    })
    const over = (settle: () => void) => {
      clearTimeout(timer)
      endLook()
      signal.removeEventListener('abort', stop)
      settle()
    }
    child.once('error', cause => over(() => reject(notStarted(cause))))
    child.once('close', code =>
      over(() => {
        const cut = size > bytes
        if (signal.aborted) reject(signal.reason)
        else if (refusal !== undefined) reject(new AppError(GitUnavailable, { message: refusal }))
        else if (!cut && !codes.includes(code ?? -1)) reject(new AppError(GitUnavailable, { message: whyNot(said, top) }))
        else resolve({ text: Buffer.concat(chunks).subarray(0, bytes).toString('utf8'), cut })
      })
    )
  })
}
