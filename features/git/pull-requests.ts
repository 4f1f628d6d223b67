/** Branch and pull request of the directories in which sessions work, kept for a minute. */
import { execFile } from 'node:child_process'
import { realpath } from 'node:fs/promises'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { waitAtMost } from '../../kernel/index.ts'
import { smallText } from '../file-search/index.ts'

/** Whom the program asks, unless a repository is elsewhere. */
export const pullRequests = new URL('https://api.github.com')

export interface GitFacts {
  /** Null where none is checked out, and outside of repositories. */
  readonly branch: string | null
  readonly pull_request: { readonly number: number; readonly url: string; readonly state: 'open' | 'merged' | 'closed' | 'draft' } | null
}

export interface GitPorts {
  now(): number
  /** The program that knows pull requests (`gh`); empty: none is asked. */
  readonly program: string
  /** Rejects when nobody outside may be asked. */
  readonly allowed: () => Promise<void>
  /** How long it may take, ms. */
  readonly programMs: number
  /** How long a list waits for all directories together, ms; what comes later is shown by the next list. */
  readonly waitMs: number
}

const cacheMs = 60_000
const maxDirectories = 2000
/** Programs that run at a time. */
const maxPrograms = 4
const outputBytes = 64 * 1024
const headBytes = 4096

interface Entry {
  readonly at: number
  facts: GitFacts
  readonly done: Promise<void>
}

const none: GitFacts = { branch: null, pull_request: null }

export class GitCache {
  readonly #ports: GitPorts
  /** By directory, the oldest first. */
  readonly #known = new Map<string, Entry>()
  #running = 0
  #queue: (() => void)[] = []

  constructor(ports: GitPorts) {
    this.#ports = ports
  }

  /** Facts of each directory; each is looked at once a minute, however often it is named. */
  async of(directories: Iterable<string>): Promise<ReadonlyMap<string, GitFacts>> {
    const entries = new Map<string, Entry>()
    for (const dir of directories) if (!entries.has(dir)) entries.set(dir, this.#entry(dir))
    await waitAtMost(Promise.all([...entries.values()].map(({ done }) => done)), this.#ports.waitMs)
    return new Map([...entries].map(([dir, { facts }]) => [dir, facts]))
  }

  #entry(dir: string): Entry {
    const now = this.#ports.now()
    const known = this.#known.get(dir)
    if (known && now - known.at < cacheMs) return known
    this.#known.delete(dir)
    const entry: Entry = { at: now, facts: known?.facts ?? none, done: Promise.resolve().then(() => this.#look(dir, entry)) }
    this.#known.set(dir, entry)
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= maxDirectories) break
      this.#known.delete(oldest)
    }
    return entry
  }

  async #look(dir: string, entry: Entry): Promise<void> {
    const branch = await branchOf(dir).catch(() => null) // gone, or out of reach: as if there were no repository
    entry.facts = { branch, pull_request: branch === entry.facts.branch ? entry.facts.pull_request : null }
    if (branch !== null && this.#ports.program !== '') entry.facts = { branch, pull_request: await this.#pullRequest(dir) }
  }

  async #pullRequest(dir: string): Promise<GitFacts['pull_request']> {
    if (this.#running >= maxPrograms) await new Promise<void>(go => this.#queue.push(go))
    this.#running++
    try {
      await this.#ports.allowed()
      return pullRequestIn(await this.#ask(dir))
    } catch {
      return null // offline
    } finally {
      this.#running--
      this.#queue.shift()?.()
    }
  }

  /** What the program prints; empty when it is not there or fails. Git runs nothing that the repository configures. */
  #ask(dir: string): Promise<string> {
    const { program, programMs: timeout } = this.#ports
    const options = { cwd: dir, env: environment(), timeout, killSignal: 'SIGKILL' as const, maxBuffer: outputBytes, windowsHide: true }
    return new Promise(done => {
      const child = execFile(program, ['pr', 'view', '--json', 'number,state,url,isDraft'], options, (error, text) =>
        done(error ? '' : text)
      )
      child.stdin?.end()
    })
  }
}

const kept = ['PATH', 'HOME', 'SystemRoot', 'APPDATA', 'XDG_CONFIG_HOME', 'GH_CONFIG_DIR', 'GH_HOST', 'GH_TOKEN', 'GITHUB_TOKEN']
const off = {
  'core.fsmonitor': 'false',
  'core.hooksPath': '/dev/null',
  'diff.external': '',
  'core.pager': 'cat',
  'protocol.allow': 'never'
}

function environment(): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = {
    LC_ALL: 'C',
    GIT_TERMINAL_PROMPT: '0',
    GIT_OPTIONAL_LOCKS: '0',
    GH_PROMPT_DISABLED: '1',
    GH_NO_UPDATE_NOTIFIER: '1'
  }
  for (const name of kept) if (process.env[name] !== undefined) env[name] = process.env[name]
  const settings = Object.entries(off)
  env.GIT_CONFIG_COUNT = String(settings.length)
  settings.forEach(([key, value], at) => {
    env[`GIT_CONFIG_KEY_${at}`] = key
    env[`GIT_CONFIG_VALUE_${at}`] = value
  })
  return env
}

function pullRequestIn(text: string): GitFacts['pull_request'] {
  try {
    const { number, state, url, isDraft } = JSON.parse(text) as Record<'number' | 'state' | 'url' | 'isDraft', unknown>
    const shown = String(state).toLowerCase()
    if (!Number.isSafeInteger(number) || typeof url !== 'string' || !/^https?:\/\//.test(url)) return null
    const open = isDraft === true ? 'draft' : 'open'
    return { number: number as number, url, state: shown === 'merged' || shown === 'closed' ? shown : open }
  } catch {
    return null // no pull request, or no program
  }
}

/** The branch that is checked out, read from `HEAD`: no program runs. Null without a repository, and where no branch is checked out. */
export async function branchOf(cwd: string): Promise<string | null> {
  for (let dir = await realpath(cwd); ; dir = dirname(dir)) {
    const head = await headOf(join(dir, '.git'), dir)
    if (head !== undefined) return /^ref: refs\/heads\/(.+)$/.exec(head.trim())?.[1] ?? null
    if (dirname(dir) === dir) return null
  }
}

/** `.git` is a directory, or in a linked work tree a file that names one. */
async function headOf(git: string, dir: string): Promise<string | undefined> {
  const direct = await smallText(join(git, 'HEAD'), headBytes)
  if (direct !== undefined) return direct
  const link = /^gitdir: (.+)$/m.exec((await smallText(git, headBytes)) ?? '')?.[1]?.trim()
  if (link === undefined) return undefined
  return await smallText(join(isAbsolute(link) ? link : resolve(dir, link), 'HEAD'), headBytes)
}
