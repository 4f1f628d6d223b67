/** What git says about the files of a workspace. */
import { access, constants } from 'node:fs/promises'
import { join, posix, relative } from 'node:path'
import { isMissing, yieldToLoop } from '../../kernel/index.ts'
import type { FileStatus } from '../fs/index.ts'
import { collect, isUnavailable, type Repository, repositoryAt } from './command.ts'
import { taken } from './names.ts'
import { submodulesOf } from './submodules.ts'

export interface Status {
  /** Empty when no branch is checked out. */
  readonly branch: string
  readonly ahead: number
  readonly behind: number
  /** By path, relative to the workspace; an untracked directory ends with a slash. */
  readonly entries: ReadonlyMap<string, FileStatus>
  /** Paths that git tracks, relative to the root of the repository. */
  readonly tracked: readonly string[]
  /** There is no commit yet. */
  readonly unborn: boolean
  /** Those of its submodules, by their paths. */
  readonly submodules: ReadonlyMap<string, Status>
}

/** Output beyond this is left out. */
const STATUS_BYTES = 32 * 1024 * 1024
/** Changed files whose lines are counted by name; with more, or longer names than a program takes, all are counted. */
const NAMED = 500

/** Submodules that are looked into for one status. */
const SUBMODULES = 200

/**
 * What `git status` says. `ignored`: ignored files, too. Into submodules git would look with what they configure themselves; they are asked one by
 * one, at most as many as are `left`.
 */
export async function statusOf(
  repository: Repository,
  ignored: boolean,
  signal: AbortSignal,
  left = { count: SUBMODULES }
): Promise<Status> {
  const status = await ownStatus(repository, ignored, signal)
  const entries = new Map(status.entries)
  const submodules = new Map<string, Status>()
  for (const { path, ignore } of await submodulesOf(repository, signal)) {
    if (left.count-- <= 0) break
    const place = join(repository.top, path)
    const inside = await repositoryAt(place, signal)
      .then(found => statusOf(found, ignored, signal, left))
      .catch((error: unknown) => {
        if (!isUnavailable(error)) throw error
        return undefined // damaged, as git says it
      })
    if (!inside) continue
    const name = relative(repository.cwd, place)
    submodules.set(name, inside)
    if (counts(inside, ignore) && !entries.has(name)) entries.set(name, 'modified')
  }
  return { ...status, entries, submodules }
}

/** Whether a submodule with these files is a changed one. */
function counts({ entries }: Status, ignore: string): boolean {
  if (ignore === 'all' || ignore === 'dirty') return false
  for (const status of entries.values()) if (status !== 'ignored' && (status !== 'untracked' || ignore !== 'untracked')) return true
  return false
}

type OwnStatus = Omit<Status, 'submodules'>

async function ownStatus(repository: Repository, ignored: boolean, signal: AbortSignal): Promise<OwnStatus> {
  const args = ['status', '--porcelain=v2', '--branch', '-z', '--untracked-files=normal', '--ignore-submodules=dirty', '--find-renames']
  const { text } = await collect(repository, [...args, ...(ignored ? ['--ignored'] : []), '--', '.'], signal, STATUS_BYTES)
  return await parse(text, relative(repository.top, repository.cwd))
}

async function parse(text: string, below: string): Promise<OwnStatus> {
  const prefix = below === '' ? '' : `${below}/`
  const entries = new Map<string, FileStatus>()
  const tracked: string[] = []
  const facts = { branch: '', ahead: 0, behind: 0, unborn: false }
  const note = (path: string, status: FileStatus) => {
    // Ignored or untracked and the whole workspace with it: its root.
    if (path.startsWith(prefix)) entries.set(path.slice(prefix.length) || './', status)
    else if (path.endsWith('/') && prefix.startsWith(path)) entries.set('./', status)
  }
  const fields = fieldsOf(text)
  let seen = 0
  for (const line of fields) {
    if (++seen % 5000 === 0) await yieldToLoop()
    const kind = line[0]
    if (kind === '#') branchLine(line, facts)
    else if (kind === '?') {
      const path = line.slice(2)
      note(path, entries.has(path.slice(prefix.length)) ? 'modified' : 'untracked') // staged as deleted, and there again
    } else if (kind === '!') note(line.slice(2), 'ignored')
    else {
      const path = line
        .split(' ')
        .slice(kind === '1' ? 8 : kind === '2' ? 9 : 10)
        .join(' ')
      tracked.push(path)
      note(path, kind === 'u' ? 'conflicted' : changeOf(line.slice(2, 4)))
      if (kind === '2') tracked.push(String(fields.next().value)) // the old name
    }
  }
  return { ...facts, entries, tracked }
}

