/** The gate in front of every request and upgrade: ban, Host, Origin, credential (contract 1, Authentication). */
import type { IncomingMessage } from 'node:http'
import { Banned, type ErrorSpec, HostRefused } from '../errors.ts'
import type { Logger } from '../log/log.ts'
import { BanTable } from './ban.ts'
import { classifyBind } from './bind.ts'
import { corsHeaders, OriginPolicy } from './origin.ts'
import { Password } from './password.ts'
import type { Principal } from './principal.ts'
import { TokenFile } from './token.ts'

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

/** Undefined: the credential is missing or wrong. */
export type Identified = Principal | undefined | Promise<Principal | undefined>

export interface Gate {
  /** The server is bound to a loopback address: no ban, no security headers. */
  readonly loopback: boolean
  /** `--dangerous-bypass-auth`: every credential check answers true. */
  readonly bypass: boolean
  /** Sent with every response of a non-loopback bind; empty on loopback. */
  readonly securityHeaders: Readonly<Record<string, string>>
  /** Ban, then Host, then Origin. Synchronous; same for requests and upgrades. */
  check(req: IncomingMessage): GateVerdict
  /** Who the `Authorization` header says it is, masked in `req`; undefined for nobody, which counts for the ban. */
  authenticate(req: IncomingMessage): Identified
  /** Upgrade: the header decides when it carries a bearer token, else the first `svc-code.bearer.<token>` subprotocol. Counts failures. */
  authenticateSocket(req: IncomingMessage): Identified
  /** Is this text a valid token or the password? Does not count for the ban. */
  checkToken(token: string): boolean | Promise<boolean>
  close(): void
}

export interface GateOptions {
  /** The token file lives here and is made at the first boot. */
  readonly home: string
  /** Bound host: it decides the bind class and is an allowed Host. */
  readonly host: string
  readonly log: Logger
  readonly now: () => Date
  /** Accepted as an alternative bearer value. */
  readonly password?: string | undefined
  readonly dangerousBypassAuth?: boolean | undefined
  readonly allowedHosts?: readonly string[] | undefined
  readonly disableHostCheck?: boolean | undefined
  readonly corsOrigins?: readonly string[] | undefined
}

/** Subprotocol prefix that carries a token on the upgrade (contract 1, Authentication rule 4). */
export const bearerProtocol = 'svc-code.bearer.'

const bearer = 'Bearer '
const bypassed: Principal = { id: 'bypass', kind: 'bypass', scopes: 'all' }
const byPassword: Principal = { id: 'password', kind: 'password', scopes: 'all' }
const masked = 'Bearer ***'

const exposedHeaders: Readonly<Record<string, string>> = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'content-security-policy':
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; " +
    "form-action 'self'; base-uri 'none'; frame-ancestors 'self'"
}

/** Reads (or makes) the token and hashes the password. Rejects when the token file is readable by others. */
export async function createGate(options: GateOptions): Promise<Gate> {
  const warn = (reason: string) => options.log.warn({ reason }, 'token rotation ignored')
  const [token, password] = await Promise.all([
    TokenFile.open(options.home, warn),
    options.password ? Password.from(options.password) : undefined
  ])
  return new ServerGate(options, token, password)
}

class ServerGate implements Gate {
  readonly loopback: boolean
  readonly bypass: boolean
  readonly securityHeaders: Readonly<Record<string, string>>
  readonly #now: () => Date
  readonly #origin: OriginPolicy
  readonly #bans: BanTable | undefined
  readonly #token: TokenFile
  readonly #password: Password | undefined

  constructor(options: GateOptions, token: TokenFile, password: Password | undefined) {
    this.loopback = classifyBind(options.host) === 'loopback'
    this.bypass = options.dangerousBypassAuth ?? false
    this.securityHeaders = this.loopback ? {} : exposedHeaders
    this.#now = options.now
    this.#origin = new OriginPolicy(options)
    this.#bans = this.loopback ? undefined : new BanTable()
    this.#token = token
    this.#password = password
  }

