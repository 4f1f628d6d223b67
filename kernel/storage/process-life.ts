/** Is that process still the one we knew? By process id, start time and the place where its id means anything. And whose is a temporary file. */
import { createHash, randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readFile, readlink, stat } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { type FileCalls, removeFile } from './files.ts'

/** Tells a process from all others, on this machine and in its containers. */
export interface ProcessIdentity {
  readonly pid: number
  /** When it started, where the system tells it (Linux); guards against a process id that was given out again. */
  readonly start?: string
  /** Machine, boot and namespace of process ids: elsewhere the id means another process, or none. */
  readonly where?: string
}

let own: Promise<ProcessIdentity> | undefined

/** This process. */
export function ownProcess(): Promise<ProcessIdentity> {
  own ??= identify()
  return own
}

async function identify(): Promise<ProcessIdentity> {
  const start = await processStart(process.pid)
  return { pid: process.pid, ...(start !== undefined && { start }), where: await ownPlace() }
}

/**
 * `gone` also for a process that its parent has not collected yet. `elsewhere`: another machine or container, of which this one cannot
 * tell. In doubt `alive`: nothing must be taken from the living.
 */
export async function stateOf(identity: ProcessIdentity): Promise<'alive' | 'gone' | 'elsewhere'> {
  const { pid, start, where } = identity
  if (where !== undefined && where !== (await ownProcess()).where) return 'elsewhere'
  return (await isProcessAlive(pid, start)) ? 'alive' : 'gone'
}

/** When a process started (boot and clock ticks since then, Linux), or undefined where the system does not tell or it is gone. */
export async function processStart(pid: number): Promise<string | undefined> {
  try {
    const stat = readStat(pid)
    return stat && `${await bootId()}:${stat.ticks}`
  } catch {
    return undefined // not readable now (too many open files): the id alone has to do
  }
}

/**
 * False once the process is gone, even while its parent has not collected it; `start` as `processStart` told it. When in doubt the
 * answer is true. The id must be one of this machine and namespace.
 */
export async function isProcessAlive(pid: number, start?: string): Promise<boolean> {
  try {
    process.kill(pid, 0)
  } catch (error) {
    // Anything else (EPERM) means that it lives and belongs to someone else.
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false
  }
  if (process.platform !== 'linux') return true
  try {
    const stat = readStat(pid)
    if (!stat) return start === undefined
    if (stat.state === 'Z' || stat.state === 'X') return false
    return start === undefined || start === `${await bootId()}:${stat.ticks}`
  } catch {
    return true // in doubt, see above
  }
}

/** Undefined when the process (or /proc) is not there; throws when it cannot be read for another reason. */
function readStat(pid: number): { state: string; ticks: string } | undefined {
  let text: string
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'utf8') // from memory: another thread would take far longer to be asked
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ESRCH') return undefined
    throw error
  }
  // The second field is the command in parentheses and may itself hold spaces and parentheses; state is field 3, start time 22.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const [state, ticks] = [fields[0], fields[19]]
  return state && ticks ? { state, ticks } : undefined
}

let boot: string | undefined

async function bootId(): Promise<string> {
  boot ??= (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim()
  return boot
}

/** The name of the machine alone where the system tells no more. */
async function ownPlace(): Promise<string> {
  try {
    return [hostname(), await bootId(), await readlink('/proc/self/ns/pid')].join(' ')
  } catch {
    return hostname()
  }
}

/** A name for a temporary file or directory that tells whose it is: `<process id>-<its place>-<random>`. */
export async function temporaryName(): Promise<string> {
  return `${process.pid}-${placeMark(await ownProcess())}-${randomUUID()}`
}

/** Nothing takes so long: of processes elsewhere nobody here knows whether they live. */
const abandonedMs = 24 * 60 * 60 * 1000

/** The process that made a temporary file or directory, by its name, is gone. In doubt only once the file is a day old. */
export async function isAbandoned(file: string): Promise<boolean> {
  const [, pid, place] = /(\d+)-([0-9a-f]{12})-[\w-]+$/.exec(file) ?? []
  if (place === placeMark(await ownProcess())) return !(await isProcessAlive(Number(pid)))
  return Date.now() - (await stat(file)).mtimeMs > abandonedMs
}

/** Removes the temporary files of a directory whose processes are gone; `isTemporary` knows them by their names. */
export async function sweepAbandoned(dir: string, isTemporary: (name: string) => boolean, files: FileCalls): Promise<void> {
  for (const name of await files.readdir(dir)) {
    const file = join(dir, name)
    if (isTemporary(name) && (await isAbandoned(file))) await removeFile(file, files)
  }
}

function placeMark({ where = '' }: ProcessIdentity): string {
  return createHash('sha256').update(where).digest('hex').slice(0, 12)
}
