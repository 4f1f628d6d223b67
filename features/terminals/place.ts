/** Where a terminal opens and with which shell; what a program in it may know of the server. */
import { constants } from 'node:fs'
import { access, realpath, stat } from 'node:fs/promises'
import { delimiter, isAbsolute, join } from 'node:path'
import { AppError, invalid } from '../../kernel/index.ts'
import { isInside } from '../tools/index.ts'
import { PathOutside } from '../workspaces/index.ts'

/** Absolute, links resolved. Throws 40001 for a path that is not relative or no directory, PathOutside (41304). */
export async function directoryOf(root: string, given: string | undefined): Promise<string> {
  const path = 'body.cwd'
  if (given === undefined || given === '') return await realpath(root)
  if (isAbsolute(given) || /^(?:[\\/]|[A-Za-z]:)/.test(given))
    throw invalid([{ path, message: 'must be relative to the session workspace' }])
  if (given.includes('\0')) throw invalid([{ path, message: 'must not contain NUL' }])
  if (!isInside(join(root, given), root)) throw new AppError(PathOutside)
  const found = await realpath(join(root, given)).catch(() => undefined)
  if (found === undefined || !(await stat(found)).isDirectory()) throw invalid([{ path, message: `no such directory: ${given}` }])
  if (!isInside(found, await realpath(root))) throw new AppError(PathOutside)
  return found
}

/** Absolute path of an executable. Throws 40001. */
export async function shellOf(given: string | undefined): Promise<string> {
  const wanted = given ?? process.env.SHELL ?? 'sh'
  const places = wanted.includes('/') ? [wanted] : (process.env.PATH ?? '/usr/bin:/bin').split(delimiter).map(dir => join(dir, wanted))
  for (const place of places) {
    if (isAbsolute(place) && (await isExecutable(place))) return place
  }
  if (given === undefined && wanted !== 'sh') return await shellOf('sh')
  throw invalid([{ path: 'body.shell', message: `no such program: ${wanted}` }])
}

async function isExecutable(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK)
    return (await stat(path)).isFile()
  } catch {
    return false // the next place, or the answer
  }
}

const credentials = /^SVC_CODE_.*(?:KEY|TOKEN|PASSWORD|SECRET|HEADERS)/

/** The server's environment without its credentials. */
export function environmentOf(base: NodeJS.ProcessEnv): Record<string, string> {
  const own = Object.entries(base).filter((entry): entry is [string, string] => entry[1] !== undefined && !credentials.test(entry[0]))
  return { ...Object.fromEntries(own), TERM: 'xterm-256color', COLORTERM: 'truecolor' }
}
