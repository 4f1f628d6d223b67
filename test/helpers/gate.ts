/** Gates for tests that need no token file. */
import type { Gate } from '../../kernel/access/gate.ts'

/** Lets everyone in; parts can be replaced. */
export function openGate(parts: Partial<Gate> = {}): Gate {
  return {
    loopback: true,
    bypass: true,
    securityHeaders: {},
    check: () => ({ origin: 'none' }),
    authenticate: () => true,
    authenticateSocket: () => true,
    checkToken: token => token === 'good',
    close() {},
    ...parts
  }
}
