/** Sends a request with an access token that is got when it is sent; a token that is refused is renewed once. */
import { authError } from './errors.ts'
import { type LlmLogin, type TokenOptions, TokenProblem } from './login.ts'
import { OutboundRefused } from './outbound.ts'
import type { LlmError, LlmPart, ResolvedModel } from './request.ts'
import { transportError } from './transport-errors.ts'

/** Never rejects. `authorize` completes the model with its token. After an abort it ends without a last part. */
export async function* withToken(
  model: ResolvedModel,
  send: (model: ResolvedModel) => AsyncIterable<LlmPart>,
  authorize: (given: TokenOptions) => Promise<ResolvedModel>,
  signal: AbortSignal
): AsyncGenerator<LlmPart, void, undefined> {
  let refused: string | undefined
  for (const force of [false, true]) {
    let ready: ResolvedModel
    try {
      ready = await authorize({ force, refused, signal })
    } catch (error) {
      if (!signal.aborted) yield { type: 'error', error: failureOf(error, model) }
      return
    }
    let begun = false
    let again = false
    for await (const part of send(ready)) {
      again = !begun && !force && part.type === 'error' && part.error.status === 401
      if (again) break
      begun = true
      yield part
    }
    if (!again) return
    refused = ready.api_key
  }
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
