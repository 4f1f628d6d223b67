/** What a stored credential is worth at a moment. Pure. */
import type { LoginStatus } from '../llm/index.ts'
import type { Credential } from './contract.ts'

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
