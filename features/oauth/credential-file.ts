/** Credential files as they are met on disk: of any origin, size and mode. */
import { readFileSync, statSync } from 'node:fs'
import { chmod, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { checker } from '../../kernel/index.ts'
import { Credential } from './contract.ts'

const LIMIT_BYTES = 64 * 1024

/** `<home>/credentials`. */
const credentialDir = (home: string): string => join(home, 'credentials')

const credentialFile = (home: string, slot: string): string => join(credentialDir(home), `${slot}.json`)

/** A credential, read in place for callers that cannot wait. Undefined: no file, or none that can be one. */
export function readCredentialFile(home: string, slot: string): Credential | undefined {
  const file = credentialFile(home, slot)
  try {
    if (!fits(statSync(file))) return undefined
    const value: unknown = JSON.parse(readFileSync(file, 'utf8'))
    return checker(Credential).Check(value) ? value : undefined
  } catch {
    return undefined // no file, or none that can be read: the same for who asks
  }
}

/** False for what would hold the reader up: a pipe, a device, a file far too large. */
export async function canBeCredential(home: string, slot: string): Promise<boolean> {
  try {
    return fits(await stat(credentialFile(home, slot)))
  } catch {
    return false // as above
  }
}

function fits(found: { isFile(): boolean; size: number }): boolean {
  return found.isFile() && found.size <= LIMIT_BYTES
}

/** Takes the rights of others away from the directory and its files, where a copy or a backup has given them. Answers what was changed. */
export async function tightenCredentials(home: string): Promise<string[]> {
  const dir = credentialDir(home)
  const changed: string[] = []
  const names = await readdir(dir).catch(() => undefined)
  if (!names) return changed // no login yet
  await tighten(dir, 0o700, changed)
  for (const name of names) if (name.endsWith('.json')) await tighten(join(dir, name), 0o600, changed)
  return changed
}

async function tighten(path: string, mode: number, changed: string[]): Promise<void> {
  try {
    if (((await stat(path)).mode & 0o077) === 0) return
    await chmod(path, mode)
    changed.push(path)
  } catch {
    // Somebody else's file, or gone by now: it is no worse than before.
  }
}
