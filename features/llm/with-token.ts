/** Sends a request with an access token that is got when it is sent; a token that is refused is renewed once. */
import { authError } from './errors.ts'
import { type LlmLogin, type TokenOptions, TokenProblem } from './login.ts'
import { OutboundRefused } from './outbound.ts'
import type { LlmError, LlmPart, ResolvedModel } from './request.ts'
import { transportError } from './transport-errors.ts'
import { streamOf, Tries } from './tries.ts'

/** Never rejects. `authorize` completes the model with its token. After an abort it ends without a last part. */
export function withToken(
  model: ResolvedModel,
  send: (model: ResolvedModel) => AsyncIterable<LlmPart>,
  authorize: (given: TokenOptions) => Promise<ResolvedModel>,
  signal: AbortSignal
): AsyncIterable<LlmPart> {
  let ready: ResolvedModel | undefined
  let over = false
  return new Tries(async refused => {
    if (refused && (over || refused.status !== 401)) return undefined
    over = refused !== undefined
    try {
      ready = await authorize({ force: over, refused: ready?.api_key, signal })
    } catch (error) {
      over = true
      return signal.aborted ? streamOf() : streamOf({ type: 'error', error: failureOf(error, model) })
    }
    return send(ready)
  })
}

/** The model with the access token of its login. Rejects as the login does, with TokenProblem where there is none any more. */
export async function withLogin(model: ResolvedModel, login: LlmLogin | undefined, given: TokenOptions): Promise<ResolvedModel> {
  const { provider_id, oauth, alias } = model
  const api_key = await login?.accessToken(provider_id, { ...given, oauth })
  const who = oauth ? `model ${alias}` : `provider ${provider_id}`
  if (api_key === undefined) throw new TokenProblem(authError(`${who} is not logged in any more; log in again`))
  return { ...model, api_key, bearer: true }
}

function failureOf(error: unknown, model: ResolvedModel): LlmError {
  for (let at = error; at instanceof Error; at = at.cause) {
    if (at instanceof OutboundRefused) return transportError(at, model.provider_id)
  }
  if (error instanceof TokenProblem) return error.failure
  return { code: 'provider.connection_error', name: 'ConnectionError', message: (error as Error).message, retryable: true }
}
