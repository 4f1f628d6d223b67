/** Addresses: what is one, and what counts as this machine. */
import type { LookupAddress, LookupOptions } from 'node:dns'
import { lookup } from 'node:dns'
import { remembered } from './remembered.ts'

const LOCAL: readonly LookupAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 }
]

/** True for the text of an absolute http or https URL. */
export function isHttpUrl(value: unknown): value is string {
  return typeof value === 'string' && beginsAsHttp(value)
}

const beginsAsHttp = remembered(
  (value: string) => URL.canParse(value) && /^https?:$/.test(new URL(value).protocol) && !/\p{Cs}/u.test(value)
)

/** The address of `path` below a base URL; `path` may carry a query, and the queries of both are kept. */
export function urlBelow(base_url: string, path: string): URL {
  const url = new URL(base_url)
  const [below = '', query = ''] = path.split('?')
  url.pathname = url.pathname.replace(/\/+$/, '') + below
  for (const [name, value] of new URLSearchParams(query)) url.searchParams.set(name, value)
  return url
}

/** What is said of a base_url for which `isHttpUrl` is false. */
export const notAnAddress = 'must be an address that begins with http:// or https://'

/** True for URLs of this machine: localhost, *.localhost, 127.0.0.0/8, [::1]. An address of every interface (0.0.0.0, [::]) is none. */
export function isLoopback(url: string | undefined): boolean {
  return url !== undefined && namesThisMachine(url)
}

const namesThisMachine = remembered((url: string) => {
  if (!URL.canParse(url)) return false
  const { hostname } = new URL(url)
  return isLocalName(hostname) || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname)
})

type Answer = (error: NodeJS.ErrnoException | null, address: string | LookupAddress[], family?: number) => void

/** How names are looked up, as `net.connect` asks for it. */
export type NameLookup = (hostname: string, options: LookupOptions, answer: Answer) => void

/** Looks a name up as the system does, but asks nobody for local names: a name server could send them anywhere (RFC 6761, section 6.3). */
export function lookupName(hostname: string, options: LookupOptions, answer: Answer): void {
  if (!isLocalName(hostname)) {
    lookup(hostname, options, answer)
    return
  }
  const wanted = options.family === 'IPv4' ? 4 : options.family === 'IPv6' ? 6 : options.family || 0
  const found = LOCAL.filter(({ family }) => wanted === 0 || family === wanted)
  const [first] = found
  process.nextTick(() => {
    if (options.all) answer(null, found)
    else answer(null, first?.address ?? '', first?.family)
  })
}

function isLocalName(name: string): boolean {
  return name === 'localhost' || name.endsWith('.localhost')
}
