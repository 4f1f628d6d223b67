/** What the model is told about where it works: the listing of the working directory, the date. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { asData } from '../../history/index.ts'
import type { AgentHost } from '../../sessions/index.ts'
import type { StepInjector } from '../extension-points.ts'

const rootEntries = 30
const childEntries = 10

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
    const all = found.map(entry => ({ name: asData(entry.name.replace(/\p{Cc}/gu, '?')), directory: entry.isDirectory() }))
    return all.sort((a, b) => Number(b.directory) - Number(a.directory) || a.name.localeCompare(b.name))
  } catch {
    return undefined // shown as unreadable
  }
}

/**
 * Tells the model today's date: at the first step of a conversation and whenever the local date has changed since. `disclosed`: the one that the
 * system prompt says.
 */
export function dateInjector(now: () => Date, disclosed: (agent: AgentHost) => string | undefined): StepInjector {
  return {
    variant: 'date_change',
    inject({ agent }, history) {
      const date = localDate(now())
      if ((history.reminder('date_change')?.date ?? disclosed(agent)) === date) return undefined
      return { text: `Today is ${date}.`, facts: { date } }
    }
  }
}

/** `YYYY-MM-DD` in the server's time zone. */
export function localDate(at: Date): string {
  const two = (value: number) => String(value).padStart(2, '0')
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`
}
