/** Reads one page: redirects one by one, each judged like the first address; bounded in time and bytes. */
import { headOf } from '../../kernel/index.ts'
import { isTransportError, OutboundRefused, type Upstream, type UpstreamReply } from '../llm/index.ts'
import { ToolRefusal } from '../tools/index.ts'
import { type AddressRule, isRefusedLiteral, PrivateAddress } from './addresses.ts'

const redirects = 10
const pageBytes = 10 * 1024 * 1024

export interface DownloadPorts {
  readonly upstream: Pick<Upstream, 'get'>
  readonly rule: AddressRule
  /** Rejects for a name that leads to a private address, where the connection itself does not look. */
  readonly checkName?: (hostname: string) => Promise<void>
  readonly userAgent: string
}

export interface Page {
  /** Where it was found in the end. */
  readonly url: URL
  /** Media type in lower case, without parameters. */
  readonly type: string
  readonly charset: string | undefined
  readonly bytes: Buffer
}

/** Throws ToolRefusal for an address that may not be called. */
export function addressOf(given: string, rule: AddressRule, base?: URL): URL {
  if (!URL.canParse(given, base?.href)) throw new ToolRefusal(`${headOf(given, 200)} is no absolute http or https address.`)
  const url = new URL(given, base)
  if (!/^https?:$/.test(url.protocol)) throw new ToolRefusal(`Only http and https addresses can be read, not ${url.protocol}`)
  if (url.username !== '' || url.password !== '') throw new ToolRefusal('Addresses with a user name or password are not read.')
  url.hostname = url.hostname.replace(/\.+$/, '') // the same host, and to rules, too; an address may appear
  if (isRefusedLiteral(url, rule) || /(?:^|\.)localhost$/.test(url.hostname)) throw privateRefusal(url)
  url.hash = ''
  return url
}

const privateRefusal = (url: URL) =>
  new ToolRefusal(`${url.host} is on this machine or in a private network; only the public web can be read.`)

/** Throws ToolRefusal for everything that keeps the page from being read; rejects with the signal's reason after an abort. */
export async function download(given: string, ports: DownloadPorts, signal: AbortSignal): Promise<Page> {
  let url = addressOf(given, ports.rule)
  for (let left = redirects; ; left--) {
    const { status, headers, body } = await ask(url, ports, signal)
    const { location } = headers
    if ([301, 302, 303, 307, 308].includes(status) && location !== undefined) {
      letGo(body)
      if (left === 0) throw new ToolRefusal(`${given} redirects more than ${redirects} times.`)
      url = addressOf(location, ports.rule, url)
      continue
    }
    if (status < 200 || status > 299) {
      letGo(body)
      throw new ToolRefusal(`${url.href} answered HTTP ${status}.`)
    }
    const [type = '', ...parameters] = (headers['content-type'] ?? '').toLowerCase().split(';')
    const charset = parameters.map(each => /^\s*charset="?([^"\s]+)/.exec(each)?.[1]).find(Boolean)
    return { url, type: type.trim(), charset, bytes: await whole(body, url, signal) }
  }
}

/** What is not read is no failure, although the library calls it one. */
function letGo(body: UpstreamReply['body']): void {
  body.on('error', () => undefined).destroy()
}

async function ask(url: URL, { upstream, checkName, userAgent }: DownloadPorts, signal: AbortSignal): Promise<UpstreamReply> {
  try {
    await checkName?.(url.hostname)
    const accept = 'text/markdown, text/html;q=0.9, text/plain;q=0.9, */*;q=0.5'
    return await upstream.get(url.href, { accept, 'user-agent': userAgent }, signal)
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof OutboundRefused) throw new ToolRefusal(error.message)
    if (error instanceof PrivateAddress || (error as Error).cause instanceof PrivateAddress) throw privateRefusal(url)
    if (!isTransportError(error)) throw error
    throw new ToolRefusal(`${url.host} could not be reached (${(error as NodeJS.ErrnoException).code ?? (error as Error).name}).`)
  }
}

async function whole(body: UpstreamReply['body'], url: URL, signal: AbortSignal): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      size += chunk.length
      if (size > pageBytes) throw new ToolRefusal(`${url.href} is larger than 10 MiB.`)
      chunks.push(chunk)
    }
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof ToolRefusal) throw error
    throw new ToolRefusal(`${url.host} broke off its answer.`)
  }
  return Buffer.concat(chunks)
}
