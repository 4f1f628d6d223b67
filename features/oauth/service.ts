/** What other packs get from the managed login. */
import { serviceToken } from '../../kernel/index.ts'
import type { AccessTokenOptions, LoginStatus, OauthRef } from '../llm/index.ts'

/** Logins by the provider that they belong to. */
export interface ManagedLogin {
  /**
   * State of the stored login: `expired` when the access token is over and nothing can renew it, `revoked` when the authorization server
   * refused the grant. Reads the credential file, which other servers on the home may have changed. `oauth`: of this reference instead.
   */
  status(provider_id: string, oauth?: OauthRef): LoginStatus
  /**
   * A valid access token, refreshed when due (less than half of its life or 300 s left). Undefined: not logged in, expired or revoked.
   * Rejects with an error whose text may be shown when the authorization server could not be asked.
   */
  accessToken(provider_id: string, options?: AccessTokenOptions): Promise<string | undefined>
}

/** The managed login, and those that the configuration sets up for other providers and models. */
export const ManagedLogin = serviceToken<ManagedLogin>('managed-login')
