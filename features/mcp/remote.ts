/** HTTP of remote MCP servers: the offline switch and proxies as for all other requests, answers bounded in bytes. */
import { assertOutbound, isLoopback, isTransportError, proxyAgent, whyUnreachable } from '../llm/index.ts'

export interface RemoteFetch {
  readonly fetch: (url: string | URL, init?: RequestInit) => Promise<Response>
  close(): Promise<void>
}

/** `limitBytes`: of one answer; of a stream of events, of what comes without a blank line between. */
export function createRemoteFetch(limitBytes: number, env: NodeJS.ProcessEnv = process.env): RemoteFetch {
  let loaded: Promise<Loaded> | undefined
  const load = async (): Promise<Loaded> => {
    const undici = await import('undici')
    const options = { allowH2: false, bodyTimeout: 0, headersTimeout: 0, connect: { timeout: 10_000 } }
    const near = new undici.Agent(options)
    let far: Closable | undefined
    return {
      fetch: undici.fetch as unknown as Loaded['fetch'],
      to({ href }) {
        if (isLoopback(href)) return near
        far ??= proxyAgent(undici, options, env) ?? near
        return far
      },
      close: () => Promise.all([near.destroy(), far?.destroy()])
    }
  }
  return {
    async fetch(url, init) {
      const target = new URL(url)
      await assertOutbound(target)
      loaded ??= load()
      const { fetch, to } = await loaded
      return bounded(await fetch(target, { ...init, dispatcher: to(target) }).catch(explain), limitBytes)
    },
    async close() {
      await (await loaded)?.close()
    }
  }
}

interface Loaded {
  readonly fetch: (url: URL, init: object) => Promise<Response>
  /** Who connects to an address. */
  to(url: URL): Closable
  close(): Promise<unknown>
}

interface Closable {
  destroy(): Promise<void>
}

/** The HTTP client says only that its request failed. A TypeError, as libraries expect of a request that fails. */
function explain(error: Error): never {
  const why = isTransportError(error) ? whyUnreachable(error) : error.cause instanceof Error && error.cause.message
  if (!why) throw error
  throw new TypeError(`it cannot be reached: ${why}`, { cause: error })
}

/** A body that ends with an error when it is longer than it may be. */
function bounded(response: Response, limitBytes: number): Response {
  if (!response.body) return response
  const events = response.headers.get('content-type')?.includes('text/event-stream') ?? false
  let bytes = 0
  const meter = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      const end = events ? lastBlankLine(chunk) : -1
      bytes = end >= 0 ? chunk.length - end : bytes + chunk.length
      if (bytes > limitBytes) controller.error(new Error(`the answer is larger than ${limitBytes} bytes`))
      else controller.enqueue(chunk)
    }
  })
  return withBody(response, response.body.pipeThrough(meter))
}

export function withBody(response: Response, body: ReadableStream<Uint8Array>): Response {
  const { status, statusText, headers } = response
  const made = new Response(body, { status, statusText, headers })
  Object.defineProperty(made, 'url', { value: response.url })
  Object.defineProperty(made, 'redirected', { value: response.redirected })
  return made
}

/** Index behind the last blank line of the chunk; -1: there is none. */
function lastBlankLine(chunk: Uint8Array): number {
  const text = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
  return Math.max(text.lastIndexOf('\n\n'), text.lastIndexOf('\r\n\r\n'))
}
