/** Finds the git work tree around a directory, without the git program. */
import { readFile, realpath, stat } from 'node:fs/promises'
import { dirname, isAbsolute, join, relative, resolve } from 'node:path'

export interface WorkTree {
  readonly root: string
  /** Directories where git keeps its own files; more than one in linked work trees. */
  readonly control: readonly string[]
}

/** The innermost work tree that contains the directory. `.git` may be a directory or a file that points to one. */
export async function findWorkTree(dir: string): Promise<WorkTree | undefined> {
  for (let at = dir; ; at = dirname(at)) {
    const control = await controlDirs(join(at, '.git'))
    if (control) return { root: at, control }
    if (dirname(at) === at) return undefined
  }
}

/** True for the directory itself and everything below it. */
export function isInside(path: string, dir: string): boolean {
  const below = relative(dir, path)
  return below === '' || (!/^\.\.(?:[/\\]|$)/.test(below) && !isAbsolute(below))
}

async function controlDirs(dotGit: string): Promise<string[] | undefined> {
  const found = await stat(dotGit).catch(() => undefined) // absent or unreadable: not a work tree
  if (found?.isDirectory()) return (await isFile(join(dotGit, 'HEAD'))) ? [await realpath(dotGit)] : undefined
  if (!found?.isFile() || found.size > 4096) return undefined
  const target = /^gitdir: (.+)$/m.exec(await readFile(dotGit, 'utf8'))?.[1]?.trim()
  if (!target) return undefined
  const dir = resolve(dirname(dotGit), target)
  if (!(await isFile(join(dir, 'HEAD')))) return undefined
  const common = await readFile(join(dir, 'commondir'), 'utf8').catch(() => undefined) // only linked work trees have one
  return common === undefined ? [dir] : [dir, resolve(dir, common.trim())]
}

async function isFile(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isFile() === true // absent is an answer here
}
