/** Proxies of the environment, as the usual variables name them. */

/** As the HTTP client takes them. */
interface ProxySettings {
  /** For http addresses; asked for the whole URL. Empty: none. */
  readonly httpProxy: string
  /** For https addresses; asked for a tunnel. Empty: `httpProxy`. */
  readonly httpsProxy: string
  /** Hosts, domains and `host:port`, that are called directly; `*`: all. */
  readonly noProxy: string
}

/** A proxy that cannot be used, or did not let a request through. Its text names the variable or the status, never the address. */
export class ProxyProblem extends Error {
  override readonly name = 'ProxyProblem'
  readonly code = 'EPROXY'
  /** Worth another try. */
  readonly transient: boolean

  constructor(message: string, transient = false, cause?: unknown) {
    super(message, { cause })
    this.transient = transient
  }
}

/**
 * `HTTP_PROXY`, `HTTPS_PROXY`, `NO_PROXY`, the lower-case spelling first; without a scheme `http://` is meant. Undefined: no proxy. Throws
 * ProxyProblem.
 */
export function proxiesOf(env: NodeJS.ProcessEnv): ProxySettings | undefined {
  const httpProxy = address(env, 'http_proxy')
  const httpsProxy = address(env, 'https_proxy')
  if (httpProxy === '' && httpsProxy === '') return undefined
  return { httpProxy, httpsProxy, noProxy: env.no_proxy ?? env.NO_PROXY ?? '' }
}

/** The proxies themselves, for the list of outbound hosts; what cannot be used is left out. */
export function proxyUrls(env: NodeJS.ProcessEnv): string[] {
  try {
    const { httpProxy = '', httpsProxy = '' } = proxiesOf(env) ?? {}
    return [...new Set([httpProxy, httpsProxy])].filter(url => url !== '')
  } catch {
    return [] // the request that needs it says so
  }
}

function address(env: NodeJS.ProcessEnv, name: string): string {
  const text = (env[name] || env[name.toUpperCase()] || '').trim()
  if (text === '') return ''
  const url = text.includes('://') ? text : `http://${text}`
  if (URL.canParse(url) && /^(https?|socks5?):$/.test(new URL(url).protocol)) return url
  throw new ProxyProblem(`the proxy of ${name.toUpperCase()} is not an address`)
}

/** The failure in words that name the proxy, where the library says that it was the proxy. */
export function proxyFailure(error: unknown): unknown {
  const text = error instanceof Error ? error.message : ''
  const status = /^Proxy response \((\d+)\)/.exec(text)?.[1] ?? (text.startsWith('Proxy Authentication Required') ? '407' : undefined)
  if (status === undefined) return error
  return new ProxyProblem(`the proxy refused the connection (HTTP ${status})`, Number(status) >= 500 || status === '429', error)
}