/** The entries at these paths (normalised) and below them. */
export async function below(paths: readonly string[], entries: Status['entries']): Promise<[string, FileStatus][]> {
  const wanted = new Set(paths)
  const found: [string, FileStatus][] = []
  let seen = 0
  for (const entry of entries) {
    if (++seen % 5000 === 0) await yieldToLoop()
    let path = entry[0].replace(/\/$/, '')
    while (path !== '.' && !wanted.has(path)) path = posix.dirname(path)
    if (wanted.has(path)) found.push(entry)
  }
  return found
}

/** Each of the fields that a NUL ends, one after the other: 32 MB at once would hold up the loop. */
export function* fieldsOf(text: string): Generator<string, undefined> {
  for (let at = 0, end = text.indexOf('\0'); end >= 0; at = end + 1, end = text.indexOf('\0', at)) yield text.slice(at, end)
}

function branchLine(line: string, facts: { branch: string; ahead: number; behind: number; unborn: boolean }): void {
  const [, name, ...rest] = line.split(' ')
  const value = rest.join(' ')
  if (name === 'branch.head') facts.branch = value === '(detached)' ? '' : value
  else if (name === 'branch.oid') facts.unborn = value === '(initial)'
  else if (name === 'branch.ab') {
    facts.ahead = Math.abs(Number(rest[0]))
    facts.behind = Math.abs(Number(rest[1]))
  }
}

/** The two letters of index and work tree as one word. */
function changeOf(letters: string): FileStatus {
  if (letters.includes('D')) return 'deleted'
  if (letters.includes('R') || letters.includes('C')) return 'renamed'
  return letters.includes('A') ? 'added' : 'modified'
}

/** Lines added and removed since the last commit, without those of files that this user may not read. */
export async function lineCounts(repository: Repository, status: Status, signal: AbortSignal) {
  try {
    return await countsOf(repository, status, signal)
  } catch (error) {
    if (!isUnavailable(error) || status.tracked.length > NAMED) throw error
    // At the first file that it may not read git gives up.
    const readable = await Promise.all(status.tracked.map(path => isReadable(join(repository.top, path))))
    const tracked = status.tracked.filter((_, at) => readable[at])
    if (tracked.length === status.tracked.length) throw error
    return await countsOf(repository, { ...status, tracked }, signal)
  }
}

/** What is not there is: git has no need to read it. */
const isReadable = (path: string) =>
  access(path, constants.R_OK).then(
    () => true,
    error => isMissing(error)
  )

async function countsOf(repository: Repository, { tracked, unborn }: Status, signal: AbortSignal) {
  if (tracked.length === 0) return { additions: 0, deletions: 0 }
  // Paths count from the root of the repository there, from the workspace here.
  const named = tracked.length <= NAMED && taken(tracked).length === tracked.length ? tracked : ['.']
  const against = unborn ? ['--cached', await emptyTree(repository, signal)] : ['HEAD']
  const at = named === tracked ? { ...repository, cwd: repository.top } : repository
  const args = ['diff', '--numstat', '-z', '--no-ext-diff', '--no-textconv', '--no-color', '--find-renames', '--ignore-submodules=dirty']
  const { text } = await collect(at, [...args, ...against, '--', ...named], signal, STATUS_BYTES)
  const sum = { additions: 0, deletions: 0 }
  let seen = 0
  for (const line of fieldsOf(text)) {
    if (++seen % 5000 === 0) await yieldToLoop()
    const [, added = '0', deleted = '0'] = /^(\d+)\t(\d+)\t/.exec(line) ?? []
    sum.additions += Number(added)
    sum.deletions += Number(deleted)
  }
  return sum
}

/** Its id depends on the hash that the repository uses. */
async function emptyTree(repository: Repository, signal: AbortSignal): Promise<string> {
  return (await collect(repository, ['hash-object', '-t', 'tree', '/dev/null'], signal, 1024)).text.trim()
}
