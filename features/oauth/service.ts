/** What other packs get from the managed login. */
import { serviceToken } from '../../kernel/index.ts'
import type { LoginStatus } from '../providers/index.ts'

export interface AccessTokenOptions {
  /** Refresh even when the token still lives: the upstream answered 401. */
  readonly force?: boolean
  /** Ends the wait of this caller; a refresh that began goes on for the others. */
  readonly signal?: AbortSignal
}

export interface ManagedLogin {
  /**
   * State of the stored login: `expired` when the access token is over and nothing can renew it, `revoked` when the authorization server
   * refused the grant. Reads the credential file, which other servers on the home may have changed.
   */
  status(provider_id: string): LoginStatus
  /**
   * A valid access token, refreshed when due (less than half of its life or 300 s left). Undefined: not logged in, expired or revoked.
   * Rejects with an error whose text may be shown when the authorization server could not be asked.
   */
  accessToken(provider_id: string, options?: AccessTokenOptions): Promise<string | undefined>
}

export const ManagedLogin = serviceToken<ManagedLogin>('managed-login')
