/** What the providers pack asks of a pack that logs providers in. */
import { serviceToken } from '../../kernel/index.ts'
import type { loginStatuses } from './contract.ts'

/** Id of the provider that the managed login sets up. */
export const MANAGED_PROVIDER = 'managed:svc-code'

export type LoginStatus = (typeof loginStatuses)[number]

export interface ProviderLogins {
  /** State of the stored login of a provider; from memory, `unauthenticated` for unknown ids. */
  status(provider_id: string): LoginStatus
  /** A valid access token, refreshed when due. Rejects with a text that may be shown; abort ends the wait. */
  token(provider_id: string, signal: AbortSignal): Promise<string>
}

/** Optional: without it every login counts as `unauthenticated`. */
export const ProviderLogins = serviceToken<ProviderLogins>('provider-logins')
