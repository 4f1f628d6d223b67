/** Which paths need no credential (contract 1, Authentication rules 1 and 2). */
import type { AnyRoute } from '../contract.ts'

/** Served without a credential: `auth: 'none'`, which below `/api` counts for GET only. */
export function isOpenRoute(spec: Pick<AnyRoute, 'auth' | 'method' | 'path'>): boolean {
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
