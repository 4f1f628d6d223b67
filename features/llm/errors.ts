/** What went wrong at a provider, in the engine's words: HTTP statuses, error objects inside a stream, transport failures. */
import { OutboundRefused } from './outbound.ts'
import type { LlmError } from './service.ts'

type Headers = Readonly<Record<string, string>>
type Verdict = Pick<LlmError, 'code' | 'name' | 'retryable'>

/** An error object as providers write it, as far as they agree. */
export interface UpstreamFailure {
  readonly message: string
  /** Provider's `code` and `type`, joined, lower case. */
  readonly kind: string
}

const overflow =
  /context[ _-]?(length|window)|maximum context|prompt (is )?too long|input token count .*exceeds|exceeds? .*(model )?token limit|too many (input )?tokens|context_length_exceeded/
const exhausted =
  /insufficient[ _](quota|balance|credit|funds)|exceeded[ _](your )?current[ _]quota|quota[ _](has been )?exhausted|billing|credit balance|out of credits|account .*suspended/
const filtered = /content[ _](filter|management|policy)|safety (system|filter)|high[ _]risk/
const transient = new Set([408, 409, 429, 500, 502, 503, 504, 529])

const verdicts = {
  auth: { code: 'provider.auth_error', name: 'AuthError', retryable: false },
  overflow: { code: 'context.overflow', name: 'ContextOverflowError', retryable: false },
  quota: { code: 'provider.rate_limit', name: 'QuotaExhaustedError', retryable: false },
  rate: { code: 'provider.rate_limit', name: 'RateLimitError', retryable: true },
  overloaded: { code: 'provider.overloaded', name: 'OverloadedError', retryable: true },
  filtered: { code: 'provider.filtered', name: 'FilteredError', retryable: false },
  transient: { code: 'provider.api_error', name: 'ApiError', retryable: true },
  permanent: { code: 'provider.api_error', name: 'ApiError', retryable: false }
} as const satisfies Record<string, Verdict>

/** An HTTP answer that is not a success. `body` is the beginning of its text. */
export function statusError(status: number, body: string, headers: Headers): LlmError {
  const failure = readFailure(body)
  const verdict = judgeStatus(status, failure)
  const hint = (status === 400 || status === 422) && /reasoning[ _]effort|thinking/.test(failure.message.toLowerCase())
  const said = failure.message === '' ? '' : `: ${failure.message}`
  return {
    ...verdict,
    message: `the provider answered HTTP ${status}${said}${hint ? ' (check the effort in the [thinking] configuration)' : ''}`,
    status,
    ...retryAfter(headers),
    ...traceOf(headers)
  }
}

/** An error object that arrived inside a stream which began well. */
export function streamError(value: unknown, headers: Headers): LlmError {
  const failure = readFailureValue(value)
  const status = Number(/\b[45]\d\d\b/.exec(failure.kind)?.[0])
  const verdict = Number.isNaN(status) ? judgeWords(failure) : judgeStatus(status, failure)
  const said = failure.message === '' ? '' : `: ${failure.message}`
  return { ...verdict, message: `the provider reported an error${said}`, ...(!Number.isNaN(status) && { status }), ...traceOf(headers) }
}

/** An answer that is no stream of this protocol: a web page, garbage, an oversized event. Sent again, it may be right. */
export function formatError(message: string, headers: Headers, retryable = true): LlmError {
  return { code: 'provider.api_error', name: 'StreamFormatError', message, retryable, ...traceOf(headers) }
}

/** True for failures of sockets, names, certificates and the HTTP client; everything else is a bug of ours. */
export function isTransportError(error: unknown): boolean {
  return /^(UND_ERR_|HPE_|E[A-Z0-9]+$|ERR_(TLS|SSL|INVALID_URL|INVALID_CHAR|STREAM_PREMATURE_CLOSE)|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)/.test(
    codeOf(error)
  )
}

