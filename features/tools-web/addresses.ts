/** Which addresses the web is: everything but this machine, private networks and what is reserved. */
import { lookup as systemLookup } from 'node:dns'
import { BlockList, isIP } from 'node:net'

const privateNetworks = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24', '192.168.0.0/16'],
  ...['198.18.0.0/15', '224.0.0.0/4', '240.0.0.0/4'],
  // Unspecified, loopback, translated and tunnelled IPv4, unique local, link-local, site-local, multicast.
  ...['::/128', '::1/128', '64:ff9b::/96', '64:ff9b:1::/48', '2001::/32', '2002::/16', 'fc00::/7', 'fe80::/10', 'fec0::/10', 'ff00::/8']
]

/** A name or an address leads to a place that is not the web. */
export class PrivateAddress extends Error {
  readonly code = 'EPRIVATE'
}

/** Says of an address whether it may be called. */
export type AddressRule = (address: string) => boolean

/** `allowed`: networks (`10.1.0.0/16`, or single addresses) that may be called although they are private. Throws for what is no network. */
export function addressRule(allowed: readonly string[]): AddressRule {
  let built: BlockList | undefined
  const refused = () => {
    built ??= listOf(privateNetworks) // at the first call: building it takes some milliseconds
    return built
  }
  const excepted = listOf(allowed)
  return address => {
    const plain = unmapped(address.replace(/%.*$/, ''))
    const family = isIP(plain) === 6 ? 'ipv6' : 'ipv4'
    return isIP(plain) !== 0 && (excepted.check(plain, family) || !refused().check(plain, family))
  }
}

function listOf(networks: readonly string[]): BlockList {
  const list = new BlockList()
  for (const network of networks) {
    const [address = '', bits] = network.split('/')
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    list.addSubnet(address, bits === undefined ? (family === 'ipv6' ? 128 : 32) : Number(bits), family)
  }
  return list
}

/** IPv4 in the clothes of IPv6 (`::ffff:7f00:1`, `::127.0.0.1`) counts as what it is. */
function unmapped(address: string): string {
  if (isIP(address) !== 6) return address
  const words = new URL(`http://[${address}]`).hostname.slice(1, -1)
  const match = /^::(?:ffff:(?:0:)?)?([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(words)
  if (!match) return address
  const [high, low] = [Number.parseInt(match[1] ?? '', 16), Number.parseInt(match[2] ?? '', 16)]
  return [high >> 8, high & 255, low >> 8, low & 255].join('.')
}

/** The host of a URL is an address that may not be called. Names are judged when they are looked up. */
export function isRefusedLiteral({ hostname }: URL, rule: AddressRule): boolean {
  const address = hostname.replace(/^\[|\]$/g, '')
  return isIP(address) !== 0 && !rule(address)
}

type Answer = (error: NodeJS.ErrnoException | null, address: string | { address: string; family: number }[], family?: number) => void

/**
 * Looks a name up once, and the connection is made to what was found: nobody can answer differently in between. A name with one private
 * address is refused altogether.
 */
export function publicLookup(rule: AddressRule, lookup = systemLookup) {
  return (hostname: string, options: { readonly all?: boolean | undefined }, answer: Answer): void => {
    lookup(hostname, { ...options, all: true }, (error, found) => {
      const bad = found?.find(({ address }) => !rule(address))
      if (error) answer(error, '')
      else if (bad) answer(new PrivateAddress(`${hostname} leads to a private address`), '')
      else if (options.all) answer(null, found)
      else answer(null, found[0]?.address ?? '', found[0]?.family)
    })
  }
}
