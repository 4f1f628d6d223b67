/** HTTP of remote MCP servers: the offline switch and proxies as for all other requests, answers bounded in bytes. */
import { yieldToLoop } from '../../kernel/index.ts'
import { assertOutbound, isLoopback, isTransportError, proxyAgent, whyUnreachable } from '../llm/index.ts'

export interface RemoteFetch {
  readonly fetch: (url: string | URL, init?: RequestInit) => Promise<Response>
  close(): Promise<void>
}

interface AnswerLimits {
  /** Of one answer; of a stream of events, of what comes without a blank line between. */
  readonly bytes: number
  /** Events of a stream in a second; undefined: any number. */
  readonly events?: number
}

export function createRemoteFetch(limits: AnswerLimits, env: NodeJS.ProcessEnv = process.env): RemoteFetch {
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
      return bounded(await fetch(target, { ...init, dispatcher: to(target) }).catch(explain), limits)
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

/** A body that ends with an error when it is longer than it may be, or brings too many events in a second. */
function bounded(response: Response, limits: AnswerLimits): Response {
  if (!response.body) return response
  const isStream = response.headers.get('content-type')?.includes('text/event-stream') ?? false
  const { bytes: mostBytes, events: mostEvents = Number.POSITIVE_INFINITY } = limits
  let bytes = 0
  let second = 0
  let events = 0
  const meter = new TransformStream<Uint8Array, Uint8Array>({
    async transform(chunk, controller) {
      const { count, end } = isStream ? blankLines(chunk) : { count: 0, end: -1 }
      bytes = end >= 0 ? chunk.length - end : bytes + chunk.length
      const now = Math.floor(performance.now() / 1000)
      events = now === second ? events + count : count
      second = now
      if (bytes > mostBytes) controller.error(new Error(`the answer is larger than ${mostBytes} bytes`))
      else if (events > mostEvents) controller.error(new Error(`it sent more than ${mostEvents} messages in a second`))
      else controller.enqueue(chunk)
      if (count > 1) await yieldToLoop() // whoever reads them does it in one go
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

/** Blank lines of a chunk: how many, and where the last one is; -1: there is none. */
function blankLines(chunk: Uint8Array): { readonly count: number; readonly end: number } {
  const text = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
  let count = 0
  let end = -1
  for (const blank of ['\n\n', '\r\n\r\n'])
    for (let at = text.indexOf(blank); at >= 0; at = text.indexOf(blank, at + blank.length)) {
      count++
      end = Math.max(end, at)
    }
  return { count, end }
}
