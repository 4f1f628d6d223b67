/** The responses wire as a model adapter. */
import { credentialHeader, type LlmAdapter, type LlmError, type StreamLimits, streamEvents, type Upstream } from '../llm/index.ts'
import { failureOf, ResponsesDecoder } from './decode.ts'
import { encode } from './encode.ts'

/** `limits`: of one event and one response; default as in the llm pack. */
export function responsesAdapter(upstream: Upstream, limits?: StreamLimits): LlmAdapter {
  return {
    protocol: 'compat_responses',
    needs_credential: true,
    needs_base_url: true,
    stream(request, signal) {
      const { model } = request
      const decoder = new ResponsesDecoder(model.name)
      const body = encode(request)
      return streamEvents(
        upstream,
        { model, path: '/responses', headers: credentialHeader(model), body, decoder, failureOf, judge, ...(limits && { limits }) },
        signal
      )
    }
  }
}

/** Codes by which the wire refuses what was sent; the same again would be refused again. */
const refusedInput = /"code":\s*"(invalid_|image_|unsupported_image|empty_image)/

function judge(error: LlmError, said: string): LlmError {
  return error.status === undefined && error.code === 'provider.api_error' && refusedInput.test(said)
    ? { ...error, retryable: false }
    : error
}
