/** Who asks: found by the gate for every request and upgrade, handed to handlers, and what it may use. */

export interface Principal {
  /** Names the credential without being one; a rotated token gets another id. */
  readonly id: string
  /** `bypass`: authentication is off. `in-process`: code of this server. `anonymous`: a route without authentication. */
  readonly kind: 'token' | 'password' | 'bypass' | 'in-process' | 'anonymous'
  /** Everything, or the scopes that routes and frames ask for by name. */
  readonly scopes: 'all' | readonly string[]
}

/** Scope of routes and frames that name none. */
export const defaultScope = 'api'

/** Nobody in particular: the principal of requests that no credential was asked for. */
export const anonymous: Principal = { id: 'anonymous', kind: 'anonymous', scopes: [] }

export function mayUse(principal: Principal, scope: string = defaultScope): boolean {
  return principal.scopes === 'all' || principal.scopes.includes(scope)
}
