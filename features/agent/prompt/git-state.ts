/** Branch and changes of a git work tree, for the prompt. Nothing that the repository itself configures is run. */
import { execFile } from 'node:child_process'
import { dirname, join } from 'node:path'
import { headOf, lookAt } from '../../../kernel/index.ts'
import { asData } from '../../history/index.ts'

/** A large work tree on a slow disk must not hold a turn up. */
const TIME_MS = 2_000
const LINES = 20
const LINE_CHARS = 200

/** `git status --short --branch` of the work tree that holds the directory, at most 20 changes; empty where there is none, or no git. */
export async function gitState(cwd: string): Promise<string> {
  if (!(await isInWorkTree(cwd))) return ''
  const filters = await git(cwd, ['config', '--null', '--name-only', '--get-regexp', '^filter\\.'])
  const names = filters.split('\0').filter(name => name !== '')
  if (names.some(name => /[=\n]/.test(name))) return '' // could not be switched off below
  const off = names.flatMap(name => ['-c', /\.required$/i.test(name) ? `${name}=false` : `${name}=`])
  const text = await git(cwd, [...off, 'status', '--short', '--branch', '--no-renames', '--ignore-submodules=all'])
  const [branch, ...changes] = text.split('\n').filter(line => line !== '')
  if (branch === undefined) return ''
  const shown = changes.slice(0, LINES).map(line => headOf(line, LINE_CHARS))
  const rest = changes.length - shown.length
  return asData([headOf(branch, LINE_CHARS), ...shown, ...(rest > 0 ? [`... and ${rest} more`] : [])].join('\n'))
}

async function isInWorkTree(cwd: string): Promise<boolean> {
  for (let dir = cwd; ; dir = dirname(dir)) {
    if (await lookAt(join(dir, '.git'))) return true
    if (dirname(dir) === dir) return false
  }
}

/** No monitor, no hook (locks are not taken, so nothing is written), no fetching of what is missing. */
const safe = ['-c', 'core.fsmonitor=false', '-c', 'core.hooksPath=/dev/null', '-c', 'protocol.allow=never', '--no-optional-locks']

/** What it prints; empty when it fails. It gets no variable that a command could read a key from. */
function git(cwd: string, args: readonly string[]): Promise<string> {
  const { PATH, HOME, SystemRoot } = process.env
  const env = { PATH, HOME, SystemRoot, LC_ALL: 'C', GIT_TERMINAL_PROMPT: '0', GIT_NO_LAZY_FETCH: '1' }
  const options = { cwd, env, timeout: TIME_MS, killSignal: 'SIGKILL' as const, maxBuffer: 16 * 1024 * 1024, windowsHide: true }
  return new Promise(resolve => {
    const child = execFile('git', [...safe, ...args], options, (error, stdout) => resolve(error ? '' : stdout))
    child.stdin?.end()
  })
}
