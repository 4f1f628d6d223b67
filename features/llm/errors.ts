/** What went wrong at a provider, in the engine's words: HTTP statuses, error objects inside a stream, answers that are none. */
import type { LlmError } from './request.ts'
import { readFailure, readFailureValue, type UpstreamFailure } from './upstream-failure.ts'

type Headers = Readonly<Record<string, string>>
type Verdict = Pick<LlmError, 'code' | 'name' | 'retryable'>

/** Prompts that are longer than the model can read, in the words of many servers. */
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
    'inputs.? tokens \\+ .*must be',
    'too many (input )?tokens',
    'prompt ?超长'
  ].join('|')
)
const exhausted =
  /insufficient[ _](quota|balance|credit|funds)|exceeded[ _](your )?current[ _]quota|quota[ _](has been )?exhausted|billing|credit balance|out of credits|account .*suspended|reached your specified .*usage limit|余额不足|欠费/
const filtered = /content[ _](filter|management|policy)|safety (system|filter)|high[ _]risk|flagged/
/** Words that promise another answer later: of a limit that passes, whatever else they mention. */
const passing = /per[ -](second|sec|minute|min|hour|day)\b|\b[rt]p[ms]\b|try(ing)? again|retry|please wait|wait (and|before|a )|later/
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

/**
 * Codes and types of well-known servers, lower case, the first that fits. They say what happened; words only say it where no code does:
 * texts about a limit that passes talk of billing, and of tokens that were too many.
 */
const kinds: readonly (readonly [kind: RegExp, verdict: Verdict])[] = [
  [/context_(length|window)_exceeded|exceed_context_size|context_limit/, verdicts.overflow],
  [/insufficient_(quota|balance|credit|funds)|exceeded_current_quota|billing|payment_required|arrear/, verdicts.quota],
  [/overload|slow_down|\bunavailable\b|service_?unavailable/, verdicts.overloaded],
  [/rate_?limit|throttl|too_?many_?(requests|tokens)|token_quota_exceeded|limit_(requests|burst)|capacity_exceeded/, verdicts.rate],
  [/content_?filter|content_policy|content_management|data_inspection|moderation/, verdicts.filtered],
  // The model wrote a call that is none: asked again, it may write it right.
  [/tool_use_failed/, verdicts.transient],
  [/authenticat|unauthorized|invalid_(api_)?key|permission|access_?denied|account_deactivated/, verdicts.auth]
]

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
  const words = failure.message.toLowerCase()
  const asked = status === 400 || status === 413 || status === 422
  const known = kindOf(failure)
  // A single request over the limit of a minute is refused for good: it has to become shorter.
  if (status === 413 && overflow.test(words)) return verdicts.overflow
  if (known) return known
  if (status === 401 || status === 403) return status === 403 && filtered.test(words) ? verdicts.filtered : verdicts.auth
  if (asked && passing.test(words) && /too many tokens|rate limit/.test(words)) return verdicts.rate
  if (asked && overflow.test(words)) return verdicts.overflow
  if (status === 400 && filtered.test(words)) return verdicts.filtered
  if ((status === 400 || status === 402) && exhausted.test(words)) return verdicts.quota
  if (status === 429) return exhausted.test(words) && !passing.test(words) ? verdicts.quota : verdicts.rate
  if (status === 529 || ((status === 500 || status === 503) && words.includes('overload'))) return verdicts.overloaded
  return transient.has(status) || status >= 500 ? verdicts.transient : verdicts.permanent
}

/** What the provider's own code or type says; undefined where it says no more than that something went wrong. */
function kindOf({ kind }: UpstreamFailure): Verdict | undefined {
  return kinds.find(([pattern]) => pattern.test(kind))?.[1]
}

/** Of an error inside a stream that names no status. */
function judgeWords(failure: UpstreamFailure): Verdict {
  const known = kindOf(failure)
  if (known) return known
  const words = failure.message.toLowerCase()
  const passes = passing.test(words)
  if (/rate[ _]limit|too many requests/.test(words) || (passes && /too many tokens/.test(words))) return verdicts.rate
  if (overflow.test(words)) return verdicts.overflow
  if (exhausted.test(words) && !passes) return verdicts.quota
  if (filtered.test(words)) return verdicts.filtered
  if (words.includes('overload')) return verdicts.overloaded
  if (/invalid[ _]api[ _]key/.test(words)) return verdicts.auth
  return /invalid_request|invalid_argument/.test(failure.kind) ? verdicts.permanent : verdicts.transient
}

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
