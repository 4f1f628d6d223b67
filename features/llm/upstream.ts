/**
 * HTTP to model providers: one connection pool, proxies from the environment, streams without a limit but silence. undici loads with the
 * first request.
 */
import { pipeline, Readable, type Transform } from 'node:stream'
import type { Agent, Dispatcher } from 'undici'
import { untilAborted } from '../../kernel/index.ts'
import { isLoopback, lookupName, type NameLookup, urlBelow } from './addresses.ts'
import { jsonBody } from './json-body.ts'
import { assertOutbound } from './outbound.ts'
import { proxyFailure } from './proxies.ts'
import { proxyAgent } from './proxy-agent.ts'
import type { ResolvedModel } from './request.ts'
import { loadUndici, type UndiciParts } from './undici-parts.ts'
import { failedAt } from './unreachable.ts'

/** The head of a reply, and the body as it comes: whoever has it reads it to its end or destroys it. */
export interface UpstreamReply {
  readonly status: number
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Readable
}

/** One pool of connections. */
export interface Upstream {
  /**
   * Posts JSON to a path below the model's base URL (the queries of both are kept) and resolves with the head of the reply. Rejects with
   * the transport's error, or with OutboundRefused when the server runs offline; abort closes the connection. `headers` come first, the
   * model's own headers win.
   */
  post(
    model: Pick<ResolvedModel, 'base_url' | 'headers'>,
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

/** Waits, ms. */
interface UpstreamTimeouts {
  readonly connect_ms: number
  /** Between the request and the head of the reply, and between two pieces of its body. */
  readonly silence_ms: number
}

/** A body of at most so many bytes goes to the socket together with the headers. */
const AT_ONCE_BYTES = 256 * 1024
/** Local servers read the whole prompt before they answer, and models think without a word. */
const defaultTimeouts: UpstreamTimeouts = { connect_ms: 10_000, silence_ms: 600_000 }

/**
 * HTTP_PROXY, HTTPS_PROXY and NO_PROXY are honoured, in both spellings; loopback addresses are never proxied. No redirect is followed. `find` looks
 * names up, and connections go to what it answers.
 */
export function createUpstream(
  env: NodeJS.ProcessEnv = process.env,
  timeouts: UpstreamTimeouts = defaultTimeouts,
  find: NameLookup = lookupName
): Upstream {
  const pools = new Pools(env, timeouts, find)
  return {
    async post(model, path, body, headers, signal) {
      const url = urlBelow(model.base_url ?? '', path)
      const pieces = await jsonBody(body)
      const length = pieces.reduce((sum, piece) => sum + piece.length, 0)
      const all = { 'content-type': 'application/json', ...headers, ...model.headers, 'content-length': String(length) }
      const sent = length <= AT_ONCE_BYTES ? Buffer.concat(pieces) : Readable.from(pieces)
      return pools.send(url, { method: 'POST', headers: all, body: sent }, signal)
    },
    get(address, headers, signal) {
      return pools.send(new URL(address), { method: 'GET', headers: { accept: 'application/json', ...headers } }, signal)
    },
    postForm(address, fields, headers, signal) {
      const all = { accept: 'application/json', ...headers, 'content-type': 'application/x-www-form-urlencoded' }
      return pools.send(new URL(address), { method: 'POST', headers: all, body: new URLSearchParams(fields).toString() }, signal)
    },
    close: () => pools.close()
  }
}

interface Outgoing {
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array | Readable
}

/** Connections to this machine, and to others through the proxies. */
class Pools {
  readonly #env: NodeJS.ProcessEnv
  readonly #options: Agent.Options
  #undici: UndiciParts | undefined
  #direct: Dispatcher | undefined
  #outside: Dispatcher | undefined
  #closed = false

  constructor(env: NodeJS.ProcessEnv, { connect_ms, silence_ms }: UpstreamTimeouts, lookup: NameLookup) {
    this.#env = env
    // `lookup` is what net.connect takes; the library's type knows only whole connection targets.
    const connect = { timeout: connect_ms, lookup } as object
    this.#options = { allowH2: false, connect, bodyTimeout: silence_ms, headersTimeout: silence_ms }
  }

  /** The one way out: every request of every pack passes here. */
  async send(url: URL, { headers, ...outgoing }: Outgoing, signal: AbortSignal): Promise<UpstreamReply> {
    await assertOutbound(url)
    // An import walks through the loader each time.
    this.#undici ??= await loadUndici()
    const undici = this.#undici
    if (this.#closed) throw new Error('the connection pool is closed')
    signal.throwIfAborted()
    const dispatcher = isLoopback(url.href) ? this.#near(undici) : this.#far(undici)
    const all = { 'accept-encoding': 'identity', ...headers }
    const { bodyTimeout, headersTimeout } = this.#options
    const { origin, pathname, search } = url
    const sent = { ...outgoing, origin, path: pathname + search, headers: all, signal, bodyTimeout, headersTimeout }
    const reply = dispatcher.request(sent)
    try {
      const { statusCode, headers: answered, body } = await untilAborted(reply, signal)
      const flattened = flat(answered)
      return { status: statusCode, headers: flattened, body: await decoded(body, flattened['content-encoding'] ?? '') }
    } catch (error) {
      // A tunnel that is being opened does not hear of the abort; what comes out of it later is let go.
      if (signal.aborted) reply.then(({ body }) => body.destroy()).catch(() => undefined)
      throw failedAt(proxyFailure(error), url)
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    await Promise.all([...new Set([this.#direct, this.#outside])].map(pool => pool?.destroy()))
  }

  #near({ Agent }: UndiciParts): Dispatcher {
    this.#direct ??= new Agent(this.#options)
    return this.#direct
  }

  #far(undici: UndiciParts): Dispatcher {
    // A plain http address is asked of the proxy by its whole URL, as everybody does: proxies open tunnels to https ports only.
    this.#outside ??= proxyAgent(undici, { ...this.#options, proxyTunnel: false }, this.#env) ?? this.#near(undici)
    return this.#outside
  }
}

function flat(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  const found: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) found[name] = Array.isArray(value) ? value.join(', ') : value
  }
  return found
}

/**
 * Reads at most `limit` bytes of a body as text, for at most `wait_ms`, and lets the rest go. A byte order mark is not part of the text. Of a body
 * that breaks off, what came is the text.
 */
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
  return new TextDecoder().decode(Buffer.concat(chunks).subarray(0, limit))
}

/** Nobody compresses more often. */
const MAX_ENCODINGS = 4

/**
 * The body in plain bytes, where somebody on the way compressed it although requests ask for none; one in an encoding that nobody here
 * knows comes back as it is. What breaks it breaks the result.
 */
async function decoded(body: Readable, header: string): Promise<Readable> {
  const encodings = header.split(',').map(name => name.trim().toLowerCase())
  const applied = encodings.filter(name => name !== '' && name !== 'identity')
  if (applied.length === 0 || applied.length > MAX_ENCODINGS) return body
  const { createBrotliDecompress, createUnzip } = await import('node:zlib')
  const open: Readonly<Record<string, () => Transform>> = {
    gzip: createUnzip,
    'x-gzip': createUnzip,
    deflate: createUnzip,
    br: createBrotliDecompress
  }
  if (!applied.every(name => Object.hasOwn(open, name))) return body
  // Whoever reads the result learns of the error there.
  return applied.reduceRight<Readable>((outer, name) => pipeline(outer, open[name]!(), () => undefined), body)
}
