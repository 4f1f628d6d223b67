/** The submodules of a repository, as far as their directories are there. */
import { lstat, realpath } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { collect, type Repository } from './command.ts'
import { isSamePlace, taken } from './names.ts'

/** Larger lists of submodules count as empty. */
const MAX_BYTES = 1024 * 1024

export interface Submodule {
  /** From the root of the repository. */
  readonly path: string
  /** What of its changes the repository does not count: nothing, `untracked`, `dirty` or `all`. */
  readonly ignore: string
}

/** Those that lie below the directory in which git runs. */
export async function submodulesOf(repository: Repository, signal: AbortSignal): Promise<Submodule[]> {
  const at = { ...repository, cwd: repository.top }
  const facts = await lstat(join(at.cwd, '.gitmodules')).catch(() => undefined) // mostly there is none
  if (!facts?.isFile() || facts.size > MAX_BYTES) return []
  const said = new Map<string, { path?: string; ignore?: string }>()
  const wanted = ['config', '--file', '.gitmodules', '-z', '--get-regexp', '^submodule\\..*\\.(path|ignore)$']
  for (const line of (await collect(at, wanted, signal, MAX_BYTES, [0, 1])).text.split('\0')) {
    const [, name, key, value] = /^submodule\.(.*)\.(path|ignore)\n(.*)$/s.exec(line) ?? []
    if (name !== undefined) said.set(name, { ...said.get(name), [key!]: value })
  }
  const ignored = new Map<string, string>()
  for (const { path = '', ignore = 'none' } of said.values()) if (isInner(path)) ignored.set(path, ignore)
  if (ignored.size === 0) return []
  const { text } = await collect(at, ['ls-files', '--stage', '-z', '--', ...taken(ignored.keys())], signal, MAX_BYTES)
  const found: Submodule[] = []
  for (const line of text.split('\0')) {
    const path = /^160000 [^\t]*\t(.*)$/s.exec(line)?.[1]
    if (path !== undefined && (await isThere(repository, path))) found.push({ path, ignore: ignored.get(path) ?? 'none' })
  }
  return found
}

/** Others git would refuse. */
const isInner = (path: string) => path !== '' && !path.startsWith('/') && !path.split('/').includes('..')

/** Whether it lies below the directory in which git runs, behind no link, with a repository in it. */
async function isThere({ top, cwd }: Repository, path: string): Promise<boolean> {
  const place = join(top, path)
  const below = relative(cwd, place)
  if (below === '' || below.split(sep)[0] === '..') return false
  try {
    await lstat(join(place, '.git'))
    return isSamePlace(await realpath(place), place)
  } catch {
    return false // not checked out
  }
}
