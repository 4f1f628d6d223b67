/** Reads a JSON document from a provider: bounded in time and bytes, failures as short texts that hold no secret. */
import { secretsSent, withoutSecrets } from '../../kernel/index.ts'
import { OutboundRefused, readText, type Upstream } from '../llm/index.ts'

const TIMEOUT_MS = 10_000
/** Parsed in one go: larger answers would hold the event loop. */
const LIMIT_BYTES = 2 * 1024 * 1024

/** Why a provider could not be asked; its message may be shown. */
export class FetchProblem extends Error {
  /** HTTP 401, 402 or 403: another key may work. */
  readonly credential: boolean

  constructor(message: string, { credential = false, cause }: { readonly credential?: boolean; readonly cause?: unknown } = {}) {
    super(message.slice(0, 300), cause === undefined ? undefined : { cause })
    this.credential = credential
  }
}

/**
 * The parsed body of a 2xx answer of at most `limitBytes` (default 2 MiB), within 10 s. Rejects with FetchProblem, whose text names at most
 * the host; with the signal's reason after an abort.
 */
export async function fetchJson(
  upstream: Pick<Upstream, 'get'>,
  url: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
  limitBytes = LIMIT_BYTES
): Promise<unknown> {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) throw new FetchProblem('the URL is not an http(s) address')
  const timeout = AbortSignal.timeout(TIMEOUT_MS)
  const late = (cause?: unknown) => new FetchProblem(`no answer within ${TIMEOUT_MS / 1000} s`, { cause })
  let status: number
  let text: string
  try {
    const reply = await upstream.get(url, headers, AbortSignal.any([signal, timeout]))
    status = reply.status
    text = await readText(reply.body, limitBytes, TIMEOUT_MS)
  } catch (error) {
    signal.throwIfAborted()
    if (timeout.aborted) throw late(error)
    throw new FetchProblem(unreachable(error, url), { cause: error })
  }
  // A body that broke off in the middle counts as far as it came.
  signal.throwIfAborted()
  if (timeout.aborted) throw late()
  if (status === 401 || status === 402 || status === 403)
    throw new FetchProblem(`the credential was refused (HTTP ${status})`, { credential: true })
  if (status < 200 || status > 299) throw new FetchProblem(`answered HTTP ${status}`)
  if (Buffer.byteLength(text) >= limitBytes) throw new FetchProblem(`the answer is not smaller than ${limitBytes} bytes`)
  try {
    // A list that repeats its request would put the key into names, and those are shown.
    return JSON.parse(withoutSecrets(text, secretsSent(url, headers)))
  } catch (error) {
    throw new FetchProblem('the answer is not complete JSON', { cause: error })
  }
}

function unreachable(error: unknown, url: string): string {
  if (error instanceof OutboundRefused) {
    return `offline: ${new URL(url).host} is not called (--offline, SVC_CODE_OFFLINE, or offline = true in config.toml)`
  }
  const { code, name } = error as NodeJS.ErrnoException
  return `could not be reached (${code ?? name})`
}
