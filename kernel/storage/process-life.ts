/** Is that process still the one we knew? By process id and, on Linux, by start time, so that a reused id is not mistaken. */
import { readFile } from 'node:fs/promises'

/** When a process started (boot and clock ticks since then, Linux), or undefined where the system does not tell or it is gone. */
export async function processStart(pid: number): Promise<string | undefined> {
  try {
    const stat = await readStat(pid)
    return stat && `${await bootId()}:${stat.ticks}`
  } catch {
    return undefined // not readable now (too many open files): the id alone has to do
  }
}

/**
 * False once the process is gone, even while its parent has not collected it; `start` as `processStart` told it. When in doubt the
 * answer is true: a lock must not be taken from the living.
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
    const stat = await readStat(pid)
    if (!stat) return start === undefined
    if (stat.state === 'Z' || stat.state === 'X') return false
    return start === undefined || start === `${await bootId()}:${stat.ticks}`
  } catch {
    return true // in doubt, see above
  }
}

/** Undefined when the process (or /proc) is not there; throws when it cannot be read for another reason. */
async function readStat(pid: number): Promise<{ state: string; ticks: string } | undefined> {
  let text: string
  try {
    text = await readFile(`/proc/${pid}/stat`, 'utf8')
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
