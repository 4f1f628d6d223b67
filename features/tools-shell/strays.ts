/**
 * Finds the processes of a command in /proc (Linux), also those that left its process group: by their session, and by a mark that every
 * program started by a command inherits, as a variable and as a limit. Elsewhere nothing is found.
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'

/** The variable with the mark: names of commands, the outermost first (a command may itself run a server that runs commands). */
export const MARK = 'SVC_CODE_COMMAND'

/** What the processes of a command are known by. */
interface Traces {
  /** A mark, or the part of several marks before a dot. */
  readonly mark: string
  /** Ids of sessions (the process id of the shell that leads them). */
  readonly sessions: readonly number[]
}

/** The ids of all processes; empty where there is no /proc. */
export function processIds(): number[] {
  try {
    return readdirSync('/proc')
      .map(Number)
      .filter(pid => pid > 0) // other names are no numbers
  } catch {
    return []
  }
}

/** Those of the processes that run and belong to the command. What another user runs shows its session only. */
export function findStrays(among: readonly number[], { mark, sessions }: Traces): number[] {
  const limits = limitsOf(mark)
  return among.filter(pid => {
    if (pid === process.pid) return false
    const [state, , , session] = statOf(pid)
    return runsIn(state) && (sessions.includes(Number(session)) || isLimited(pid, limits) || isMarked(pid, mark))
  })
}

/**
 * SIGKILL to what `find` finds, and to what that starts meanwhile; answers the ids once they are gone. Looks until nothing is left twice: a
 * process may start another one after the list was made, and be gone when it is looked at.
 */
export async function endStrays(find: () => readonly number[]): Promise<number[]> {
  const ended = new Set<number>()
  for (let round = 0, quiet = 0; round < ROUNDS && quiet < 2; round++) {
    const fresh = find().filter(pid => !ended.has(pid))
    quiet = fresh.length === 0 ? quiet + 1 : 0
    for (const pid of fresh) {
      ended.add(pid)
      signalTo(pid, 'SIGKILL')
    }
  }
  // a killed process runs on until the system schedules it; one that waits for a device may take for ever
  for (let look = 0; look < LOOKS && [...ended].some(isRunning); look++) await setTimeout(LOOK_MS)
  return [...ended]
}

/** A process that multiplies faster than it can be ended is not followed for ever. */
const ROUNDS = 20
/** Together a second. */
const LOOKS = 200
const LOOK_MS = 5

/** A negative id means the group. */
export function signalTo(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // nobody is left, or it is another user's
  }
}

/** Signals every process of a session, by the process id of the shell that led it; where there is no /proc, that shell's group. */
export function signalSession(session: number, signal: NodeJS.Signals): void {
  for (const pid of processIds()) if (Number(statOf(pid)[3]) === session) signalTo(pid, signal)
  signalTo(-session, signal)
}

/** Not gone, and not just waiting to be collected. */
const runsIn = (state: string | undefined) => state !== undefined && state !== 'Z' && state !== 'X'
const isRunning = (pid: number) => runsIn(statOf(pid)[0])

/** State, parent, group, session and more; empty when the process is gone. */
function statOf(pid: number): string[] {
  const text = read(`/proc/${pid}/stat`)
  return text === '' ? [] : text.slice(text.lastIndexOf(')') + 2).split(' ')
}

/** Commands of one run of a server that are told apart by their limit. */
const PER_RUN = 2 ** 20

/** The limits by which the commands of a mark are known: from the first on, before the last. Below 2^53. */
function limitsOf(mark: string): readonly [from: number, to: number] {
  const [run = '', count] = mark.split('.')
  const first = createHash('sha256').update(run).digest().readUInt32BE() * PER_RUN
  if (count === undefined) return [first, first + PER_RUN]
  const own = first + (Number(count) % PER_RUN)
  return [own, own + 1]
}

/**
 * Arguments of a shell that gives itself the mark as a limit and becomes the shell that runs the command. The limit is the one on the
 * number of file locks (RLIMIT_LOCKS): Linux has not enforced it since 2.4.25, so that nothing depends on it and no program sets it, but it
 * is inherited by all that a process starts, whatever becomes of environment, descriptors, session and parents. bash calls it -x, others -w.
 */
export function markedShell(shell: string, command: string, mark: string): string[] {
  if (process.platform !== 'linux') return ['-c', command]
  const script = '{ ulimit -S -x "$1" || ulimit -S -w "$1"; } 2>/dev/null; exec "$0" -c "$2"'
  return ['-c', script, shell, String(limitsOf(mark)[0]), command]
}

function isLimited(pid: number, [from, to]: readonly [number, number]): boolean {
  const limit = Number(/^Max file locks +(\d+) /m.exec(read(`/proc/${pid}/limits`))?.[1]) // unlimited is no number
  return limit >= from && limit < to
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
