/** The ways out of the web tools: one for pages, which reaches public addresses only, and one for the services that the user configured. */
import { createUpstream, proxyUrls, type Upstream } from '../llm/index.ts'
import { addressRule, PrivateAddress, publicLookup } from './addresses.ts'
import type { DownloadPorts } from './download.ts'

const timeouts = { connect_ms: 10_000, silence_ms: 30_000 }

export interface Web {
  readonly pages: Pick<DownloadPorts, 'upstream' | 'rule' | 'checkName'>
  readonly services: Upstream
  close(): Promise<void>
}

/** `allowed`: private networks that may be called. Where the environment names a proxy, that is who connects: names are judged before it is asked. */
export function webOf(env: NodeJS.ProcessEnv, allowed: readonly string[]): Web {
  const rule = addressRule(allowed)
  const proxied = proxyUrls(env).length > 0
  const pages = proxied ? createUpstream(env, timeouts) : createUpstream(env, timeouts, publicLookup(rule))
  const services = createUpstream(env, timeouts)
  const checkName = async (hostname: string) => {
    const { lookup } = await import('node:dns/promises')
    const found = await lookup(hostname.replace(/^\[|\]$/g, ''), { all: true }).catch(() => []) // perhaps the proxy knows the name
    if (found.some(({ address }) => !rule(address))) throw new PrivateAddress(`${hostname} leads to a private address`)
  }
  return {
    pages: { upstream: pages, rule, ...(proxied ? { checkName } : {}) },
    services,
    close: async () => void (await Promise.all([pages.close(), services.close()]))
  }
}
