/** The gate in front of every request and upgrade: ban, Host, Origin, credential (contract 1, Authentication). */
import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { Environment } from '../environment.ts'
import { AppError, Banned, HostRefused } from '../errors.ts'
import { corsHeaders, isLoopback, OriginPolicy, type OriginVerdict, originHeaders } from './origin.ts'
import type { Principal } from './principal.ts'
import { Password, TokenFile } from './token.ts'

interface GateVerdict {
  /** Set: answer this and nothing else, also an upgrade (403 Host, 429 ban). */
  readonly refusal?: AppError | undefined
  /** REST serves what reads for a `refused` one without CORS headers; an upgrade answers 403. */
  readonly origin: OriginVerdict
  /** For every answer: `Vary`, the security headers, and the CORS headers of an accepted Origin. */
  readonly headers: Readonly<Record<string, string>>
}

const bearer = 'Bearer '
const masked = 'Bearer ***'
const bypassed: Principal = { id: 'bypass', kind: 'bypass', scopes: 'all' }
const byPassword: Principal = { id: 'password', kind: 'password', scopes: 'all' }

const exposedHeaders: Readonly<Record<string, string>> = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'content-security-policy':
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; " +
    "form-action 'self'; base-uri 'none'; frame-ancestors 'self'"
}

/** With a credential nothing is served to a page that only embeds it; without one, other origins would run its scripts and show its images. */
const unshared: Readonly<Record<string, string>> = { 'cross-origin-resource-policy': 'same-origin' }

/** Reads (or makes) the token and hashes the password. Rejects when the token file is readable by others or no file. */
export async function createGate(env: Environment): Promise<Gate> {
  const { home, password } = env.options
  const warn = (reason: string) => env.log.warn({ reason }, 'token rotation ignored')
  const [token, hashed] = await Promise.all([TokenFile.open(home, warn), password ? Password.from(password) : undefined])
  return new Gate(env, token, hashed)
}

export class Gate {
  /** The server is bound to a loopback address: no ban, no security headers. */
  readonly loopback: boolean
  /** `--dangerous-bypass-auth`: every credential check answers yes; web pages of other origins change nothing and get no socket. */
  readonly bypass: boolean
  /** Subprotocol prefix that carries a token on the upgrade (contract 1, Authentication rule 4). */
  readonly bearerProtocol: string
  /** Sent with every response of a non-loopback bind; empty on loopback. */
  readonly securityHeaders: Readonly<Record<string, string>>
  readonly #headers: Readonly<Record<string, string>>
  readonly #now: () => Date
  readonly #origin: OriginPolicy
  readonly #bans: BanTable | undefined
  readonly #token: TokenFile
  readonly #password: Password | undefined
  #unwatch: (() => void) | undefined

  /** Use `createGate`. */
  constructor(env: Environment, token: TokenFile, password: Password | undefined) {
    const { options } = env
    this.bearerProtocol = `${options.product}.bearer.`
    this.loopback = isLoopback(options.host)
    this.bypass = options.dangerousBypassAuth
    this.securityHeaders = this.loopback ? {} : exposedHeaders
    this.#headers = { ...this.securityHeaders, ...originHeaders, ...(this.bypass ? unshared : {}) }
    this.#now = env.now
    this.#origin = new OriginPolicy(options)
    this.#bans = this.loopback ? undefined : new BanTable()
    this.#token = token
    this.#password = password
  }

