/** The port to logins: access tokens in place of keys. */
import { extensionPoint } from '../../kernel/index.ts'
import type { OauthRef } from './records.ts'
import type { LlmError } from './request.ts'

/** State of a stored login (contract 1, Auth readiness): `expired` needs another login, `revoked` was refused for good. */
export type LoginStatus = 'authenticated' | 'expired' | 'revoked' | 'unauthenticated'

/** How a token is asked for. */
export interface TokenOptions {
  /** Renew the token even when it still lives: the upstream answered 401. Default false. */
  readonly force?: boolean
  /** The token that was answered 401. One that is another by now is not renewed again. */
  readonly refused?: string | undefined
  /** Ends the wait of this caller; a renewal that began goes on for the others. */
  readonly signal?: AbortSignal
}

/** As `TokenOptions`, for the login of a provider or of a single model. */
export interface AccessTokenOptions extends TokenOptions {
  /** The login of this reference instead of the provider's own. */
  readonly oauth?: OauthRef | undefined
}

/** No access token can be had: the failure of the request that needs it. Its message is shown: no secret in it. */
export class TokenProblem extends Error {
  override readonly name = 'TokenProblem'
  readonly failure: LlmError

  constructor(failure: LlmError, cause?: unknown) {
    super(failure.message, { cause })
    this.failure = failure
  }
}

/** Access tokens of providers and models that are logged in instead of holding a key. `oauth`: the login is the one of a single model. */
export interface LlmLogin {
  /** `unauthenticated` for providers without a login. From memory or a small file, for callers that cannot wait. */
  status(provider_id: string, oauth?: OauthRef): LoginStatus
  /**
   * A valid token, renewed when due, or in any case with `force`. Undefined: no login that can give one. Rejects with TokenProblem, or
   * with another error whose text may be shown and which is worth another try.
   */
  accessToken(provider_id: string, options: AccessTokenOptions): Promise<string | undefined>
}

/** Asked where an `oauth` reference is the credential. The first that knows a login counts. */
export const LlmLogins = extensionPoint<LlmLogin>(
  'llm-logins',
  undefined,
  { status: 'function', accessToken: 'function' },
  { status: () => 'unauthenticated' }
)

/** The login that counts: the first that knows this one, else the first at all. */
export function loginOf(logins: readonly LlmLogin[], provider_id: string, oauth?: OauthRef): LlmLogin | undefined {
  return logins.find(login => login.status(provider_id, oauth) !== 'unauthenticated') ?? logins[0]
}
