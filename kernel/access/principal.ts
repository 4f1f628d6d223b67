/** Who asks: found by the gate for every request and upgrade, handed to handlers, and what it may use. */

export interface Principal {
  /** Names the credential without being one; a rotated token gets another id. */
  readonly id: string
  /** `bypass`: authentication is off. `in-process`: code of this server. `anonymous`: a route without authentication. */
  readonly kind: 'token' | 'password' | 'bypass' | 'in-process' | 'anonymous'
  /** Everything, or the scopes that routes and frames ask for by name. */
  readonly scopes: 'all' | readonly string[]
}

/** What routes and frames ask for that name no scope. */
export const defaultScope = 'api'

/** Nobody in particular: the principal of requests that no credential was asked for. */
export const anonymous: Principal = { id: 'anonymous', kind: 'anonymous', scopes: [] }

/** Code of this process that asks without saying for whom. */
export const inProcess: Principal = { id: 'in-process', kind: 'in-process', scopes: 'all' }
