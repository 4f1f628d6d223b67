/** Connections through the proxies of the environment. */
import type { Dispatcher, EnvHttpProxyAgent, Pool } from 'undici'
import { ProxyProblem, proxiesOf } from './proxies.ts'

/** A proxy opens a tunnel. */
const TUNNEL_TIMEOUT_MS = 30_000

interface Parts {
  readonly Pool: typeof Pool
  readonly EnvHttpProxyAgent: typeof EnvHttpProxyAgent
}

/** Undefined when the environment names no proxy. Throws ProxyProblem. */
export function proxyAgent(parts: Parts, options: EnvHttpProxyAgent.Options, env: NodeJS.ProcessEnv = process.env): Dispatcher | undefined {
  const proxies = proxiesOf(env)
  if (!proxies) return undefined
  const clientFactory = (to: URL, given: object) => tunnels(new parts.Pool(to, { ...given, headersTimeout: TUNNEL_TIMEOUT_MS }))
  return new parts.EnvHttpProxyAgent({ ...options, clientFactory, ...proxies })
}

/**
 * The pool in which tunnels are opened. To the client of the far end a closed socket is no failure but a reason to connect again at once, and
 * a proxy that hangs up would keep it doing that for ever: here it is a failure of the proxy.
 */
function tunnels(pool: Pool): Pool {
  const open = pool.connect.bind(pool) as (options: Dispatcher.ConnectOptions) => Promise<Dispatcher.ConnectData>
  const connect = (options: Dispatcher.ConnectOptions) =>
    open(options).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'UND_ERR_SOCKET' && error.code !== 'UND_ERR_INFO') throw error
      throw new ProxyProblem('the proxy closed the connection', true, error)
    })
  return Object.assign(pool, { connect })
}
