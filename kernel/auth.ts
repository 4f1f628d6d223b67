/** The gate in front of every request and upgrade: ban, Host, Origin, credential (contract 1, Authentication). */
import type { IncomingMessage } from 'node:http'
import type { ErrorSpec } from './errors.ts'

/** Why a request is refused before routing. `spec.status` is the HTTP status (403 Host, 429 ban), also for a raw upgrade answer. */
export interface GateRefusal {
  readonly spec: ErrorSpec
  readonly message: string
}

export interface GateVerdict {
  /** Set: answer this and nothing else. */
  readonly refusal?: GateRefusal | undefined
  /** `none`: no Origin, or an unparsable one. REST serves `refused` without CORS headers; an upgrade answers 403. */
  readonly origin: 'none' | 'allowed' | 'refused'
  /** CORS headers of an accepted Origin. */
  readonly headers?: Readonly<Record<string, string>> | undefined
}

export interface Gate {
  /** The server is bound to a loopback address: no ban, no security headers. */
  readonly loopback: boolean
  /** `--dangerous-bypass-auth`: every credential check answers true. */
  readonly bypass: boolean
  /** Sent with every response of a non-loopback bind; empty on loopback. */
  readonly securityHeaders: Readonly<Record<string, string>>
  /** Ban, then Host, then Origin. Synchronous; same for requests and upgrades. */
  check(req: IncomingMessage): GateVerdict
  /** Checks the `Authorization` header and masks it in `req`. A failure counts for the ban. */
  authenticate(req: IncomingMessage): boolean | Promise<boolean>
  /** Upgrade: the header decides when it carries a bearer token, else the first `svc-code.bearer.<token>` subprotocol. Counts failures. */
  authenticateSocket(req: IncomingMessage): boolean | Promise<boolean>
  /** Is this text a valid token or the password? Does not count for the ban. */
  checkToken(token: string): boolean | Promise<boolean>
  close(): void
}