  check(req: IncomingMessage): GateVerdict {
    if (this.#bans && this.#bans.size > 0 && this.#bans.banned(peer(req), this.#time())) {
      return { refusal: { spec: Banned, message: Banned.message }, origin: 'none' }
    }
    const refusal = this.#origin.refuseHost(req, countHeader(req, 'host'))
    if (refusal !== undefined) return { refusal: { spec: HostRefused, message: refusal }, origin: 'none' }
    const origin = this.#origin.judge(req)
    return origin === 'allowed' ? { origin, headers: corsHeaders(req) } : { origin }
  }

  authenticate(req: IncomingMessage): Identified {
    const credential = takeAuthorization(req)
    return this.#counted(req, this.#identify(credential))
  }

  authenticateSocket(req: IncomingMessage): Identified {
    const fromHeader = takeAuthorization(req)
    return this.#counted(req, this.#identify(fromHeader === null ? undefined : fromHeader || offeredToken(req)))
  }

  checkToken(token: string): boolean | Promise<boolean> {
    const found = this.#identify(token)
    return found instanceof Promise ? found.then(Boolean) : found !== undefined
  }

  #identify(credential: string | null | undefined): Identified {
    if (this.bypass) return bypassed
    if (!credential) return undefined
    if (this.#token.matches(credential)) return this.#token.principal
    const verified = this.#password?.verify(credential) ?? false
    return verified instanceof Promise ? verified.then(right => (right ? byPassword : undefined)) : verified ? byPassword : undefined
  }

  close(): void {
    this.#bans?.clear()
  }

  #counted(req: IncomingMessage, found: Identified): Identified {
    if (found instanceof Promise) return found.then(principal => this.#counted(req, principal))
    if (!found) this.#bans?.fail(peer(req), this.#time())
    return found
  }

  #time(): number {
    return this.#now().getTime()
  }
}

/** The bearer value, undefined without one, null for a repeated header. It is masked so that neither handlers nor logs see it. */
function takeAuthorization(req: IncomingMessage): string | null | undefined {
  const header = req.headers.authorization
  if (header === undefined) return undefined
  if (maskAuthorization(req) > 1) return null
  if (!header.startsWith(bearer)) return undefined
  const value = header.slice(bearer.length)
  // Header bytes arrive as Latin-1; a password may be UTF-8.
  return /[^ -~]/.test(value) ? Buffer.from(value, 'latin1').toString('utf8') : value
}

/** Replaces every Authorization value of the request by a placeholder; returns how many there were. */
export function maskAuthorization(req: IncomingMessage): number {
  if (req.headers.authorization === undefined) return 0
  req.headers.authorization = masked
  const raw = req.rawHeaders
  let count = 0
  for (let i = 0; i < raw.length; i += 2) {
    if (raw[i]!.length !== 13 || raw[i]!.toLowerCase() !== 'authorization') continue
    raw[i + 1] = masked
    count++
  }
  return count
}

/** First entry of `Sec-WebSocket-Protocol` with the bearer prefix decides. */
function offeredToken(req: IncomingMessage): string | undefined {
  const offered = req.headers['sec-websocket-protocol']
  const entry = offered
    ?.split(',')
    .map(part => part.trim())
    .find(part => part.startsWith(bearerProtocol))
  return entry?.slice(bearerProtocol.length)
}

function countHeader(req: IncomingMessage, name: string): number {
  const raw = req.rawHeaders
  let count = 0
  for (let i = 0; i < raw.length; i += 2) {
    const key = raw[i]!
    if (key.length === name.length && key.toLowerCase() === name) count++
  }
  return count
}

function peer(req: IncomingMessage): string {
  const address = req.socket.remoteAddress ?? ''
  return address.startsWith('::ffff:') ? address.slice(7) : address
}
