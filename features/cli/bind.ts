/** The address that a server is bound to: what it demands of the operator, and how clients on this machine reach it. */
import { BlockList, isIP } from 'node:net'
import { bareHost, isLoopback } from '../../kernel/access/origin.ts'

const lan = new BlockList()
lan.addSubnet('10.0.0.0', 8)
lan.addSubnet('172.16.0.0', 12)
lan.addSubnet('192.168.0.0', 16)
lan.addSubnet('169.254.0.0', 16)
lan.addSubnet('fe80::', 10, 'ipv6')

/** `loopback`: 127.*, localhost, ::1. `lan`: private and link-local ranges. `public`: everything else, also 0.0.0.0, :: and names. */
export function classifyBind(host: string): 'loopback' | 'lan' | 'public' {
  if (isLoopback(host)) return 'loopback'
  const name = bareHost(host)
  const family = isIP(name)
  return family !== 0 && lan.check(name, family === 4 ? 'ipv4' : 'ipv6') ? 'lan' : 'public'
}

interface BindOptions {
  readonly host: string
  /** `--insecure-no-tls`: the operator accepts that the token travels in clear text. */
  readonly insecureNoTls?: boolean | undefined
  readonly password?: string | undefined
}

/**
 * Refuses a non-loopback bind without `--insecure-no-tls`. Resolves nothing and opens nothing; returns the warnings to print.
 * Throws an Error whose text names the option.
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
  if (!options.password) warnings.push('no password is set: the token is the only credential')
  return warnings
}

/** A URL that a client on this machine can open: a server on all addresses has no address of its own. */
export function reachable(url: string): string {
  return url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:')
}
