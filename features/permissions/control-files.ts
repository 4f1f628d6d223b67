/**
 * Files that make programs run code: those of git, of editors, and of MCP servers. And the git work tree around a directory, without the
 * git program.
 */
import { realpath } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { lookAt, lookAtAll, readBounded } from '../../kernel/index.ts'
import { isInside } from '../tools/index.ts'

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

/** Whether touching the file is touching git's own files, or writing it makes git, a shell or an editor run something. */
export async function isControlFile(
  { kind, path }: { readonly kind: string; readonly path: string },
  { cwd, workTree }: { readonly cwd: string; workTree(): Promise<WorkTree | undefined> }
): Promise<boolean> {
  const segments = relative(isInside(path, cwd) ? cwd : '/', path)
    .toLowerCase()
    .split(/[/\\]/)
  if (segments.includes('.git')) return true
  if ((await workTree())?.control.some(dir => isInside(path, dir))) return true
  return (kind === 'write' || kind === 'readwrite') && (runsByItself(segments) || (await plantsRepository(path)))
}

/** Hooks, and settings that name commands. */
function runsByItself(segments: readonly string[]): boolean {
  const name = segments.at(-1) ?? ''
  if (name === '.envrc' || name === '.mcp.json' || segments.includes('.husky')) return true
  if (segments.at(-2) === '.svc-code' && name === 'mcp.json') return true // as `.mcp.json`: servers that a trusted project has started
  return segments.at(-2) === '.vscode' && (name === 'tasks.json' || name === 'settings.json' || name === 'launch.json')
}

/**
 * Git takes any directory with `HEAD`, `objects` and `refs` for a repository and runs what its `config` names. `HEAD` alone is the last
 * missing piece wherever the others are; a name that ordinary files have, too, counts beside another piece.
 */
async function plantsRepository(path: string): Promise<boolean> {
  const name = basename(path).toLowerCase()
  if (name === 'head') return true
  if (name === 'config' && (await hasAny(dirname(path), ['HEAD', 'objects', 'refs']))) return true
  for (let at = dirname(path); at !== dirname(at); at = dirname(at)) {
    const inner = ['objects', 'refs', 'hooks'].includes(basename(at).toLowerCase())
    if (inner && (await hasAny(dirname(at), ['HEAD', 'config']))) return true
  }
  return false
}

async function hasAny(dir: string, names: readonly string[]): Promise<boolean> {
  return (await lookAtAll(names.map(name => join(dir, name)))).some(found => found !== undefined)
}

async function controlDirs(dotGit: string): Promise<string[] | undefined> {
  const found = await lookAt(dotGit) // absent or unreadable: not a work tree
  if (found?.isDirectory()) return (await isFile(join(dotGit, 'HEAD'))) ? [await realpath(dotGit)] : undefined
  const target = /^gitdir: (.+)$/m.exec((await nameIn(dotGit)) ?? '')?.[1]?.trim()
  if (!target) return undefined
  const dir = resolve(dirname(dotGit), target)
  if (!(await isFile(join(dir, 'HEAD')))) return undefined
  const common = await nameIn(join(dir, 'commondir')) // only linked work trees have one
  return common === undefined ? [dir] : [dir, resolve(dir, common.trim())]
}

/** Undefined: no file, or none that names a path. */
const nameIn = (file: string) => readBounded(file, 4096).then(String, () => undefined)

async function isFile(path: string): Promise<boolean> {
  return (await lookAt(path))?.isFile() === true
}
