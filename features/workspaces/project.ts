/** Files that users keep for agents: where a project begins, directories as people write them, and Markdown with front matter. */
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { homeOfUser, lookAtAll } from '../../kernel/index.ts'

/** The nearest directory with `.git`, else the directory itself. */
export async function projectRoot(cwd: string): Promise<string> {
  return (await projectDirs(cwd)).at(-1) ?? cwd
}

/** The directory, then those above it up to the project root. */
export async function projectDirs(cwd: string): Promise<readonly string[]> {
  const dirs = [cwd]
  for (let dir = cwd; dirname(dir) !== dir; dir = dirname(dir)) dirs.push(dirname(dir))
  const marks = await lookAtAll(dirs.map(dir => join(dir, '.git'))) // at once: a turn waits for them
  const root = marks.findIndex(mark => mark !== undefined)
  return dirs.slice(0, Math.max(0, root) + 1)
}

/** A directory of the configuration as an absolute path: `~/` is the user's home, a relative one lies below the project root. */
export function configuredDir(dir: string, root: string, userHome: string = homeOfUser()): string {
  if (dir === '~' || dir.startsWith('~/')) return join(userHome, dir.slice(2))
  return isAbsolute(dir) ? dir : resolve(root, dir)
}

export interface FrontMatter {
  readonly fields: Readonly<Record<string, unknown>>
  /** What follows it. */
  readonly body: string
}

/** Undefined: the text has none. Throws where it is no YAML, or no table. */
export async function frontMatter(text: string): Promise<FrontMatter | undefined> {
  const fenced = /^\uFEFF?---[ \t]*\r?\n(?:([\s\S]*?)\r?\n)?---[ \t]*(?:\r?\n|$)/.exec(text)
  if (!fenced) return undefined
  const { parse } = await import('yaml')
  const fields: unknown = parse(fenced[1] ?? '', { maxAliasCount: 20, logLevel: 'error' }) ?? {}
  if (typeof fields !== 'object' || Array.isArray(fields)) throw new Error('its front matter is no table')
  return { fields: fields as Record<string, unknown>, body: text.slice(fenced[0].length) }
}

/** The first of these fields that is there: `field(fields, 'whenToUse', 'when-to-use')`. */
export function fieldOf(fields: FrontMatter['fields'], ...names: string[]): unknown {
  return names.map(name => fields[name]).find(value => value !== undefined && value !== null)
}
