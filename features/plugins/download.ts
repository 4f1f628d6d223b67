/** Fetches archives and catalogs: redirects followed, bounded in time and bytes, whole on disk or not at all. */
import { createHash } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { isTransportError, OutboundRefused, type Upstream, type UpstreamReply, whyUnreachable } from '../llm/index.ts'
import type { RepoRef } from './contract.ts'
import { archiveUrl, decoded } from './source.ts'

/** Why nothing came; its message may be shown. */
export class DownloadProblem extends Error {}

export interface DownloadPorts {
  readonly upstream: Pick<Upstream, 'get'>
  readonly userAgent: string
  readonly signal: AbortSignal
  /** Called as the bytes of a file come; `total` as the head of the answer says. */
  readonly onBytes?: (bytes: number, total: number | undefined) => void
}

const maxRedirects = 5
const archiveBytes = 200 * 1024 * 1024

function ask(url: URL, { upstream, userAgent, signal }: DownloadPorts): Promise<UpstreamReply> {
  return upstream.get(url.href, { accept: '*/*', 'user-agent': userAgent }, signal).catch((error: unknown) => {
    throw problemOf(error, url, signal)
  })
}

/** The last answer, which is 200; a redirect from https to http is not followed. */
async function open(address: string, ports: DownloadPorts): Promise<UpstreamReply> {
  let url = new URL(address)
  for (let step = 0; ; step++) {
    const reply = await ask(url, ports)
    if (reply.status === 200) return reply
    discard(reply)
    const { location } = reply.headers
    if (reply.status < 300 || reply.status > 399 || location === undefined) {
      throw new DownloadProblem(`${new URL(address).host} answered HTTP ${reply.status}`)
    }
    const next = URL.canParse(location, url.href) ? new URL(location, url.href) : undefined
    if (!next || !/^https?:$/.test(next.protocol) || (url.protocol === 'https:' && next.protocol === 'http:')) {
      throw new DownloadProblem(`${url.host} redirects to an address that is not followed`)
    }
    if (step >= maxRedirects) throw new DownloadProblem(`${url.host} redirects too often`)
    url = next
  }
}

function problemOf(error: unknown, url: URL, signal: AbortSignal): unknown {
  if (signal.aborted)
    return signal.reason instanceof DOMException && signal.reason.name === 'TimeoutError'
      ? new DownloadProblem(`${url.host} took too long`)
      : error
  if (error instanceof OutboundRefused) return new DownloadProblem(`offline: ${url.host} is not called`)
  return new DownloadProblem(`${url.host} could not be reached${isTransportError(error) ? `: ${whyUnreachable(error)}` : ''}`)
}

/** The library tells of a body that nobody reads as a failure. */
function discard({ body }: UpstreamReply): void {
  body.on('error', () => {})
  body.destroy()
}

/** Into a new file. Resolves with the digest of what came. */
export async function downloadTo(file: string, url: string, ports: DownloadPorts, limit = archiveBytes): Promise<string> {
  const { headers, body } = await open(url, ports)
  const total = Number(headers['content-length']) || undefined
  const hash = createHash('sha256')
  let bytes = 0
  const meter = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length
      hash.update(chunk)
      ports.onBytes?.(bytes, total)
      done(bytes > limit ? new DownloadProblem(`the archive is larger than ${limit} bytes`) : null, chunk)
    }
  })
  await pipeline(body, meter, createWriteStream(file, { flags: 'wx', mode: 0o600 }), { signal: ports.signal }).catch((error: unknown) => {
    throw error instanceof DownloadProblem ? error : problemOf(error, new URL(url), ports.signal)
  })
  return `sha256-${hash.digest('base64')}`
}

/** Text of at most `limit` bytes. */
export async function fetchText(url: string, ports: DownloadPorts, limit: number): Promise<string> {
  const { body } = await open(url, ports)
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      bytes += chunk.length
      if (bytes > limit) throw new DownloadProblem(`the answer of ${new URL(url).host} is larger than ${limit} bytes`)
      chunks.push(chunk)
    }
  } catch (error) {
    throw error instanceof DownloadProblem ? error : problemOf(error, new URL(url), ports.signal)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** Tag of the newest release, as the host's redirect names it; undefined when there is none. */
export async function newestRelease(base: string, ports: DownloadPorts): Promise<string | undefined> {
  const reply = await ask(new URL(`${base}/releases/latest`), ports)
  discard(reply)
  const tag = /\/releases\/tag\/([^?#]+)/.exec(reply.headers.location ?? '')?.[1]
  return tag === undefined ? undefined : decoded(tag)
}

/** What an unpinned repository stands for. */
export async function refToTake(
  base: string,
  ref: RepoRef | undefined,
  ports: DownloadPorts
): Promise<{ readonly ref: RepoRef; readonly url: string }> {
  if (ref) return { ref, url: archiveUrl(base, ref) }
  const tag = await newestRelease(base, ports)
  const chosen: RepoRef = tag === undefined ? { kind: 'branch', value: 'HEAD' } : { kind: 'tag', value: tag }
  return { ref: chosen, url: archiveUrl(base, chosen) }
}
