/**
 * What the system shows of this process to others of the same user: `/proc/<pid>/environ` is the memory that the variables were in when
 * the process began, and taking one out of `process.env` changes nothing there. So the variables move, and their first place is blanked.
 */
import { closeSync, openSync, readFileSync, readSync, writeSync } from 'node:fs'

/** Harmless ones stay shown: libraries may hold on to their first place, and a server around this one looks for SVC_CODE_COMMAND. */
const shown = /^(?:PATH|HOME|USER|LOGNAME|SHELL|TERM|PWD|HOSTNAME|TZ|LANG|LANGUAGE|GLIBC_TUNABLES|SVC_CODE_COMMAND|(?:LC|LD|MALLOC)_\w+)$/

/** Of these variables, those that the system may show of a process. */
export function shownVariables(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => shown.test(name) || name === 'NODE_EXTRA_CA_CERTS'))
}

/**
 * Blanks all variables that are not known to be harmless; `env` must be `process.env`, which keeps them. Answers whether the system
 * shows none of them now: only Linux lets a process write there.
 */
export function blankEnvironment(env: NodeJS.ProcessEnv): boolean {
  if (process.platform !== 'linux') return false
  try {
    const block = readFileSync('/proc/self/environ')
    const entries = entriesOf(block).filter(({ name }) => !shown.test(name))
    if (entries.length === 0) return true
    for (const { name } of entries) {
      const value = env[name]
      if (value === undefined) continue
      delete env[name] // set over, it might stay where it is
      env[name] = value
    }
    blank(block, entries)
    return entriesOf(readFileSync('/proc/self/environ')).every(({ name }) => shown.test(name))
  } catch {
    return false // no /proc, or one that forbids it
  }
}

interface Entry {
  readonly name: string
  readonly from: number
  readonly to: number
}

/** The variables in the block, with their places. */
function entriesOf(block: Buffer): Entry[] {
  const found: Entry[] = []
  for (let from = 0; from < block.length; ) {
    const nul = block.indexOf(0, from)
    const to = nul < 0 ? block.length : nul
    if (to > from) found.push({ name: block.toString('latin1', from, to).split('=', 1)[0] ?? '', from, to })
    from = to + 1
  }
  return found
}

function blank(block: Buffer, entries: readonly Entry[]): void {
  const stat = readFileSync('/proc/self/stat', 'latin1')
  const start = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[47]) // field 50, env_start
  const memory = openSync('/proc/self/mem', 'r+')
  try {
    const there = Buffer.alloc(block.length)
    readSync(memory, there, 0, there.length, start)
    if (!there.equals(block)) return
    for (const { from, to } of entries) there.fill(0, from, to)
    writeSync(memory, there, 0, there.length, start)
  } finally {
    closeSync(memory)
  }
}
