/** Gates for tests that need no token file. */
import { Gate } from '../../kernel/access/gate.ts'
import type { Principal } from '../../kernel/access/principal.ts'
import { TokenFile } from '../../kernel/access/token.ts'
import { testEnvironment } from '../../kernel/testing.ts'

const everyone: Principal = { id: 'bypass', kind: 'bypass', scopes: 'all' }

/** Lets everyone in; the token is `good`. Parts can be replaced. */
export function openGate(parts: Partial<Gate> = {}): Gate {
  const token = new TokenFile('/dev/null/server.token', 'good', '', () => undefined)
  const open = {
    bypass: true,
    check: () => ({ origin: 'none' as const }),
    authenticate: async () => everyone,
    authenticateSocket: async () => everyone
  }
  return Object.assign(new Gate(testEnvironment(), token, undefined), open, parts)
}
