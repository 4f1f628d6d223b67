/** What providers answer when they refuse, as they write it. Names, hosts and ids of accounts are made up. */

/** How a text is understood: `<engine code> <error name>`, and whether another try is worth it. */
export interface ProviderError {
  readonly who: string
  /** HTTP status; absent: inside a stream. */
  readonly status?: number
  readonly body: unknown
  readonly means: 'overflow' | 'quota' | 'rate' | 'overloaded' | 'filtered' | 'auth' | 'transient' | 'permanent'
}

const chat = (message: string, type: string | null, code: unknown = null) => ({ error: { message, type, param: null, code } })
const messages = (type: string, message: string) => ({ type: 'error', error: { type, message }, request_id: 'req_1' })
const genai = (code: number, status: string, message: string, details: unknown[] = []) => ({ error: { code, message, status, details } })

const perMinute =
  'Rate limit reached for gpt-5 in organization org-1 on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 2s. Visit https://host.example/account/rate-limits to learn more. You can increase your rate limit by adding a payment method to your account at https://host.example/account/billing.'
const perDay =
  'Rate limit reached for model `m` in organization `org_1` service tier `on_demand` on tokens per day (TPD): Limit 500000, Used 499000, Requested 8000. Please try again in 20m9.6s. Need more tokens? Upgrade to Dev Tier today at https://host.example/settings/billing'
const tooLargeForMinute =
  'Request too large for model `m` in organization `org_1` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 8113, please reduce your message size and try again. Need more tokens? Upgrade at https://host.example/settings/billing'
const freeTier =
  'You exceeded your current quota, please check your plan and billing details. For more information on this error, head to: https://host.example/rate-limits. * Quota exceeded for metric: generate_content_free_tier_input_token_count, limit: 250000\nPlease retry in 13.4s.'

