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
  /** Redirects of requests without a body are followed to other hosts, without headers that may be for the first one alone. */
  readonly elsewhere?: boolean
}

const maxRedirects = 5

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
      let [target, request] = [new URL(url), init ?? {}]
      for (let step = 0; ; step++) {
        await assertOutbound(target)
        loaded ??= load()
        const { fetch, to } = await loaded
        const reply = await fetch(target, { ...request, redirect: 'manual', dispatcher: to(target) }).catch(explain)
        const next = redirectOf(reply, target)
        if (!next) return bounded(reply, limits)
        await reply.body?.cancel()
        if (step >= maxRedirects) throw new TypeError('it redirects too often')
        request = redirected(request, reply.status)
        if (!isSamePlace(target, next)) {
          if (!limits.elsewhere || request.body)
            throw new TypeError(`it redirects to ${next.origin}: name that address in its configuration`)
          request = withoutOwnHeaders(request)
        }
        target = next
      }
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

/** Where an answer sends the request on to, http(s) alone. */
function redirectOf({ status, headers }: Response, from: URL): URL | undefined {
  const location = [301, 302, 303, 307, 308].includes(status) ? headers.get('location') : null
  if (location === null || !URL.canParse(location, from.href)) return undefined
  const next = new URL(location, from)
  return /^https?:$/.test(next.protocol) ? next : undefined
}

/** What is sent to one may be sent to the other. */
const isSamePlace = (from: URL, to: URL): boolean =>
  to.origin === from.origin || (to.hostname === from.hostname && from.protocol === 'http:' && to.protocol === 'https:')

const forAnybody = ['accept', 'content-type', 'mcp-protocol-version', 'user-agent']

function withoutOwnHeaders(init: RequestInit): RequestInit {
  const kept = [...new Headers(init.headers)].filter(([name]) => forAnybody.includes(name))
  return { ...init, headers: Object.fromEntries(kept) }
}

/** As browsers do: only 307 and 308 keep method and body (RFC 9110, section 15.4). */
function redirected(init: RequestInit, status: number): RequestInit {
  if (status === 307 || status === 308 || init.method === undefined || init.method === 'GET') return init
  const { body: _body, ...rest } = init
  return { ...rest, method: 'GET' }
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
  let last: Uint8Array = new Uint8Array()
  let second = 0
  let events = 0
  const meter = new TransformStream<Uint8Array, Uint8Array>({
    async transform(chunk, controller) {
      const { count, end } = isStream ? blankLines(last, chunk) : { count: 0, end: -1 }
      last = Buffer.concat([last, chunk]).subarray(-3)
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

/** Blank lines that end in a chunk, which comes behind `before`: how many, and where in it the last one is; -1: there is none. */
function blankLines(before: Uint8Array, chunk: Uint8Array): { readonly count: number; readonly end: number } {
  const text = Buffer.concat([before, chunk])
  let count = 0
  let end = -1
  for (const blank of ['\n\n', '\r\n\r\n']) {
    const from = Math.max(0, before.length - blank.length + 1)
    for (let at = text.indexOf(blank, from); at >= 0; at = text.indexOf(blank, at + blank.length)) {
      count++
      end = Math.max(end, at - before.length, 0)
    }
  }
  return { count, end }
}
