/** HTTP to model providers: one connection pool, proxies from the environment, streams without a limit but silence. undici loads with the first request. */
import type { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import { decoded } from './content-encoding.ts'
import { assertOutbound } from './outbound.ts'
import { isLoopback } from './sections.ts'
import type { ResolvedModel } from './service.ts'

export interface UpstreamReply {
  readonly status: number
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Readable
}

export interface Upstream {
  /**
   * Posts JSON to a path below the model's base URL (the queries of both are kept) and resolves with the head of the reply. Rejects with the
   * transport's error, or with OutboundRefused when the server runs offline; abort closes the connection. `headers` come first, the model's own headers win.
   */
  post(
    model: ResolvedModel,
    path: string,
    body: unknown,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal
  ): Promise<UpstreamReply>
  /** Reads an http(s) URL; resolves with the head of the reply. No redirect is followed. Rejects as `post` does. */
  get(url: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<UpstreamReply>
  /** Posts a form (`application/x-www-form-urlencoded`) to an http(s) URL, in everything else like `get`. */
  postForm(
    url: string,
    fields: Readonly<Record<string, string>>,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal
  ): Promise<UpstreamReply>
  /** Closes every connection. */
  close(): Promise<void>
}

export interface UpstreamTimeouts {
  readonly connect_ms: number
  /** Between the request and the head of the reply, and between two pieces of its body. */
  readonly silence_ms: number
}

/** Local servers read the whole prompt before they answer, and models think without a word. */
const defaultTimeouts: UpstreamTimeouts = { connect_ms: 10_000, silence_ms: 600_000 }

/** HTTP_PROXY, HTTPS_PROXY and NO_PROXY are honoured, in both spellings; loopback addresses are never proxied. */
export function createUpstream(env: NodeJS.ProcessEnv = process.env, timeouts: UpstreamTimeouts = defaultTimeouts): Upstream {
  let pools: Promise<Pools> | undefined
  let closed = false
  /** The one way out: every request of every pack passes here. */
  const open = async (url: URL) => {
    await assertOutbound(url)
    if (closed) throw new Error('the connection pool is closed')
    pools ??= openPools(env, timeouts)
    const { request, direct, outside } = await pools
    return { request, dispatcher: isLoopback(url.href) ? direct : outside }
  }
  return {
    async post(model, path, body, headers, signal) {
      const url = new URL(model.base_url ?? '')
      const [below = '', query = ''] = path.split('?')
      url.pathname = url.pathname.replace(/\/+$/, '') + below
      for (const [name, value] of new URLSearchParams(query)) url.searchParams.set(name, value)
      const { request, dispatcher } = await open(url)
      const reply = await request(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'accept-encoding': 'identity', ...headers, ...model.headers },
        body: JSON.stringify(body),
        dispatcher,
        signal
      })
      return await replied(reply)
    },
    async get(address, headers, signal) {
      const url = new URL(address)
      const { request, dispatcher } = await open(url)
      const reply = await request(url, {
        headers: { accept: 'application/json', 'accept-encoding': 'identity', ...headers },
        dispatcher,
        signal
      })
      return await replied(reply)
    },
    async postForm(address, fields, headers, signal) {
      const url = new URL(address)
      const { request, dispatcher } = await open(url)
      const reply = await request(url, {
        method: 'POST',
        headers: {
          accept: 'application/json',
          'accept-encoding': 'identity',
          ...headers,
          'content-type': 'application/x-www-form-urlencoded'
        },
        body: new URLSearchParams(fields).toString(),
        dispatcher,
        signal
      })
      return await replied(reply)
    },
    async close() {
      closed = true
      if (!pools) return
      const { direct, outside } = await pools
      await Promise.all([...new Set([direct, outside])].map(pool => pool.destroy()))
    }
  }
}

interface Pools {
  readonly request: typeof import('undici').request
  readonly direct: Dispatcher
  readonly outside: Dispatcher
}

async function openPools(env: NodeJS.ProcessEnv, { connect_ms, silence_ms }: UpstreamTimeouts): Promise<Pools> {
  const { Agent, EnvHttpProxyAgent, request } = await import('undici')
  const options = { allowH2: false, bodyTimeout: silence_ms, headersTimeout: silence_ms, connect: { timeout: connect_ms } }
  const direct = new Agent(options)
  const httpProxy = env.http_proxy || env.HTTP_PROXY
  const httpsProxy = env.https_proxy || env.HTTPS_PROXY
  if (!httpProxy && !httpsProxy) return { request, direct, outside: direct }
  const noProxy = env.no_proxy ?? env.NO_PROXY ?? ''
  const outside = new EnvHttpProxyAgent({ ...options, ...(httpProxy && { httpProxy }), ...(httpsProxy && { httpsProxy }), noProxy })
  return { request, direct, outside }
}

async function replied({ statusCode, headers, body }: Dispatcher.ResponseData): Promise<UpstreamReply> {
  const all = flat(headers)
  return { status: statusCode, headers: all, body: await decoded(body, all['content-encoding']) }
}

function flat(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  const found: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) found[name] = Array.isArray(value) ? value.join(', ') : value
  }
  return found
}

/** Reads at most `limit` bytes of a body as text, for at most `wait_ms`, and lets the rest go. A body that breaks off counts as far as it came. */
export async function readText(body: Readable, limit = 64 * 1024, wait_ms = 10_000): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  const timer = setTimeout(() => body.destroy(), wait_ms)
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      chunks.push(chunk)
      size += chunk.length
      if (size >= limit) break
    }
  } catch {
    // The status says more than the end of its text: what has arrived is enough.
  } finally {
    clearTimeout(timer)
  }
  return Buffer.concat(chunks).toString('utf8', 0, limit)
}
