/** What the model is told about where it works: instruction files (AGENTS.md), the listing of the working directory, the date. */
import { readdir, readFile, stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import type { StepInjector } from '../service.ts'

const oversizedBytes = 32 * 1024
/** A file above this is not an instruction file; reading it would only cost memory. */
const readBytes = 1024 * 1024
const rootEntries = 30
const childEntries = 10

export interface Instructions {
  /** Texts of all files, each after a comment that names its path. */
  readonly text: string
  readonly warning?: string
}

/**
 * Collects, most general first: the server's home, the user's home, then from the git root (or the working directory) down to the
 * working directory `.svc-code/AGENTS.md` and `AGENTS.md` (or `agents.md`). Empty files are skipped, no path is read twice.
 */
export async function collectInstructions(cwd: string, home: string, userHome: string = homedir()): Promise<Instructions> {
  const candidates: string[][] = [
    [join(home, 'AGENTS.md')],
    [join(userHome, '.agents', 'AGENTS.md'), join(userHome, '.agents', 'agents.md')]
  ]
  for (const dir of await chain(cwd))
    candidates.push([join(dir, '.svc-code', 'AGENTS.md')], [join(dir, 'AGENTS.md'), join(dir, 'agents.md')])
  const seen = new Set<string>()
  const texts: string[] = []
  const problems: string[] = []
  let bytes = 0
  for (const names of candidates) {
    for (const path of names) {
      if (seen.has(path)) break
      const found = await readText(path)
      if (found === undefined) continue
      seen.add(path)
      if (found.problem !== undefined) problems.push(found.problem)
      else if (found.text !== '') {
        texts.push(`<!-- ${path} -->\n${found.text}`)
        bytes += Buffer.byteLength(found.text)
      }
      break
    }
  }
  if (bytes > oversizedBytes) {
    problems.push(
      `the instruction files hold ${bytes} bytes together, more than the advised ${oversizedBytes}; shorten them to save context`
    )
  }
  return { text: texts.join('\n\n'), ...(problems.length > 0 ? { warning: problems.join('\n') } : {}) }
}

/** From the git root down to the directory. */
async function chain(cwd: string): Promise<string[]> {
  const dirs = [cwd]
  for (let dir = cwd; ; dir = dirname(dir)) {
    if (dir !== cwd) dirs.unshift(dir)
    if (await exists(join(dir, '.git'))) return dirs
    if (dirname(dir) === dir) return [cwd]
  }
}

async function readText(path: string): Promise<{ readonly text: string; readonly problem?: string } | undefined> {
  try {
    const info = await stat(path)
    if (!info.isFile()) return { text: '', problem: `${path} is not a regular file` }
    if (info.size > readBytes) return { text: '', problem: `${path} is too large (${info.size} bytes) and was left out` }
    return { text: (await readFile(path, 'utf8')).trim() }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT' || (error as NodeJS.ErrnoException).code === 'ENOTDIR') return undefined
    return { text: '', problem: `${path} could not be read` }
  }
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false
  )
}

/** Two levels, directories first; hidden directories are named but not opened. */
export async function listDirectory(cwd: string): Promise<string> {
  const root = await entries(cwd)
  if (!root) return '(unreadable)'
  if (root.length === 0) return '(empty)'
  const lines: string[] = []
  for (const entry of root.slice(0, rootEntries)) {
    lines.push(entry.directory ? `${entry.name}/` : entry.name)
    if (!entry.directory || entry.name.startsWith('.')) continue
    const children = await entries(join(cwd, entry.name))
    if (!children) lines.push('  (unreadable)')
    for (const child of children?.slice(0, childEntries) ?? []) lines.push(`  ${child.name}${child.directory ? '/' : ''}`)
    if (children && children.length > childEntries) lines.push(`  ... and ${children.length - childEntries} more`)
  }
  if (root.length > rootEntries) lines.push(`... and ${root.length - rootEntries} more`)
  return lines.join('\n')
}

async function entries(dir: string): Promise<{ name: string; directory: boolean }[] | undefined> {
  try {
    const found = await readdir(dir, { withFileTypes: true })
    const all = found.map(entry => ({ name: entry.name, directory: entry.isDirectory() }))
    return all.sort((a, b) => Number(b.directory) - Number(a.directory) || (a.name < b.name ? -1 : 1))
  } catch {
    return undefined // shown as unreadable
  }
}

/** Tells the model today's date: at the first step of a conversation and whenever the local date has changed since. */
export function dateInjector(now: () => Date): StepInjector {
  return {
    variant: 'date_change',
    inject(_info, history) {
      const date = localDate(now())
      if (history.reminder('date_change')?.date === date) return undefined
      return { text: `Today is ${date}.`, facts: { date } }
    }
  }
}

/** `YYYY-MM-DD` in the server's time zone. */
export function localDate(at: Date): string {
  const two = (value: number) => String(value).padStart(2, '0')
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`
}
