/** Who asks: found by the gate for every request and upgrade, handed to handlers, and what it may use. */
import { AppError, ScopeMissing } from '../errors.ts'

export interface Principal {
  /** Names the credential without being one; a rotated token gets another id. */
  readonly id: string
  /** `bypass`: authentication is off. `in-process`: code of this server. `anonymous`: a route without authentication. */
  readonly kind: 'token' | 'password' | 'bypass' | 'in-process' | 'anonymous'
  /** Everything, or the scopes that routes and frames ask for by name. */
  readonly scopes: 'all' | readonly string[]
}

/** Scope of routes and frames that name none. */
const defaultScope = 'api'

/** Nobody in particular: the principal of requests that no credential was asked for. */
export const anonymous: Principal = { id: 'anonymous', kind: 'anonymous', scopes: [] }

/** Code of this process that asks without saying for whom. */
export const inProcess: Principal = { id: 'in-process', kind: 'in-process', scopes: 'all' }

/** Throws ScopeMissing (40302) when the principal lacks the scope. */
export function requireScope(principal: Principal, scope: string = defaultScope): void {
  if (principal.scopes === 'all' || principal.scopes.includes(scope)) return
  throw new AppError(ScopeMissing, { message: `the credential lacks the scope '${scope}'` })
}
