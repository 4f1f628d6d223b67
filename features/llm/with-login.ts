/** Sends a request with the access token of a login; a token that is refused is renewed once. */
import type { LlmLogin, LlmPart, ResolvedModel } from './service.ts'

/** Never rejects. `send` opens the stream of the model with its token. After an abort it ends without a last part. */
export async function* withLogin(
  model: ResolvedModel,
  send: (model: ResolvedModel) => AsyncIterable<LlmPart>,
  login: LlmLogin | undefined,
  signal: AbortSignal
): AsyncGenerator<LlmPart, void, undefined> {
  for (const force of [false, true]) {
    let token: string | undefined
    try {
      token = await login?.accessToken(model.provider_id, { force, signal })
    } catch (error) {
      if (!signal.aborted) yield failed('provider.connection_error', 'ConnectionError', (error as Error).message, true)
      return
    }
    if (token === undefined) {
      yield failed('provider.auth_error', 'AuthError', `provider ${model.provider_id} is not logged in any more; log in again`, false)
      return
    }
    let begun = false
    let refused = false
    for await (const part of send({ ...model, api_key: token, bearer: true })) {
      refused = !begun && !force && part.type === 'error' && part.error.status === 401
      if (refused) break
      begun = true
      yield part
    }
    if (!refused) return
  }
}

function failed(code: string, name: string, message: string, retryable: boolean): LlmPart {
  return { type: 'error', error: { code, name, message, retryable } }
}
