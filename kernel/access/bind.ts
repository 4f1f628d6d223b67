/** Classes of bind addresses and what each demands before the server may start. */
import { BlockList, isIP } from 'node:net'

/** `loopback`: 127.*, localhost, ::1. `lan`: private and link-local ranges. `public`: everything else, also 0.0.0.0, :: and names. */
export type BindClass = 'loopback' | 'lan' | 'public'

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8)
loopback.addAddress('::1', 'ipv6')

const lan = new BlockList()
lan.addSubnet('10.0.0.0', 8)
lan.addSubnet('172.16.0.0', 12)
lan.addSubnet('192.168.0.0', 16)
lan.addSubnet('169.254.0.0', 16)
lan.addSubnet('fe80::', 10, 'ipv6')

/** Class of the address given with `--host`. Names other than `localhost` count as public: nobody knows what they resolve to. */
export function classifyBind(host: string): BindClass {
  const name = bareHost(host)
  if (name === 'localhost') return 'loopback'
  const family = isIP(name)
  if (family === 0) return 'public'
  const type = family === 4 ? 'ipv4' : 'ipv6'
  if (loopback.check(name, type)) return 'loopback'
  return lan.check(name, type) ? 'lan' : 'public'
}

export interface BindOptions {
  readonly host: string
  /** `--insecure-no-tls`: the operator accepts that the token travels in clear text. */
  readonly insecureNoTls?: boolean | undefined
  readonly password?: string | undefined
}

/**
 * Refuses a non-loopback bind without `--insecure-no-tls`. Resolves nothing and opens nothing; returns the warnings to print.
 * Throws a plain Error whose text names the option.
 */
export function assertBind(options: BindOptions): string[] {
  const kind = classifyBind(options.host)
  if (kind === 'loopback') return []
  if (!options.insecureNoTls) {
    throw new Error(
      `refusing to listen on ${options.host || 'all addresses'} (${kind}): traffic and token would travel unencrypted; ` +
        'put a TLS proxy in front and bind to 127.0.0.1, or accept the risk with --insecure-no-tls'
    )
  }
  const warnings = [`listening on ${options.host || 'all addresses'} without TLS: anyone on the way can read the traffic and the token`]
  if (!options.password) warnings.push('no password is set (SVC_CODE_PASSWORD): the token is the only credential')
  return warnings
}

/** Lower case, without brackets and zone id. */
export function bareHost(host: string): string {
  const name = host.trim().toLowerCase()
  const inner = name.startsWith('[') && name.endsWith(']') ? name.slice(1, -1) : name
  const zone = inner.indexOf('%')
  return zone > 0 && inner.includes(':') ? inner.slice(0, zone) : inner
}