/** The connection failed before or during the answer (undefined: it ended too early). `where` names the host, without credentials. */
export function transportError(error: unknown, where: string, headers: Headers = {}): LlmError {
  if (error instanceof OutboundRefused) {
    return { code: 'provider.connection_error', name: 'OfflineError', message: error.message, retryable: false }
  }
  const code = codeOf(error)
  if (code === 'UND_ERR_INVALID_ARG' || code === 'ERR_INVALID_URL' || code === 'ERR_INVALID_CHAR') {
    // The library's text may quote a header value.
    return {
      ...verdicts.permanent,
      name: 'RequestError',
      message: `the request to ${where} could not be built: check base_url, key and headers`
    }
  }
  const certificate = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ERR_TLS/.test(code)
  const name = /TIMEOUT/.test(code) ? 'TimeoutError' : 'ConnectionError'
  const message = `the connection to ${where} failed (${code || 'closed'})`
  return { code: 'provider.connection_error', name, message, retryable: !certificate, ...traceOf(headers) }
}

/** Ids that a provider's support asks for. */
export function traceOf(headers: Headers): Pick<LlmError, 'request_id' | 'trace_id'> {
  const request_id = headers['x-request-id']
  const trace_id = headers['x-trace-id']
  return { ...(request_id && { request_id }), ...(trace_id && { trace_id }) }
}

function judgeStatus(status: number, failure: UpstreamFailure): Verdict {
  const words = wordsOf(failure)
  if (status === 401 || status === 403) return verdicts.auth
  if ((status === 400 || status === 413 || status === 422) && overflow.test(words)) return verdicts.overflow
  if (status === 400 && filtered.test(words)) return verdicts.filtered
  if (status === 429) return exhausted.test(words) ? verdicts.quota : verdicts.rate
  if (status === 529 || ((status === 500 || status === 503) && words.includes('overload'))) return verdicts.overloaded
  return transient.has(status) || status >= 500 ? verdicts.transient : verdicts.permanent
}

function judgeWords(failure: UpstreamFailure): Verdict {
  const words = wordsOf(failure)
  if (overflow.test(words)) return verdicts.overflow
  if (exhausted.test(words)) return verdicts.quota
  if (filtered.test(words)) return verdicts.filtered
  if (words.includes('overload')) return verdicts.overloaded
  if (/rate[ _]limit|too many requests/.test(words)) return verdicts.rate
  if (/authentication|invalid[ _]api[ _]key|permission_(denied|error)/.test(words)) return verdicts.auth
  return /invalid_request/.test(failure.kind) ? verdicts.permanent : verdicts.transient
}

const wordsOf = (failure: UpstreamFailure) => `${failure.kind} ${failure.message.toLowerCase()}`

function readFailure(body: string): UpstreamFailure {
  try {
    return readFailureValue(JSON.parse(body))
  } catch {
    // Not JSON: a proxy's page or plain text. A page says nothing that fits in a line.
    return { kind: '', message: body.trimStart().startsWith('<') ? '' : cut(body) }
  }
}

function readFailureValue(value: unknown): UpstreamFailure {
  const first = Array.isArray(value) ? value[0] : value
  if (typeof first === 'string') return { kind: '', message: cut(first) }
  const outer = record(first)
  const inner = typeof outer.error === 'object' ? record(outer.error) : outer
  const message = [inner.message, outer.error, outer.message, outer.detail].find(text => typeof text === 'string')
  const kind = [inner.code, inner.type, inner.status].filter(word => typeof word === 'string' || typeof word === 'number').join(' ')
  return { kind: kind.toLowerCase(), message: cut(typeof message === 'string' ? message : '') }
}

function record(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

function cut(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim()
  return line.length > 500 ? `${line.slice(0, 500)}…` : line
}

/** Whole seconds only; a date is ignored (the clocks need not agree). */
function retryAfter(headers: Headers): Pick<LlmError, 'retry_after_ms'> {
  const seconds = /^\d{1,6}$/.test(headers['retry-after'] ?? '') ? Number(headers['retry-after']) : 0
  return seconds > 0 ? { retry_after_ms: seconds * 1000 } : {}
}

function codeOf(error: unknown): string {
  for (let at: unknown = error, depth = 0; typeof at === 'object' && at !== null && depth < 5; depth++) {
    const { code, errors, cause } = at as { code?: unknown; errors?: unknown[]; cause?: unknown }
    if (typeof code === 'string') return code
    at = cause ?? errors?.[0]
  }
  return ''
}
