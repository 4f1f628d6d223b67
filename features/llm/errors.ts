/** What went wrong at a provider, in the engine's words: HTTP statuses, error objects inside a stream, answers that are none. */
import type { LlmError } from './request.ts'
import { readFailure, readFailureValue, type UpstreamFailure } from './upstream-failure.ts'

type Headers = Readonly<Record<string, string>>
type Verdict = Pick<LlmError, 'code' | 'name' | 'retryable'>

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

/** Lower case. */
const wordsOf = (failure: UpstreamFailure) => `${failure.kind} ${failure.message.toLowerCase()}`

const said = ({ message }: UpstreamFailure): string => (message === '' ? '' : `: ${message}`)

/** Redirects are not followed, because the key would travel along. The path and query of the new place may hold secrets. */
function redirect(status: number, { location = '' }: Headers): string {
  if (status < 300 || status > 399) return ''
  return `, a redirect${URL.canParse(location) ? ` to ${new URL(location).origin}` : ''} (check base_url)`
}

/** Whole seconds only; a date is ignored (the clocks need not agree). */
function retryAfter(headers: Headers): Pick<LlmError, 'retry_after_ms'> {
  const seconds = /^\d{1,6}$/.test(headers['retry-after'] ?? '') ? Number(headers['retry-after']) : 0
  return seconds > 0 ? { retry_after_ms: seconds * 1000 } : {}
}
