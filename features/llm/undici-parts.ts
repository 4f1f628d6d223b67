/**
 * What requests need of undici: connections and proxies. Its index has a browser's fetch, caches and mocks besides, and takes three times as long to
 * load, in one go, beside the first prompt of a server.
 */
import type { Agent, EnvHttpProxyAgent, Pool } from 'undici'
import { nextPass } from '../../kernel/index.ts'

export interface UndiciParts {
  readonly Agent: typeof Agent
  readonly Pool: typeof Pool
  readonly EnvHttpProxyAgent: typeof EnvHttpProxyAgent
}

/** The library's types say nothing of its files. */
export async function loadUndici(): Promise<UndiciParts> {
  // @ts-expect-error
  const { default: Dispatcher } = await import('undici/lib/dispatcher/dispatcher.js')
  // @ts-expect-error
  const { default: api } = await import('undici/lib/api/index.js')
  Object.assign(Dispatcher.prototype, api) // as the index does: `request`, and `connect` for tunnels
  await nextPass()
  // @ts-expect-error
  const { default: Agent } = await import('undici/lib/dispatcher/agent.js')
  // @ts-expect-error
  const { default: Pool } = await import('undici/lib/dispatcher/pool.js')
  await nextPass()
  // @ts-expect-error
  const { default: EnvHttpProxyAgent } = await import('undici/lib/dispatcher/env-http-proxy-agent.js')
  return { Agent, Pool, EnvHttpProxyAgent }
}
