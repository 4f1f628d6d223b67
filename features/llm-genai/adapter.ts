/** The generate-content wire as a model adapter. */
import {
  credentialHeader,
  type LlmAdapter,
  type LlmError,
  type LlmRequest,
  modelListRequest,
  type ResolvedModel,
  type StreamLimits,
  streamEvents,
  type TokenOptions,
  TokenProblem,
  type Upstream
} from '../llm/index.ts'
import { failureOf, GenaiDecoder } from './decode.ts'
import { encode } from './encode.ts'
import type { Endpoint } from './endpoint.ts'
import type { KeyTokens } from './key-tokens.ts'
import { keyHeader } from './names.ts'

/** `tokens`: where key files are taken as credentials. */
export function genaiAdapter(
  { protocol, path, models, baseUrl, missing }: Endpoint,
  upstream: Upstream,
  { limits, tokens }: { readonly limits?: StreamLimits; readonly tokens?: KeyTokens } = {}
): LlmAdapter {
  function stream(request: LlmRequest, signal: AbortSignal) {
    const { model } = request
    const decoder = new GenaiDecoder()
    const where = `${path(model)}:streamGenerateContent?alt=sse`
    const headers = credentialHeader(model, keyHeader)
    return streamEvents(
      upstream,
      { model, path: where, headers, body: encode(request), decoder, failureOf, judge, ...(limits && { limits }) },
      signal
    )
  }

  return {
    protocol,
    needs_credential: true,
    needs_base_url: true,
    ...(baseUrl && { baseUrl }),
    ...(missing && { missing }),
    ...(tokens && {
      authorize: (model: ResolvedModel, given: TokenOptions) => located(tokens.authorize(model, given), missing),
      tokenUrl: (key_file: string) => tokens.tokenUrl(key_file)
    }),
    modelList: server => modelListRequest(server, models?.(server.base_url), { keyHeader }),
    stream
  }
}

/** A key file may name no project either. */
async function located(model: Promise<ResolvedModel>, missing: Endpoint['missing']): Promise<ResolvedModel> {
  const found = await model
  const lack = missing?.({ ...found, key_file: undefined })
  if (lack === undefined) return found
  const message = `provider ${found.provider_id}: ${lack}, and its key file names no project`
  throw new TokenProblem({ code: 'model.not_configured', name: 'EndpointIncomplete', message, retryable: false })
}

/** A rejected key is a wrong argument on this wire; and what passes in seconds has the same words as a quota that is used up. */
function judge(error: LlmError, said: string): LlmError {
  if (said.includes('"API_KEY_INVALID"')) return { ...error, code: 'provider.auth_error', name: 'AuthError', retryable: false }
  if (error.code !== 'provider.rate_limit') return error
  // The wire says of a quota of a day, too, that another try in some seconds may help.
  if (said.includes('PerDay')) return { ...error, name: 'QuotaExhaustedError', retryable: false }
  const delay = Number(/"retryDelay":\s*"(\d+(?:\.\d+)?)s"/.exec(said)?.[1])
  if (!(delay > 0)) return error
  return { ...error, name: 'RateLimitError', retryable: true, retry_after_ms: error.retry_after_ms ?? Math.ceil(delay * 1000) }
}
