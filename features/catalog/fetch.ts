/** Reads the directory's document: bounded in time and bytes, failures as short texts that hold no address. */
import { secretsSent, withoutSecrets } from '../../kernel/index.ts'
import { OutboundRefused, readText, type Upstream } from '../llm/index.ts'
import { FetchProblem } from '../providers/index.ts'

const TIMEOUT_MS = 10_000
/** Of the document. A longer one would be a list that holds the event loop when it is sent to a client. */
export const DIRECTORY_LIMIT_BYTES = 4 * 1024 * 1024

/**
 * The body of a 2xx answer. Rejects with FetchProblem, with OutboundRefused when the server runs offline (nothing was sent then), and
 * with the signal's reason after an abort.
 */
export async function fetchDocument(
  upstream: Pick<Upstream, 'get'>,
  url: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal
): Promise<Buffer> {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) throw new FetchProblem('its URL is not an http(s) address')
  const timeout = AbortSignal.timeout(TIMEOUT_MS)
  try {
    const { status, body } = await upstream.get(url, headers, AbortSignal.any([signal, timeout]))
    if (status < 200 || status > 299) {
      await readText(body, 1)
      throw new FetchProblem(`it answered HTTP ${status}`)
    }
    const chunks: Buffer[] = []
    let size = 0
    for await (const chunk of body as AsyncIterable<Buffer>) {
      size += chunk.length
      if (size > DIRECTORY_LIMIT_BYTES) throw new FetchProblem(`its answer is longer than ${DIRECTORY_LIMIT_BYTES} bytes`)
      chunks.push(chunk)
    }
    const document = Buffer.concat(chunks)
    const secrets = secretsSent(url, headers)
    return secrets.length === 0 ? document : Buffer.from(withoutSecrets(document.toString('utf8'), secrets))
  } catch (error) {
    if (error instanceof FetchProblem || error instanceof OutboundRefused) throw error
    signal.throwIfAborted()
    if (timeout.aborted) throw new FetchProblem(`no whole answer within ${TIMEOUT_MS / 1000} s`, { cause: error })
    const { code, name } = error as NodeJS.ErrnoException
    throw new FetchProblem(`it could not be reached (${code ?? name})`, { cause: error })
  }
}