  /** Ban, then Host, then Origin. Synchronous; same for requests and upgrades. */
  check(req: IncomingMessage): GateVerdict {
    const wrongHost = this.#origin.refuseHost(req)
    const origin = wrongHost === undefined ? this.#origin.judge(req) : 'none'
    const headers = origin === 'allowed' ? { ...this.#headers, ...corsHeaders(req) } : this.#headers
    // Without a credential nothing else keeps a foreign page from it: simple requests come without a preflight.
    const wrongPage = origin === 'refused' && this.bypass && changes(req) ? originRefusal(req) : undefined
    const message = wrongHost ?? wrongPage
    const isBanned = this.#bans?.banned(peer(req), this.#time())
    const refusal = isBanned ? new AppError(Banned) : message === undefined ? undefined : new AppError(HostRefused, { message })
    return { refusal, origin, headers }
  }

  /** Who the `Authorization` header says it is, masked in `req`; undefined for nobody, which counts for the ban. Rejects with Banned (42901). */
  authenticate(req: IncomingMessage): Promise<Principal | undefined> {
    return this.#counted(req, takeAuthorization(req))
  }

  /** As `authenticate`, of an upgrade: the header decides when it carries a bearer token, else the first `<product>.bearer.<token>` subprotocol. */
  authenticateSocket(req: IncomingMessage): Promise<Principal | undefined> {
    const fromHeader = takeAuthorization(req)
    return this.#counted(req, ...(fromHeader === null ? [] : fromHeader ? [fromHeader] : offeredTokens(req, this.bearerProtocol)))
  }

  /** Is this text a valid token or the password? Does not count for the ban. */
  async checkToken(token: string): Promise<boolean> {
    return (await this.#identify(token)) !== undefined
  }

  /** Hears, within a second, of principals whose credential is no longer valid. One listener, until `close`. */
  onRevoked(listener: (principal: Principal) => void): void {
    this.#unwatch?.()
    this.#unwatch = this.#token.watch(listener)
  }

  close(): void {
    this.#unwatch?.()
  }

  /** Undefined: the credential is missing or wrong. */
  async #identify(credential: string | null | undefined): Promise<Principal | undefined> {
    if (this.bypass) return bypassed
    if (!credential) return undefined
    return (await this.#token.identify(credential)) ?? ((await this.#password?.verify(credential)) ? byPassword : undefined)
  }

  /** The first of the readings of one credential that is right. */
  async #counted(req: IncomingMessage, ...readings: (string | null | undefined)[]): Promise<Principal | undefined> {
    let found = await this.#identify(readings[0])
    for (const reading of readings.slice(1)) found ??= await this.#identify(reading)
    const [address, now] = [peer(req), this.#time()]
    // Of many that come at once, all were let through before the first of them failed.
    if (this.#bans?.banned(address, now)) throw new AppError(Banned)
    if (!found) this.#bans?.fail(address, now)
    return found
  }

  #time(): number {
    return this.#now().getTime()
  }
}

/** Everything but the methods that read (RFC 9110 §9.2.1); OPTIONS is answered without a handler. */
function changes({ method }: IncomingMessage): boolean {
  return method !== 'GET' && method !== 'HEAD' && method !== 'OPTIONS'
}

function originRefusal({ headers }: IncomingMessage): string {
  const origin = (headers.origin ?? 'of another site').slice(0, 100)
  return `the web page ${origin} may not change anything while authentication is off; start the server with --cors-origin to accept it`
}

/**
 * The bearer value, undefined without one, null for a repeated header. Every Authorization value of the request is masked, so that neither
 * handlers nor logs see it.
 */
export function takeAuthorization(req: IncomingMessage): string | null | undefined {
  const header = req.headers.authorization
  if (header === undefined) return undefined
  req.headers.authorization = masked
  const raw = req.rawHeaders
  let count = 0
  for (let i = 0; i < raw.length; i += 2) {
    if (raw[i]!.length !== 13 || raw[i]!.toLowerCase() !== 'authorization') continue
    raw[i + 1] = masked
    count++
  }
  if (count > 1) return null
  if (!header.startsWith(bearer)) return undefined
  const value = header.slice(bearer.length)
  // Header bytes arrive as Latin-1: a program sends a password as UTF-8, a browser as far as Latin-1 goes.
  if (!/[^ -~]/.test(value)) return value
  const bytes = Buffer.from(value, 'latin1')
  return isUtf8(bytes) ? bytes.toString('utf8') : value
}

/** First entry of `Sec-WebSocket-Protocol` with the bearer prefix decides: as it stands, and percent-decoded, for few characters may stand there. */
function offeredTokens(req: IncomingMessage, prefix: string): string[] {
  const offered = req.headers['sec-websocket-protocol']
  const entry = offered
    ?.split(',')
    .map(part => part.trim())
    .find(part => part.startsWith(prefix))
  const text = entry?.slice(prefix.length)
  if (!text?.includes('%')) return text ? [text] : []
  try {
    return [text, decodeURIComponent(text)]
  } catch {
    return [text]
  }
}

function peer(req: IncomingMessage): string {
  const address = req.socket.remoteAddress ?? ''
  return address.startsWith('::ffff:') ? address.slice(7) : address
}

/** So many failures within `banMs` start a ban, which lasts as long (contract 1, Authentication rule 6). */
const maxFailures = 10
const banMs = 60_000

/** Failed authentications by address, the latest behind. Time is passed in, ms. */
export class BanTable {
  readonly #addresses = new Map<string, { readonly failures: readonly number[]; readonly last: number; readonly bannedUntil: number }>()
  readonly #capacity: number

  /** `capacity`: addresses remembered at once; the first of those that are not banned leaves for a new one. */
  constructor(capacity = 10_000) {
    this.#capacity = capacity
  }

  get size(): number {
    return this.#addresses.size
  }

  banned(address: string, now: number): boolean {
    return now < (this.#addresses.get(address)?.bannedUntil ?? 0)
  }

  /** A success never resets the count. */
  fail(address: string, last: number): void {
    const { failures: before, bannedUntil } = this.#addresses.get(address) ?? { failures: [], bannedUntil: 0 }
    const failures = [...before.filter(at => last - at <= banMs), last]
    this.#addresses.delete(address)
    this.#makeRoom(last)
    const isFull = failures.length >= maxFailures
    this.#addresses.set(address, { last, ...(isFull ? { failures: [], bannedUntil: last + banMs } : { failures, bannedUntil }) })
  }

  /** What is over leaves, too. */
  #makeRoom(now: number): void {
    for (const [address, { last }] of this.#addresses) {
      if (now - last <= banMs) break
      this.#addresses.delete(address)
    }
    if (this.#addresses.size < this.#capacity) return
    const [oldest = ''] = this.#addresses.keys()
    const free = [...this.#addresses].find(([, { bannedUntil }]) => now >= bannedUntil)
    this.#addresses.delete(free?.[0] ?? oldest)
  }
}
