/** What ignore files exclude: those of a directory and of every one above it, up to the root of the repository that it belongs to. */
import { type Dirent, lstatSync, type Stats } from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'
import type { Ignore } from 'ignore'
import { lookAtAll } from '../../kernel/index.ts'
import { smallText } from './small-text.ts'

/** Names of ignore files, in the order in which later ones win. */
export const ignoreFiles = ['.gitignore', '.ignore', '.rgignore']

/** Larger ignore files count as empty. */
const MAX_BYTES = 1024 * 1024

/** Never shown by searches. */
export const VCS_DIRS: readonly string[] = ['.git', '.hg', '.svn', '.jj', '.bzr']

/** False for a name whose bytes are no UTF-8: nothing is at the text that is left of it. It could be found and not be opened, and is not shown. */
export function isNamed(dir: string, path: string): boolean {
  if (!path.includes('\ufffd')) return true
  try {
    return lstatSync(join(dir, path), { throwIfNoEntry: false }) !== undefined
  } catch {
    return false // no permission: it could not be opened either
  }
}

/** Names of the entries of a directory that may hold rules: of files, and of links that may lead to one. */
export const rulesAmong = (entries: readonly Dirent[]): Set<string> =>
  new Set(entries.filter(entry => ignoreFiles.includes(entry.name) && (entry.isFile() || entry.isSymbolicLink())).map(({ name }) => name))

/** The repository that a directory belongs to: its root and `.git`, and what lies between. Without one the root is that of the file system. */
export async function repositoryOf(
  dir: string
): Promise<{ readonly root: string; readonly above: readonly string[]; readonly git?: Stats }> {
  const dirs = [dir]
  while (dirname(dirs[0]!) !== dirs[0]) dirs.unshift(dirname(dirs[0]!))
  const found = await lookAtAll(dirs.map(at => join(at, '.git')))
  const at = Math.max(
    0,
    found.findLastIndex(git => git !== undefined)
  )
  return { root: dirs[at]!, above: dirs.slice(at, -1), ...(found[at] ? { git: found[at] } : {}) }
}

interface Level {
  /** Absolute, with a slash at its end. */
  readonly base: string
  readonly rules: Ignore
}

/** The rules that hold in one directory. Immutable; paths are absolute, with slashes. */
export class IgnoreRules {
  readonly #levels: readonly Level[]

  /** Without levels: nothing is ignored. */
  constructor(levels: readonly Level[] = []) {
    this.#levels = levels
  }

  /** Rules of everything above `dir`, without its own files: up to the root of its repository, or of the file system. */
  static async above(dir: string): Promise<IgnoreRules> {
    const { root, above: parents, git } = await repositoryOf(dir)
    const exclude = git?.isDirectory() ? await textOf(join(root, '.git', 'info', 'exclude')) : ''
    const texts = await Promise.all(parents.map(parent => ownText(parent)))
    let rules = await new IgnoreRules().#with(root, reopened(exclude, root, dir))
    for (const [at, parent] of parents.entries()) rules = await rules.#with(parent, reopened(texts[at]!, parent, dir))
    return rules
  }

  /** These rules and those of the files in `dir`. `found`: names of its entries, where they are known. */
  async in(dir: string, found?: ReadonlySet<string>): Promise<IgnoreRules> {
    return await this.#with(dir, await ownText(dir, found))
  }

  /** Whether what lies at `path` is left out. The nearest file with an opinion decides. What lies in an ignored directory is the caller's affair. */
  ignores(path: string, directory: boolean): boolean {
    for (let at = this.#levels.length - 1; at >= 0; at--) {
      const { base, rules } = this.#levels[at]!
      const { ignored, unignored } = rules.test(path.slice(base.length) + (directory ? '/' : ''))
      if (ignored) return true
      if (unignored) return false
    }
    return false
  }

  async #with(dir: string, text: string): Promise<IgnoreRules> {
    if (!/^[^\S\n]*[^#\s]/m.test(text)) return this
    const base = dir.endsWith('/') ? dir : `${dir}/`
    return new IgnoreRules([...this.#levels, { base, rules: await compiled(text) }])
  }
}

/** Rules of a directory above, but for what they say of `dir` and the way to it: who looks into it wants to see what is there. */
function reopened(text: string, above: string, dir: string): string {
  if (text.trim() === '' || above === dir) return text
  const names = relative(above, dir)
    .split(sep)
    .map(name => name.replace(/[\\*?[\]\s]/g, '\\$&'))
  return [text, ...names.map((_, at) => `!/${names.slice(0, at + 1).join('/')}/`)].join('\n')
}

/** Texts of rules whose patterns stay compiled. */
const remembered = 32
/** Longer texts are compiled each time, characters. */
const rememberedChars = 64 * 1024
/** By text, the one used last at the end. */
const patterns = new Map<string, Ignore>()

/** Rules of a text, with a memory of their own for what they were asked: the patterns are shared. */
async function compiled(text: string): Promise<Ignore> {
  const { default: ignore } = await import('ignore')
  const fresh = ignore({ allowRelativePaths: true, ignorecase: false })
  if (text.length > rememberedChars) return fresh.add(text)
  const known = patterns.get(text) ?? ignore({ ignorecase: false }).add(text)
  patterns.delete(text)
  patterns.set(text, known)
  if (patterns.size > remembered) patterns.delete(patterns.keys().next().value!)
  return fresh.add(known)
}

/** What the ignore files of a directory say. */
async function ownText(dir: string, found?: ReadonlySet<string>): Promise<string> {
  if (found?.size === 0) return ''
  const texts = ignoreFiles.filter(name => !found || found.has(name)).map(name => textOf(join(dir, name)))
  return (await Promise.all(texts)).join('\n')
}

const textOf = async (file: string): Promise<string> => (await smallText(file, MAX_BYTES)) ?? '' // unreadable: no rules
