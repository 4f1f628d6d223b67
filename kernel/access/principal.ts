/** Who asks: found by the gate for every request and upgrade, handed to handlers; what it may use, and which paths need nobody. */
import { AppError, ScopeMissing } from '../errors.ts'

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

/** Throws ScopeMissing (40302) when the principal lacks the scope. */
export function requireScope(principal: Principal, scope = defaultScope): void {
  if (principal.scopes === 'all' || principal.scopes.includes(scope)) return
  throw new AppError(ScopeMissing, { message: `the credential lacks the scope '${scope}'` })
}

/** Served without a credential: `auth: 'none'`, which below `/api` counts for GET only (contract 1, Authentication rules 1 and 2). */
export function isOpenRoute(spec: { readonly auth?: 'token' | 'none'; readonly method: string; readonly path: string }): boolean {
  return spec.auth === 'none' && (spec.method === 'GET' || !isReserved(spec.path))
}

/**
 * Would any reading of this path lead into the API? Unknown paths that do need a credential before they are told apart (404).
 * Case, doubled slashes, backslashes, dot segments and repeated encoding are all seen through; what cannot be read counts as yes.
 */
export function isReserved(path: string): boolean {
  let text = path
  for (let round = 0; text.includes('%'); round++) {
    if (round === 4) return true
    try {
      const decoded = decodeURIComponent(text)
      if (decoded === text) break
      text = decoded
    } catch {
      return true // undecodable: nobody can say where it leads
    }
  }
  if (!text.startsWith('/')) return true
  const segments: string[] = []
  for (const segment of text.toLowerCase().replaceAll('\\', '/').split('/')) {
    if (segment === '..') segments.pop()
    else if (segment !== '' && segment !== '.') segments.push(segment)
  }
  const first = segments[0] ?? ''
  return first === 'api' || first === 'openapi.json' || first === 'asyncapi.json'
}
