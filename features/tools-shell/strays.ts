/**
 * Finds the processes of a command in /proc (Linux), also those that left its process group: by their session, and by a mark in their
 * environment that every program started by a command inherits. Elsewhere nothing is found.
 */
import { readdirSync, readFileSync } from 'node:fs'

/** The variable with the mark: names of commands, the outermost first (a command may itself run a server that runs commands). */
export const MARK = 'SVC_CODE_COMMAND'

/** What the processes of a command are known by. */
export interface Traces {
  /** A mark, or the part of several marks before a dot. */
  readonly mark: string
  /** Ids of sessions (the process id of the shell that leads them). */
  readonly sessions: readonly number[]
}

/** The ids of all processes; empty where there is no /proc. */
export function processIds(): number[] {
  try {
    return readdirSync('/proc').filter(isNumber).map(Number)
  } catch {
    return []
  }
}

/** Those of the processes that run and belong to the command. What another user runs shows its session only. */
export function findStrays(among: readonly number[], { mark, sessions }: Traces): number[] {
  return among.filter(pid => {
    if (pid === process.pid) return false
    const [state, , , session] = statOf(pid)
    if (state === undefined || state === 'Z' || state === 'X') return false
    return sessions.includes(Number(session)) || isMarked(pid, mark)
  })
}

/** SIGKILL to what `find` finds, and to what that starts meanwhile; answers the ids. */
export function endStrays(find: () => readonly number[]): number[] {
  const ended = new Set<number>()
  for (let round = 0; round < ROUNDS; round++) {
    const fresh = find().filter(pid => !ended.has(pid))
    if (fresh.length === 0) break
    for (const pid of fresh) {
      ended.add(pid)
      signalTo(pid, 'SIGKILL')
    }
  }
  return [...ended]
}

/** A process that multiplies faster than it can be ended is not followed for ever. */
const ROUNDS = 20

/** A negative id means the group. */
export function signalTo(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // nobody is left, or it is another user's
  }
}

const isNumber = (name: string) => /^\d+$/.test(name)

/** State, parent, group, session and more; empty when the process is gone. */
function statOf(pid: number): string[] {
  const text = read(`/proc/${pid}/stat`)
  return text === '' ? [] : text.slice(text.lastIndexOf(')') + 2).split(' ')
}

function isMarked(pid: number, mark: string): boolean {
  const variables = read(`/proc/${pid}/environ`).split('\0')
  const marks = variables.find(each => each.startsWith(`${MARK}=`))?.slice(MARK.length + 1) ?? ''
  return marks.split(' ').some(each => each === mark || each.startsWith(`${mark}.`))
}

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return '' // gone, or another user's
  }
}