export const providerErrors: readonly ProviderError[] = [
  {
    who: 'a minute of tokens is used up, and the text talks of billing',
    status: 429,
    body: chat(perMinute, 'tokens', 'rate_limit_exceeded'),
    means: 'rate'
  },
  { who: 'the same without a code', status: 429, body: chat(perMinute, null), means: 'rate' },
  { who: 'the same inside a stream', body: chat(perMinute, 'tokens', 'rate_limit_exceeded'), means: 'rate' },
  { who: 'a quota that passes, inside a stream and without a code', body: chat(freeTier, null), means: 'transient' },
  { who: 'a day of tokens is used up', status: 429, body: chat(perDay, 'tokens', 'rate_limit_exceeded'), means: 'rate' },
  {
    who: 'one request is over the limit of a minute',
    status: 413,
    body: chat(tooLargeForMinute, 'tokens', 'rate_limit_exceeded'),
    means: 'overflow'
  },
  {
    who: 'an account without means',
    status: 429,
    body: chat('You exceeded your current quota, please check your plan and billing details.', 'insufficient_quota', 'insufficient_quota'),
    means: 'quota'
  },
  {
    who: 'the same inside a stream',
    body: chat('You exceeded your current quota, please check your plan and billing details.', 'insufficient_quota', 'insufficient_quota'),
    means: 'quota'
  },
  {
    who: 'a throttled cloud',
    status: 429,
    body: { __type: 'ThrottlingException', message: 'Too many tokens, please wait before trying again.' },
    means: 'rate'
  },
  { who: 'the same without a type', status: 400, body: { message: 'Too many tokens, please wait before trying again.' }, means: 'rate' },
  { who: 'the same inside a stream', body: { message: 'Too many tokens, please wait before trying again.' }, means: 'rate' },
  {
    who: 'tokens of a minute, called too many',
    status: 429,
    body: {
      message: 'Tokens per minute limit exceeded - too many tokens processed.',
      type: 'too_many_tokens_error',
      param: 'quota',
      code: 'token_quota_exceeded'
    },
    means: 'rate'
  },
  {
    who: 'a messages server at its rate',
    status: 429,
    body: messages(
      'rate_limit_error',
      "This request would exceed your organization's rate limit of 30,000 input tokens per minute. See your plan and billing."
    ),
    means: 'rate'
  },
  { who: 'a messages server that is overloaded, in a stream', body: messages('overloaded_error', 'Overloaded'), means: 'overloaded' },
  { who: 'a messages server that is overloaded', status: 529, body: messages('overloaded_error', 'Overloaded'), means: 'overloaded' },
  {
    who: 'a prompt too long for a messages server',
    status: 400,
    body: messages('invalid_request_error', 'prompt is too long: 205000 tokens > 200000 maximum'),
    means: 'overflow'
  },
  {
    who: 'prompt and answer together',
    status: 400,
    body: messages(
      'invalid_request_error',
      'input length and `max_tokens` exceed context limit: 190000 + 64000 > 200000, decrease input length or `max_tokens` and try again'
    ),
    means: 'overflow'
  },
  {
    who: 'a messages account without credit',
    status: 400,
    body: messages(
      'invalid_request_error',
      'Your credit balance is too low to access the API. Please go to Plans & Billing to upgrade or purchase credits.'
    ),
    means: 'quota'
  },
  {
    who: 'a spending limit of a month',
    status: 400,
    body: messages(
      'invalid_request_error',
      'You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.'
    ),
    means: 'quota'
  },
  { who: 'a billing problem by its type', status: 403, body: messages('billing_error', 'Your account has an issue.'), means: 'quota' },
  { who: 'a wrong key', status: 401, body: messages('authentication_error', 'invalid x-api-key'), means: 'auth' },
  {
    who: 'a wrong key inside a stream',
    body: chat('Incorrect API key provided', 'invalid_request_error', 'invalid_api_key'),
    means: 'auth'
  },
  {
    who: 'a call that the model wrote wrong',
    status: 400,
    body: {
      error: {
        message: "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",
        type: 'invalid_request_error',
        code: 'tool_use_failed',
        failed_generation: 'Read{"path": "a"}'
      }
    },
    means: 'transient'
  },
  {
    who: 'the same inside a stream',
    body: chat('Tool call validation failed: attempted to call tool x', 'invalid_request_error', 'tool_use_failed'),
    means: 'transient'
  },
  { who: 'an unknown model', status: 404, body: messages('not_found_error', 'model: nope'), means: 'permanent' },
  {
    who: 'a window by its code',
    status: 400,
    body: chat('Your input exceeds the context window of this model.', 'invalid_request_error', 'context_length_exceeded'),
    means: 'overflow'
  },
  {
    who: 'a window by its code, inside a stream',
    body: { type: 'error', code: 'context_length_exceeded', message: 'Your input exceeds the context window of this model.' },
    means: 'overflow'
  },
  {
    who: 'a local server with its window',
    status: 400,
    body: {
      error: {
        code: 400,
        message: 'the request exceeds the available context size, try increasing it',
        type: 'exceed_context_size_error',
        n_ctx: 4096
      }
    },
    means: 'overflow'
  },
  {
    who: 'a local server in other words',
    status: 400,
    body: {
      object: 'error',
      message:
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens. Please reduce the length and try again.",
      type: 'BadRequestError',
      param: null,
      code: 400
    },
    means: 'overflow'
  },
  {
    who: 'inputs and new tokens',
    status: 422,
    body: chat(
      'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 32769. Given: 40000 `inputs` tokens and 1000 `max_new_tokens`',
      'invalid_request_error'
    ),
    means: 'overflow'
  },
  { who: 'a free tier of a minute', status: 429, body: genai(429, 'RESOURCE_EXHAUSTED', freeTier), means: 'rate' },
  { who: 'the same in a list', status: 429, body: [genai(429, 'RESOURCE_EXHAUSTED', freeTier)], means: 'rate' },
  {
    who: 'a quota of a day, by words alone',
    status: 429,
    body: genai(429, 'RESOURCE_EXHAUSTED', 'You exceeded your current quota, please check your plan and billing details.'),
    means: 'quota'
  },
  {
    who: 'an overloaded model',
    status: 503,
    body: genai(503, 'UNAVAILABLE', 'The model is overloaded. Please try again later.'),
    means: 'overloaded'
  },
  {
    who: 'an overloaded model, in a stream',
    body: genai(503, 'UNAVAILABLE', 'The model is overloaded. Please try again later.'),
    means: 'overloaded'
  },
  {
    who: 'a window in tokens',
    status: 400,
    body: genai(400, 'INVALID_ARGUMENT', 'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).'),
    means: 'overflow'
  },
  {
    who: 'a project without rights',
    status: 403,
    body: genai(403, 'PERMISSION_DENIED', 'Permission denied on resource project p.'),
    means: 'auth'
  },
  {
    who: 'an engine that is overloaded',
    status: 429,
    body: chat('The engine is currently overloaded, please try again later', 'engine_overloaded_error'),
    means: 'overloaded'
  },
  {
    who: 'too many requests side by side',
    status: 429,
    body: chat(
      'Your account org-1<ak-1> request reached max organization concurrency: 1, please try again after 1 seconds',
      'rate_limit_reached_error'
    ),
    means: 'rate'
  },
  {
    who: 'a quota of an account',
    status: 429,
    body: chat('You exceeded your current token quota: org-1 0, please check your account balance', 'exceeded_current_quota_error'),
    means: 'quota'
  },
  {
    who: 'no balance, told in the status of an answer',
    body: { id: 'x', choices: null, base_resp: { status_code: 1008, status_msg: 'insufficient balance' } },
    means: 'quota'
  },
  {
    who: 'too many requests, told in the status of an answer',
    body: { id: 'x', choices: null, base_resp: { status_code: 1002, status_msg: 'rate limit' } },
    means: 'rate'
  },
  {
    who: 'no balance, in Chinese',
    status: 429,
    body: { error: { code: '1113', message: '余额不足或无可用资源包,请充值。' } },
    means: 'quota'
  },
  {
    who: 'a prompt beyond the window, in Chinese',
    status: 400,
    body: { error: { code: '1261', message: 'Prompt 超长' } },
    means: 'overflow'
  },
  { who: 'no balance', status: 402, body: chat('Insufficient Balance', 'unknown_error', 'invalid_request_error'), means: 'quota' },
  {
    who: 'a gateway without credits',
    status: 402,
    body: { error: { code: 402, message: 'Insufficient credits. Add more using https://host.example/credits' } },
    means: 'quota'
  },
  {
    who: 'a gateway that moderates',
    status: 403,
    body: {
      error: {
        code: 403,
        message: 'Your chosen model requires moderation and your input was flagged for "violence".',
        metadata: { reasons: ['violence'] }
      }
    },
    means: 'filtered'
  },
  {
    who: 'a gateway whose provider is busy',
    status: 429,
    body: {
      error: {
        code: 429,
        message: 'Provider returned error',
        metadata: { raw: 'm is temporarily rate-limited upstream. Please retry shortly, or add your own key: https://host.example/billing' }
      }
    },
    means: 'rate'
  },
  {
    who: 'a filter by its code',
    status: 400,
    body: chat('The response was filtered due to the prompt triggering the content management policy.', null, 'content_filter'),
    means: 'filtered'
  },
  {
    who: 'an inspection of data',
    status: 400,
    body: { code: 'data_inspection_failed', message: 'Input data may contain inappropriate content.' },
    means: 'filtered'
  },
  {
    who: 'an allocated quota',
    status: 429,
    body: { code: 'Throttling.AllocationQuota', message: 'Allocated quota exceeded, please increase your quota limit.' },
    means: 'rate'
  },
  {
    who: 'capacity of a tier',
    status: 429,
    body: {
      object: 'error',
      message: 'Service tier capacity exceeded for this model.',
      type: 'service_tier_capacity_exceeded',
      code: '3505'
    },
    means: 'rate'
  },
  {
    who: 'a server that broke',
    status: 500,
    body: chat('The server had an error while processing your request.', 'server_error'),
    means: 'transient'
  },
  {
    who: 'a server that broke, in a stream',
    body: chat('The server had an error while processing your request. Sorry about that!', 'server_error'),
    means: 'transient'
  },
  {
    who: 'a wrong argument',
    status: 400,
    body: chat("Unsupported parameter: 'temperature' is not supported with this model.", 'invalid_request_error', 'unsupported_parameter'),
    means: 'permanent'
  },
  { who: 'a wrong argument, in a stream', body: chat('Invalid value', 'invalid_request_error'), means: 'permanent' }
]
