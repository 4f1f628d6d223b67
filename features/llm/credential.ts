/** Which of the configured credentials a model is asked with. */
import { AppError } from '../../kernel/index.ts'
import { nonBlank, providerKey, providerKeyFile, providerToken } from './env-table.ts'
import type { LoginStatus } from './login.ts'
import type { ModelRecord, OauthRef, ProviderRecord } from './records.ts'
import type { ResolvedModel } from './request.ts'
import { CredentialRejected, type LlmAdapter, NoCredential } from './service.ts'

/** Whom the search asks. */
export interface CredentialSources {
  /** State of the login of a provider, or of the one that a model refers to itself. Default: nobody is logged in. */
  readonly loginStatus?: (provider_id: string, oauth?: OauthRef) => LoginStatus
}

/** Who needs the credential. */
interface CredentialUser {
  readonly alias: string
  /** Record of the file, `overrides` apart: they win as a whole. */
  readonly model: ModelRecord
  readonly provider_id: string
  readonly provider: ProviderRecord
  readonly adapter: LlmAdapter
}

type Credential = Pick<ResolvedModel, 'api_key' | 'bearer' | 'login' | 'oauth' | 'key_file'>

/**
 * First hit: key of the model, login of the model, nothing with `auth = "none"`, key of the provider, its `env` table (key, token, key
 * file), login of the provider. A login that cannot give a token is not passed over. Throws NoCredential (40111), or CredentialRejected
 * (40112) when it was refused.
 */
export function credentialOf(user: CredentialUser, sources: CredentialSources): Credential {
  const { model, provider, provider_id, alias, adapter } = user
  for (const own of [model.overrides, model]) {
    const api_key = nonBlank(own?.api_key)
    if (api_key) return { api_key }
    if (own?.oauth) return loggedIn(`model ${alias}`, user, sources, own.oauth)
  }
  if (provider.auth === 'none') return {}
  const api_key = providerKey(provider)
  if (api_key) return { api_key, ...(api_key === providerToken(provider) && { bearer: true }) }
  const key_file = adapter.authorize && providerKeyFile(provider, adapter.protocol)
  if (key_file) return { key_file }
  return provider.oauth ? loggedIn(`provider ${provider_id}`, user, sources) : {}
}

function loggedIn(who: string, { provider_id, adapter }: CredentialUser, { loginStatus }: CredentialSources, oauth?: OauthRef): Credential {
  const status = loginStatus?.(provider_id, oauth)
  if (status === 'authenticated') return { login: true, ...(oauth && { oauth }) }
  const details = { provider_id }
  if (status === 'revoked') {
    throw new AppError(CredentialRejected, { message: `the login of ${who} was refused; log in again`, details })
  }
  if (!adapter.needs_credential) return {}
  const message = status === 'expired' ? `the login of ${who} is over; log in again` : `${who} is not logged in`
  throw new AppError(NoCredential, { message, details })
}
