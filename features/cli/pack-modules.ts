/** Packages below the home that `svc-code pack add` has installed, and the turn of those who change which packs there are. */
import { spawn } from 'node:child_process'
import { constants, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { cp, rename, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { withLock } from '../../kernel/index.ts'
import { CommandError } from './command-error.ts'
import type { Io } from './io.ts'
import { installedDir } from './pack-files.ts'

/** A registry may be slow, and others may wait already, ms. */
const waitMs = 600_000

/** One command at a time changes the packs of a home: npm does not cope with a second one, and each lists what it installed. */
export const oneAtATime = <T>(home: string, work: () => Promise<T>): Promise<T> =>
  withLock(join(home, `${installedDir}.lock`), work, { timeoutMs: waitMs })

/** Installs a package below the home; resolves to its name, and to the way back to what was there before. */
export async function install(home: string, spec: string, io: Io): Promise<{ name: string; undo: () => Promise<void> }> {
  const dir = join(home, installedDir)
  const before = `${dir}.before`
  const manifest = join(dir, 'package.json')
  await rm(before, { recursive: true, force: true }) // of a command that was killed
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  if (!existsSync(manifest)) writeFileSync(manifest, '{ "private": true }\n')
  await cp(dir, before, { recursive: true, verbatimSymlinks: true, mode: constants.COPYFILE_FICLONE })
  const undo = async () => {
    await rm(dir, { recursive: true, force: true })
    await rename(before, dir)
  }
  try {
    await npm(home, ['install', spec], io)
    const { dependencies = {} } = JSON.parse(readFileSync(manifest, 'utf8')) as { dependencies?: Record<string, string> }
    const wanted = spec.replace(/(?<=.)@[^/]*$/, '')
    const found = Object.entries(dependencies).find(
      ([name, from]) => name === wanted || (from.startsWith('file:') && basename(from) === basename(spec))
    )
    if (!found) throw new CommandError(`npm installed ${spec}, but not under a name that ${manifest} tells`)
    return { name: found[0], undo }
  } catch (error) {
    await undo()
    throw error
  }
}

/** Removes what `undo` of `install` would have put back. */
export const settle = (home: string): Promise<void> => rm(join(home, `${installedDir}.before`), { recursive: true, force: true })

/** Removes a package, if it was installed. */
export async function uninstall(home: string, spec: string, io: Io): Promise<void> {
  if (existsSync(join(home, installedDir, 'node_modules', spec))) await npm(home, ['uninstall', spec], io)
}

/** What svc-code itself brings is not installed beside it: a pack gets the kernel that runs it. */
async function npm(home: string, args: readonly string[], { env, err }: Io): Promise<void> {
  const all = [
    ...args,
    '--prefix',
    join(home, installedDir),
    '--legacy-peer-deps',
    '--omit=dev',
    '--no-audit',
    '--no-fund',
    '--loglevel=error'
  ]
  const code = await new Promise<number | null>((done, fail) => {
    const child = spawn('npm', all, { env: { ...process.env, ...env }, stdio: ['ignore', 'ignore', 'pipe'] })
    child.stderr.on('data', chunk => err(String(chunk)))
    child.once('error', error => fail(new CommandError(`npm cannot be run: ${error.message}`)))
    child.once('close', done)
  })
  if (code !== 0) throw new CommandError(`npm ${args.join(' ')} ended with code ${code}`)
}
