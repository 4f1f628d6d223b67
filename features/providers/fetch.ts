/** Reads a document from a provider, a registry or a directory: bounded in time and bytes, failures as short texts that hold no secret. */
import { firstAbort, headOf } from '../../kernel/index.ts'
import {
  isHttpUrl,
  isTransportError,
  OutboundRefused,
  readText,
  secretsSent,
  type Upstream,
  type UpstreamReply,
  whyUnreachable,
  withoutSecrets
} from '../llm/index.ts'

const TIMEOUT_MS = 10_000
const LIMIT_BYTES = 2 * 1024 * 1024

interface ProblemFacts {
  readonly credential?: boolean
  readonly status?: number
  readonly cause?: unknown
}

/** Why nobody answered with a document; its message may be shown. */
export class FetchProblem extends Error {
  /** HTTP 401, 402 or 403: another key may work. */
  readonly credential: boolean
  /** Of an answer that was none of success. */
  readonly status: number | undefined
  /** Nothing was sent: the server runs offline. */
  readonly offline: boolean

  constructor(message: string, { credential = false, status, cause }: ProblemFacts = {}) {
    super(headOf(message, 300), cause === undefined ? undefined : { cause })
    this.credential = credential
    this.status = status
    this.offline = cause instanceof OutboundRefused
  }
}

interface FetchLimits {
  /** Of the answer; 2 MiB unless said otherwise. Parsed in one go, about 7 ms per MiB. */
  readonly bytes?: number
  /** 10 s unless said otherwise. */
  readonly ms?: number
}

/**
 * The JSON of a 2xx answer, within the limits. Where it repeats credentials of the request they are taken out: they would get into names, and
 * those are shown. Rejects with FetchProblem, whose text names at most the host; with the signal's reason after an abort.
 */
export async function fetchJson(
  upstream: Pick<Upstream, 'get'>,
  url: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
  { bytes: limitBytes = LIMIT_BYTES, ms = TIMEOUT_MS }: FetchLimits = {}
): Promise<unknown> {
  if (!isHttpUrl(url)) throw new FetchProblem('the URL is not an http(s) address')
  const timeout = AbortSignal.timeout(ms)
  const late = (cause?: unknown) => new FetchProblem(`no answer within ${ms / 1000} s`, { cause })
  const { signal: until, end } = firstAbort(signal, timeout)
  let reply: UpstreamReply
  try {
    reply = await upstream.get(url, headers, until)
  } catch (error) {
    end()
    signal.throwIfAborted()
    throw timeout.aborted ? late(error) : new FetchProblem(unreachable(error, url), { cause: error })
  }
  const { status, body } = reply
  const good = status >= 200 && status <= 299
  const text = await readText(body, good ? limitBytes : 1, ms).finally(end)
  signal.throwIfAborted()
  if (timeout.aborted) throw late()
  if (status === 401 || status === 402 || status === 403)
    throw new FetchProblem(`the credential was refused (HTTP ${status})`, { credential: true, status })
  if (!good) throw new FetchProblem(`answered HTTP ${status}`, { status })
  if (Buffer.byteLength(text) >= limitBytes) throw new FetchProblem(`the answer is not smaller than ${limitBytes} bytes`)
  try {
    return JSON.parse(withoutSecrets(text, secretsSent(url, headers)))
  } catch (error) {
    throw new FetchProblem('the answer is not complete JSON', { cause: error })
  }
}

function unreachable(error: unknown, url: string): string {
  if (error instanceof OutboundRefused) {
    return `offline: ${new URL(url).host} is not called (--offline, SVC_CODE_OFFLINE, or offline = true in config.toml)`
  }
  return isTransportError(error) ? `could not be reached: ${whyUnreachable(error)}` : `could not be reached (${(error as Error).name})`
}
