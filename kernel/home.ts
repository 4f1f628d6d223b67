/**
 * The home directory: made for its owner alone, what is odd about one that was there before, and how its small files are read. And that of
 * the user, which it usually lies in.
 */
import { closeSync, fstatSync, mkdirSync, openSync, readFileSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join } from 'node:path'
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

/** Can others read the home or the configuration, where keys and conversations are? One sentence each, with the remedy. */
export function homeWarnings(home: string): string[] {
  if (process.platform === 'win32') return []
  const warnings: string[] = []
  for (const [path, what, mode] of [
    [home, 'the home', '700'],
    [join(home, 'config.toml'), 'the configuration', '600']
  ] as const) {
    const found = statSync(path, { throwIfNoEntry: false })
    if (!found || (found.mode & 0o077) === 0) continue
    warnings.push(`${what} ${path} is open to other users (mode 0${(found.mode & 0o777).toString(8)}); run: chmod ${mode} ${path}`)
  }
  return warnings
}

/** The text of a file. Throws at once for pipes, devices and directories, whose reading could hang; system errors pass as they are. */
export function readRegularFile(path: string): string {
  const file = openSync(path, forReading)
  try {
    if (!fstatSync(file).isFile()) throw developerError('file_irregular', path)
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
