/** Where a terminal opens and with which shell; what a program in it may know of the server. */
import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { basename, delimiter, isAbsolute, join, normalize } from 'node:path'
import { AppError, invalid } from '../../kernel/index.ts'
import { rootAt } from '../file-search/index.ts'
import { relativePath, withPin } from '../fs/index.ts'
import { PathDenied, PathMissing } from '../workspaces/index.ts'

/** Absolute, links resolved. Throws 40001 for a path that is not relative or no directory, PathOutside (41304). */
export async function directoryOf(cwd: string, given = ''): Promise<string> {
  const wrong = (message: string, cause?: unknown) => invalid([{ path: 'body.cwd', message }], cause)
  if (isAbsolute(given) || /^(?:[\\/]|[A-Za-z]:)/.test(given)) throw wrong('must be relative to the session workspace')
  try {
    return await withPin(await rootAt(cwd), relativePath(normalize(given), 'body.cwd'), async ({ real, stats }) => {
      if (!stats.isDirectory()) throw wrong(`${given || cwd} is not a directory`)
      return real
    })
  } catch (error) {
    if (AppError.is(error) && (error.code === PathMissing.code || error.code === PathDenied.code)) throw wrong(error.message, error)
    throw error
  }
}

/** What users have who may not log in: it ends at once. */
const noShell = new Set(['false', 'nologin'])

/** Absolute path of an executable: the given one, else the user's shell, else a `sh`. Throws 40001. */
export async function shellOf(given: string | undefined): Promise<string> {
  const { SHELL = 'sh' } = process.env
  const wanted = given ?? (noShell.has(basename(SHELL)) ? 'sh' : SHELL)
  const places = wanted.includes('/') ? [wanted] : (process.env.PATH ?? '/usr/bin:/bin').split(delimiter).map(dir => join(dir, wanted))
  for (const place of places) {
    if (isAbsolute(place) && (await isExecutable(place))) return place
  }
  if (given === undefined) return await shellOf(wanted === 'sh' ? '/bin/sh' : 'sh')
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
