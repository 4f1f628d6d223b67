/** What went wrong at a provider, in the engine's words: HTTP statuses, error objects inside a stream, transport failures. */
import { OutboundRefused } from './outbound.ts'
import { ProxyProblem } from './proxies.ts'
import type { LlmError } from './service.ts'

type Headers = Readonly<Record<string, string>>
type Verdict = Pick<LlmError, 'code' | 'name' | 'retryable'>

/** An error object as providers write it, as far as they agree. */
export interface UpstreamFailure {
  readonly message: string
  /** Provider's `code` and `type`, joined, lower case. */
  readonly kind: string
}

/** The words of many servers for one thing: what was sent is longer than the model can read. */
const overflow = new RegExp(
  [
    'context[ _-]?(length|window|size|limit)',
    'maximum (context|prompt length)',
    '(prompt|input|request) (is )?too long',
    '(input|prompt) token count .*exceed',
    'exceed(s|ed)? .*token limit',
    'prompt exceeds',
    'range of input length',
    'too large for model',
    'too many (input )?tokens'
  ].join('|')
)
const exhausted =
  /insufficient[ _](quota|balance|credit|funds)|exceeded[ _](your )?current[ _]quota|quota[ _](has been )?exhausted|billing|credit balance|out of credits|account .*suspended/
const filtered = /content[ _](filter|management|policy)|safety (system|filter)|high[ _]risk/
/** Of sockets, the HTTP client and its parser, TLS, and of bodies that do not decompress. */
const transportCodes =
  /^(UND_ERR_|HPE_|E[A-Z0-9]+$|ERR_(TLS|SSL|INVALID_URL|INVALID_CHAR|STREAM_PREMATURE_CLOSE)|ERR__ERROR_|Z_|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)/
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
  return {
    ...verdict,
    message: `the provider answered HTTP ${status}${redirect(status, headers)}${said(failure)}${hint ? ' (check the effort in the [thinking] configuration)' : ''}`,
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
  return {
    ...verdict,
    message: `the provider reported an error${said(failure)}`,
    ...(!Number.isNaN(status) && { status }),
    ...traceOf(headers)
  }
}

/** The error in an object that a server sent where an answer belongs: its `error`, or itself when it says that it is one. */
export function errorIn(value: object): unknown {
  const { error, type, object } = record(value)
  return error || (type === 'error' || object === 'error' ? value : undefined)
}

/** A credential that cannot be used, seen before the provider was asked. */
export function authError(message: string): LlmError {
  return { ...verdicts.auth, message }
}

/** An answer that is no stream of this protocol: a web page, garbage, an oversized event. Sent again, it may be right. */
export function formatError(message: string, headers: Headers, retryable = true): LlmError {
  return { code: 'provider.api_error', name: 'StreamFormatError', message, retryable, ...traceOf(headers) }
}

/** A JSON answer that is neither a stream nor an error as this protocol writes it; its words are repeated. */
export function foreignAnswer(type: string, body: string, headers: Headers): LlmError {
  return formatError(`the provider answered with ${type} instead of an event stream${said(readFailure(body))}`, headers)
}

/** The answer ended well and said nothing. */
export function emptyAnswer(headers: Headers): LlmError {
  const message = 'the provider answered with no content'
  return { code: 'provider.api_error', name: 'EmptyResponseError', message, retryable: true, ...traceOf(headers) }
}

/** True for failures of sockets, names, certificates and the HTTP client; everything else is a bug of ours. */
export function isTransportError(error: unknown): boolean {
  return transportCodes.test(codeOf(error))
}

/** The connection failed before or during the answer (undefined: it ended too early). `where` names the host, without credentials. */
export function transportError(error: unknown, where: string, headers: Headers = {}): LlmError {
  if (error instanceof OutboundRefused) {
    return { code: 'provider.connection_error', name: 'OfflineError', message: error.message, retryable: false }
  }
  if (error instanceof ProxyProblem) {
    const message = `the connection to ${where} failed: ${error.message}`
    return { code: 'provider.connection_error', name: 'ProxyError', message, retryable: error.transient }
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
  const request_id = headers['x-request-id'] ?? headers['request-id']
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
  const texts = [inner.message, outer.error, outer.message, outer.detail, outer.msg, firstOf(outer.detail), firstOf(outer.errors)]
  const message = texts.find(text => typeof text === 'string')
  // A gateway says that its provider failed; what the provider said stands beside it.
  const { raw } = record(inner.metadata)
  const kind = [inner.code, inner.type, inner.status].filter(word => typeof word === 'string' || typeof word === 'number').join(' ')
  return {
    kind: kind.toLowerCase(),
    message: cut([message, raw].filter(text => typeof text === 'string' && text !== '').join(': '))
  }
}

/** What the first entry of a list of complaints says. */
function firstOf(list: unknown): unknown {
  const first = Array.isArray(list) ? list[0] : undefined
  return typeof first === 'string' ? first : (record(first).msg ?? record(first).message)
}

const said = ({ message }: UpstreamFailure): string => (message === '' ? '' : `: ${message}`)

/** Redirects are not followed, because the key would travel along. The path and query of the new place may hold secrets. */
function redirect(status: number, { location = '' }: Headers): string {
  if (status < 300 || status > 399) return ''
  return `, a redirect${URL.canParse(location) ? ` to ${new URL(location).origin}` : ''} (check base_url)`
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
    const { code, errors, cause, name } = at as { code?: unknown; errors?: unknown[]; cause?: unknown; name?: unknown }
    if (typeof code === 'string') return code
    // The parser of the HTTP client names no code for a body that ends in the middle of a chunk.
    if (name === 'HTTPParserError') return 'HPE_INVALID'
    at = cause ?? errors?.[0]
  }
  return ''
}
