/** Which Host and Origin headers are accepted: the defence against DNS rebinding and the CORS answer. */
import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { bareHost, classifyBind } from './bind.ts'

export interface OriginOptions {
  /** Bound host. */
  readonly host: string
  /** Extra host names; a leading dot also admits every subdomain. */
  readonly allowedHosts?: readonly string[] | undefined
  /** Full origins (`https://app.example`), accepted wherever the server is reached. */
  readonly corsOrigins?: readonly string[] | undefined
  readonly disableHostCheck?: boolean | undefined
}

const defaultHeaders = 'Content-Type, Authorization, X-Svc-Client-Id, X-Svc-Client-Name, X-Svc-Client-Version, X-Svc-Client-Ui-Mode'

export class OriginPolicy {
  readonly #names = new Set<string>()
  readonly #suffixes: string[] = []
  readonly #origins: Set<string>
  readonly #open: boolean

  constructor(options: OriginOptions) {
    const bound = bareHost(options.host)
    if (bound) this.#names.add(bound)
    for (const entry of options.allowedHosts ?? []) {
      const name = bareHost(entry)
      if (name.startsWith('.') && name.length > 1) {
        this.#names.add(name.slice(1))
        this.#suffixes.push(name)
      } else if (name) this.#names.add(name)
    }
    this.#origins = new Set((options.corsOrigins ?? []).map(origin => origin.trim().toLowerCase().replace(/\/$/, '')))
    this.#open = options.disableHostCheck ?? false
  }

  /** Text of the refusal, or undefined when every Host of the request is allowed. Missing and repeated headers are refused. */
  refuseHost(req: IncomingMessage, hostHeaders: number): string | undefined {
    if (this.#open) return undefined
    const host = req.headers.host
    if (host === undefined || host === '') return 'the Host header is missing'
    if (hostHeaders > 1) return 'the Host header is repeated'
    const authority = absoluteAuthority(req.url ?? '')
    if (!this.allowsHost(host)) return refusal(host)
    return authority === undefined || this.allowsHost(authority) ? undefined : refusal(authority)
  }

  /** Accepts `name`, `name:port`, `1.2.3.4`, `[::1]:80`. */
  allowsHost(host: string): boolean {
    const name = hostName(host)
    if (name === undefined) return false
    if (name === 'localhost' || name.endsWith('.localhost') || isIP(name) !== 0 || this.#names.has(name)) return true
    return this.#suffixes.some(suffix => name.endsWith(suffix))
  }

  /** `none` also for an Origin that cannot be parsed (`null`): such a request is served without CORS headers. */
  judge(req: IncomingMessage): 'none' | 'allowed' | 'refused' {
    const origin = req.headers.origin
    if (origin === undefined) return 'none'
    const name = originHost(origin)
    if (name === undefined) return 'none'
    if (this.#origins.has(origin.toLowerCase())) return 'allowed'
    const host = req.headers.host === undefined ? undefined : hostName(req.headers.host)
    if (host === undefined) return 'refused'
    return name === host || (isLoopbackName(name) && isLoopbackName(host)) ? 'allowed' : 'refused'
  }
}

/** CORS headers of an accepted Origin. No credentials header: the token never travels as a cookie. */
export function corsHeaders(req: IncomingMessage): Record<string, string> {
  const asked = req.headers['access-control-request-headers']
  return {
    'access-control-allow-origin': req.headers.origin ?? '',
    'access-control-allow-methods': 'GET, POST, PUT, PATCH, DELETE, OPTIONS',
    'access-control-allow-headers': asked || defaultHeaders,
    vary: 'Origin'
  }
}

/** Authority of an absolute-form request target (RFC 9112 §3.2.2), undefined for the usual origin form. */
export function absoluteAuthority(target: string): string | undefined {
  if (target.startsWith('/')) return undefined
  return /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i.exec(target)?.[1]
}

function refusal(host: string): string {
  const name = hostName(host) ?? host
  return `host '${name.slice(0, 100)}' is not allowed; start the server with --allowed-host ${name.slice(0, 100)} to accept it`
}

/** Lower-case name without port; undefined when the text is no host at all. */
function hostName(host: string): string | undefined {
  const match = /^(?:\[([0-9a-f:.]+)\]|([^:[\]@/\\\s]+))(?::\d*)?$/i.exec(host)
  return (match?.[1] ?? match?.[2])?.toLowerCase()
}

function originHost(origin: string): string | undefined {
  const match = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]+)$/i.exec(origin)
  return match?.[1] === undefined ? undefined : hostName(match[1])
}

function isLoopbackName(name: string): boolean {
  return name.endsWith('.localhost') || classifyBind(name) === 'loopback'
}
