/** Addresses: which of them are this machine's own, and which Host and Origin headers are accepted (DNS rebinding, foreign web pages, CORS). */
import type { IncomingMessage } from 'node:http'
import { BlockList, isIP } from 'node:net'
import type { FilledOptions } from '../environment.ts'

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8)
loopback.addAddress('::1', 'ipv6')

/** 127.*, ::1 and the name `localhost`; nobody knows what other names resolve to. */
export function isLoopback(host: string): boolean {
  const name = bareHost(host)
  const family = isIP(name)
  return family === 0 ? name === 'localhost' : loopback.check(name, family === 4 ? 'ipv4' : 'ipv6')
}

/** Lower case, without brackets and zone id. */
export function bareHost(host: string): string {
  const name = host.trim().toLowerCase()
  const inner = name.startsWith('[') && name.endsWith(']') ? name.slice(1, -1) : name
  const zone = inner.indexOf('%')
  return zone > 0 && inner.includes(':') ? inner.slice(0, zone) : inner
}

/** `none`: no web page that we could tell. `refused`: a page of an origin that is not accepted. */
export type OriginVerdict = 'none' | 'allowed' | 'refused'

type OriginOptions = Pick<FilledOptions, 'host'> &
  Partial<Pick<FilledOptions, 'allowedHosts' | 'corsOrigins' | 'disableHostCheck' | 'dangerousBypassAuth'>>

export class OriginPolicy {
  readonly #names = new Set<string>()
  readonly #suffixes: string[] = []
  readonly #origins: Set<string>
  readonly #anyHost: boolean
  /** Without a credential to protect it, the server trusts its own pages and those that the operator named. */
  readonly #strict: boolean

  /** An entry of `allowedHosts` with a leading dot also admits every subdomain; `corsOrigins` are accepted wherever the server is reached. */
  constructor({ host, allowedHosts = [], corsOrigins = [], disableHostCheck = false, dangerousBypassAuth = false }: OriginOptions) {
    const bound = bareHost(host)
    if (bound) this.#names.add(bound)
    for (const entry of allowedHosts) {
      const name = bareHost(entry)
      if (name.startsWith('.') && name.length > 1) {
        this.#names.add(name.slice(1))
        this.#suffixes.push(name)
      } else if (name) this.#names.add(name)
    }
    this.#origins = new Set(corsOrigins.map(plainOrigin))
    this.#anyHost = disableHostCheck
    this.#strict = dangerousBypassAuth
    if (this.#strict) this.#origins.delete('null') // any page can call itself that
  }

  /** Text of the refusal, or undefined when every Host of the request is allowed. Missing and repeated headers are refused. */
  refuseHost(req: IncomingMessage): string | undefined {
    if (this.#anyHost) return undefined
    const host = req.headers.host
    if (host === undefined || host === '') return 'the Host header is missing'
    let count = 0 // the library shows only the first
    for (let i = 0; i < req.rawHeaders.length; i += 2)
      if (req.rawHeaders[i]!.length === 4 && req.rawHeaders[i]!.toLowerCase() === 'host') count++
    if (count > 1) return 'the Host header is repeated'
    if (!this.#allowsHost(host)) return hostRefusal(host)
    const authority = req.url?.startsWith('/') ? undefined : absoluteAuthority(req.url ?? '')
    return authority === undefined || this.#allowsHost(authority) ? undefined : hostRefusal(authority)
  }

  /** With a credential, an Origin that cannot be parsed (`null`) counts as none: such a request is served without CORS headers. */
  judge({ headers }: IncomingMessage): OriginVerdict {
    const { origin } = headers
    if (origin === undefined) return this.#strict && fromOtherSite(headers) ? 'refused' : 'none'
    if (this.#origins.has(plainOrigin(origin))) return 'allowed'
    if (this.#strict) return isSameOrigin(origin, headers.host) ? 'allowed' : 'refused'
    const name = originHost(origin)
    if (name === undefined) return 'none'
    const host = hostName(headers.host ?? '')
    if (host === undefined) return 'refused'
    return name === host || (isLoopbackName(name) && isLoopbackName(host)) ? 'allowed' : 'refused'
  }

  /** Accepts `name`, `name:port`, `1.2.3.4`, `[::1]:80`. */
  #allowsHost(host: string): boolean {
    const name = hostName(host)
    if (name === undefined) return false
    if (name === 'localhost' || name.endsWith('.localhost') || isIP(name) !== 0 || this.#names.has(name)) return true
    return this.#suffixes.some(suffix => name.endsWith(suffix))
  }
}

const defaultHeaders = 'Content-Type, Authorization, X-Svc-Client-Id, X-Svc-Client-Name, X-Svc-Client-Version, X-Svc-Client-Ui-Mode'

/** Of every answer: what a cache keeps for a page of one origin, or for none, must not be given to a page of another one. */
export const originHeaders: Readonly<Record<string, string>> = { vary: 'Origin' }

/** CORS headers of an accepted Origin, which may read every header. No credentials header: the token never travels as a cookie. */
export function corsHeaders(req: IncomingMessage): Record<string, string> {
  const asked = req.headers['access-control-request-headers']
  return {
    'access-control-allow-origin': req.headers.origin ?? '',
    'access-control-allow-methods': 'GET, POST, PUT, PATCH, DELETE, OPTIONS',
    'access-control-allow-headers': asked || defaultHeaders,
    'access-control-expose-headers': '*',
    'access-control-max-age': '600'
  }
}

/** Authority of an absolute-form request target (RFC 9112 §3.2.2), undefined for the usual origin form. */
function absoluteAuthority(target: string): string | undefined {
  return /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i.exec(target)?.[1]
}

function hostRefusal(host: string): string {
  const name = (hostName(host) ?? host).slice(0, 100)
  return `host '${name}' is not allowed; start the server with --allowed-host ${name} to accept it`
}

/** Lower-case name without port; undefined when the text is no host at all. */
function hostName(host: string): string | undefined {
  const match = /^(?:\[([0-9a-f:.]+)\]|([^:[\]@/\\\s]+))(?::\d*)?$/i.exec(host)
  return (match?.[1] ?? match?.[2])?.toLowerCase()
}

function plainOrigin(origin: string): string {
  return origin.trim().toLowerCase().replace(/\/$/, '')
}

function originHost(origin: string): string | undefined {
  const match = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]+)$/i.exec(origin)
  return match?.[1] === undefined ? undefined : hostName(match[1])
}

/** Host and port of a page and of the server are the same. The scheme is not compared: TLS may end in a proxy. */
function isSameOrigin(origin: string, host = ''): boolean {
  const [, scheme, authority] = /^(https?):\/\/([^/?#]+)$/.exec(origin.toLowerCase()) ?? []
  const standard = scheme === 'https' ? /:443$/ : /:80$/
  return authority !== undefined && authority.replace(standard, '') === host.toLowerCase().replace(standard, '')
}

/** What a browser says about a request that it sends without an Origin (Fetch Metadata). */
function fromOtherSite(headers: IncomingMessage['headers']): boolean {
  const site = headers['sec-fetch-site']
  return site === 'cross-site' || site === 'same-site'
}

function isLoopbackName(name: string): boolean {
  return name.endsWith('.localhost') || isLoopback(name)
}
