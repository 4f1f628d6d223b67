/** How the words of well-known servers are understood. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { errorIn, statusError, streamError } from '../../../features/llm/index.ts'
import { transportError } from '../../../features/llm/transport-errors.ts'
import { providerErrors } from './provider-errors.ts'

const meanings = {
  overflow: ['context.overflow', 'ContextOverflowError', false],
  quota: ['provider.rate_limit', 'QuotaExhaustedError', false],
  rate: ['provider.rate_limit', 'RateLimitError', true],
  overloaded: ['provider.overloaded', 'OverloadedError', true],
  filtered: ['provider.filtered', 'FilteredError', false],
  auth: ['provider.auth_error', 'AuthError', false],
  transient: ['provider.api_error', 'ApiError', true],
  permanent: ['provider.api_error', 'ApiError', false]
} as const

for (const { who, status, body, means } of providerErrors) {
  test(`${who} (${status ?? 'in a stream'}): ${means}`, () => {
    const error = status === undefined ? streamError(errorIn(body as object) ?? body, {}) : statusError(status, JSON.stringify(body), {})

    assert.deepEqual([error.code, error.name, error.retryable], meanings[means])
  })
}

test('the status of an answer that went well is no error', () => {
  assert.equal(errorIn({ choices: [], base_resp: { status_code: 0, status_msg: '' } }), undefined)
})

const refusal = (message: string, code?: string) => JSON.stringify({ error: { message, type: 'invalid_request_error', code } })

test('a prompt beyond the window is one, in the words of every server', () => {
  const words = [
    "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens",
    'Your input exceeds the context window of this model. Please adjust your input and try again.',
    'the request exceeds the available context size, try increasing it',
    'prompt is too long: 205000 tokens > 200000 maximum',
    'input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000',
    'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
    'Your request exceeded model token limit: 262144',
    'Invalid request: Your request exceeded model token limit: 8192 (requested: 9000)',
    "This model's maximum prompt length is 131072 but the request contains 150000 tokens.",
    'prompt token count of 130000 exceeds the limit of 128000',
    'Prompt exceeds max length',
    'Range of input length should be [1, 30720]',
    'Input is too long for requested model.',
    'Prompt contains 65673 tokens and 0 draft tokens, too large for model with 32768 maximum context length',
    'too many tokens: 9000'
  ]

  for (const message of words) assert.equal(statusError(400, refusal(message), {}).code, 'context.overflow', message)
  assert.equal(statusError(400, refusal('x', 'context_length_exceeded'), {}).code, 'context.overflow')
  assert.equal(statusError(413, refusal('prompt is too long'), {}).code, 'context.overflow')
  for (const status of [401, 404, 429, 500]) assert.notEqual(statusError(status, refusal(words[0]!), {}).code, 'context.overflow')
})

test('other complaints about a request are no overflow', () => {
  for (const message of ['unknown field context', 'max_tokens must be at least 1', 'tool name is too long', 'image exceeds 5 MB maximum']) {
    assert.equal(statusError(400, refusal(message), {}).code, 'provider.api_error', message)
  }
})

test('an exhausted quota is final, a limit that passes is not', () => {
  const quota = (status: number, body: unknown) => statusError(status, JSON.stringify(body), {})
  const used = [
    { error: { message: 'You exceeded your current quota, please check your plan', code: 'insufficient_quota' } },
    { error: { message: 'Insufficient Balance', type: 'unknown_error' } },
    { error: { message: 'Your account org-1 <ak-1> is suspended', type: 'exceeded_current_quota_error' } },
    { error: { message: 'account balance', code: 'insufficient_balance' } }
  ]
  const passing = [
    { error: { message: 'Rate limit reached for requests', code: 'rate_limit_exceeded' } },
    { error: { message: 'The engine is currently overloaded, please try again later', type: 'engine_overloaded_error' } },
    { error: { message: 'too many requests' } }
  ]

  for (const body of used) assert.deepEqual([quota(429, body).retryable, quota(429, body).name], [false, 'QuotaExhaustedError'])
  for (const body of passing) assert.equal(quota(429, body).retryable, true)
})

test('statuses: which are worth another try', () => {
  const retried = [408, 409, 429, 500, 502, 503, 504, 520, 524, 529]
  const final = [301, 307, 308, 400, 401, 402, 403, 404, 405, 413, 415, 422, 451]

  for (const status of retried) assert.equal(statusError(status, '', {}).retryable, true, String(status))
  for (const status of final) assert.equal(statusError(status, '', {}).retryable, false, String(status))
})

test('Retry-After counts in whole positive seconds, however many; anything else is as if it were not there', () => {
  const after = (value: string) => statusError(429, '', { 'retry-after': value }).retry_after_ms

  assert.deepEqual(['1', '30', '86400'].map(after), [1000, 30_000, 86_400_000])
  for (const value of ['0', '-1', '1.5', '', 'soon', 'Wed, 21 Oct 2026 07:28:00 GMT', '5, 7']) assert.equal(after(value), undefined, value)
})

test('a request that cannot be built is not tried again, and what is wrong with it is not quoted', () => {
  for (const code of ['UND_ERR_INVALID_ARG', 'ERR_INVALID_URL', 'ERR_INVALID_CHAR']) {
    const error = transportError(Object.assign(new Error('invalid header value: key-1'), { code }), 'host')
    assert.deepEqual([error.code, error.name, error.retryable], ['provider.api_error', 'RequestError', false])
    assert.doesNotMatch(error.message, /key-1/)
  }
})

test('a complaint about the effort names the configuration', () => {
  const hint = /\[thinking\] configuration/

  assert.match(statusError(400, refusal('Unsupported value: reasoning_effort'), {}).message, hint)
  assert.match(statusError(422, refusal('thinking is not supported'), {}).message, hint)
  assert.doesNotMatch(statusError(400, refusal('unknown field'), {}).message, hint)
})

test('ids of the provider are kept under each of their names', () => {
  for (const name of ['x-request-id', 'request-id']) assert.equal(statusError(500, '', { [name]: 'a' }).request_id, 'a')
  assert.equal(streamError({ message: 'x' }, { 'x-trace-id': 't' }).trace_id, 't')
})
