/** Stored credentials: what one is worth at a moment, and its file as it is met on disk: of any origin, size and mode. */
import { readFileSync, statSync } from 'node:fs'
import { chmod, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { checker } from '../../kernel/index.ts'
import type { LoginStatus } from '../llm/index.ts'
import { Credential } from './contract.ts'

/** Stored after the authorization server refused the grant: nobody tries it again. */
export const tombstone: Credential = { access_token: '', refresh_token: '', expires_at: 0, scope: '', token_type: '', expires_in: 0 }

const REFRESH_MARGIN_S = 300

/** State of a login whose credential is stored, or is not. */
export function loginStatus(credential: Credential | undefined, now: Date): LoginStatus {
  if (!credential) return 'unauthenticated'
  if (isUsable(credential, now) || credential.refresh_token !== '') return 'authenticated'
  return credential.access_token === '' ? 'revoked' : 'expired'
}

/** The access token can be sent. */
export function isUsable(credential: Credential, now: Date): boolean {
  return credential.access_token !== '' && secondsLeft(credential, now) > 0
}

/** Less than 300 s or half of the token's life is left; or more than all of it, because the clock was set back since it was issued. */
export function isDue(credential: Credential, now: Date): boolean {
  const left = secondsLeft(credential, now)
  return left < Math.max(REFRESH_MARGIN_S, credential.expires_in / 2) || left > credential.expires_in + REFRESH_MARGIN_S
}

/** A token answer as it is stored; undefined when it lacks a token or its life. `refresh_token`: kept when the answer brings none. */
export function readCredential(answer: Readonly<Record<string, unknown>>, now: Date, refresh_token?: string): Credential | undefined {
  const { access_token, scope, token_type } = answer
  const next = answer.refresh_token ?? refresh_token
  const expires_in = Number(answer.expires_in)
  if (typeof access_token !== 'string' || access_token === '' || typeof next !== 'string' || next === '') return undefined
  if (!Number.isFinite(expires_in) || expires_in <= 0) return undefined
  return {
    access_token,
    refresh_token: next,
    expires_at: Math.floor(now.getTime() / 1000 + expires_in),
    scope: typeof scope === 'string' ? scope : '',
    token_type: typeof token_type === 'string' ? token_type : 'Bearer',
    expires_in
  }
}

function secondsLeft({ expires_at }: Credential, now: Date): number {
  return expires_at - now.getTime() / 1000
}

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
