/** Whether a home can be used by this user at all, told before something in it fails with the words of the system. */
import { accessSync, constants, lstatSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { CommandError } from './command-error.ts'

const { R_OK, W_OK, X_OK } = constants

/** Why the home, or the place where it is to be made, cannot be used, with the remedy. `look`: nothing will be written. */
export function homeProblem(home: string, look = false): string | undefined {
  // Node has this in the place of such bytes, and would make a directory of that name.
  if (home.includes('\ufffd')) return `the home ${home} has a name that is not UTF-8; choose another one with --home or SVC_CODE_HOME`
  let dir = home
  while (isAbsent(dir) && dirname(dir) !== dir) dir = dirname(dir)
  const why = obstacle(dir, look ? R_OK | X_OK : R_OK | W_OK | X_OK)
  if (why === undefined || (dir !== home && look && why !== noDirectory)) return undefined
  return dir === home
    ? `the home ${home} ${why}; choose another one with --home or SVC_CODE_HOME`
    : `the home ${home} cannot be made: ${dir} ${why}; choose another one with --home or SVC_CODE_HOME`
}

/** Throws what `homeProblem` says. */
export function assertHome(home: string, look = false): void {
  const problem = homeProblem(home, look)
  if (problem !== undefined) throw new CommandError(problem)
}

const noDirectory = 'is no directory'

/** Nothing is there, not even a link. */
const isAbsent = (path: string): boolean => ['ENOENT', 'ENOTDIR'].includes(codeOf(() => lstatSync(path)) ?? '')

function obstacle(dir: string, mode: number): string | undefined {
  const found = codeOf(() => statSync(dir))
  if (found === undefined && !statSync(dir).isDirectory()) return noDirectory
  if (found === 'ENOENT') return 'is a link to something that is not there'
  const code = found ?? codeOf(() => accessSync(dir, mode))
  if (code === undefined) return undefined
  const owner = found === undefined ? statSync(dir).uid : undefined
  const whose = owner === undefined || owner === process.getuid?.() ? '' : `, it belongs to the user with id ${owner}`
  return `cannot be ${(mode & W_OK) === 0 ? 'read' : 'written'} by this user (${code}${whose})`
}

/** The code of the error that a system call throws; undefined when it throws none. */
function codeOf(call: () => unknown): string | undefined {
  try {
    call()
    return undefined
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error)
  }
}
