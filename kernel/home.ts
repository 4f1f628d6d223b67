/**
 * The home directory: made for its owner alone, and how its small files are read. And that of the user, which it usually lies in.
 */
import { closeSync, fstatSync, mkdirSync, openSync, readFileSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, isAbsolute } from 'node:path'
import { developerError } from './errors.ts'
import { forReading } from './storage/files.ts'

/**
 * Makes the directory and its missing parents (0700). Throws `home_unusable`, which names the home and the reason. Step by step: the
 * recursive call of the library never returns where a parent takes no entries (`/proc`).
 */
export function makeHome(home: string): void {
  try {
    makeStep(home)
  } catch (error) {
    throw developerError('home_unusable', home, (error as Error).message)
  }
}

function makeStep(dir: string): void {
  const found = statSync(dir, { throwIfNoEntry: false })
  if (found?.isDirectory()) return
  if (found) throw developerError('directory_irregular', dir)
  if (dirname(dir) !== dir) makeStep(dirname(dir))
  try {
    mkdirSync(dir, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error // another server that starts now may have been faster
  }
}

/** No file that is read at the start is larger, bytes; the configuration may be so large. */
const mostBytes = 8 * 1024 * 1024

/**
 * The text of a file, at the start. Throws at once for pipes, devices and directories, whose reading could hang, and for more than 8 MiB; system
 * errors pass as they are.
 */
export function readRegularFile(path: string): string {
  const file = openSync(path, forReading)
  try {
    const found = fstatSync(file)
    if (!found.isFile()) throw developerError('file_irregular', path)
    if (found.size > mostBytes) throw developerError('file_oversized', path, mostBytes)
    return readFileSync(file, 'utf8')
  } finally {
    closeSync(file)
  }
}

/** Home directory of the user, absolute; undefined when neither HOME nor the system names one, as of a container's user without an entry. */
export function knownHome(): string | undefined {
  try {
    const found = homedir()
    return isAbsolute(found) ? found : undefined
  } catch {
    return undefined // the system knows nobody of this id
  }
}

/** What `~` stands for: `/` when nobody names a home, as in a shell. */
export function homeOfUser(): string {
  return knownHome() ?? '/'
}
