/** The managed login in the forms that other packs ask for. */
import { authError, type LlmLogin, TokenProblem } from '../llm/index.ts'
import type { ProviderLogins } from '../providers/index.ts'
import { AccountProblem } from './problem.ts'
import type { ManagedLogin } from './service.ts'

/** As the providers pack asks: for model lists. */
export function providerLogins(login: ManagedLogin): ProviderLogins {
  return {
    status: provider_id => login.status(provider_id),
    async token(provider_id, signal) {
      const token = await login.accessToken(provider_id, { signal })
      if (token === undefined) throw new AccountProblem('it is not logged in')
      return token
    }
  }
}

/** As credential of models: what another try cannot change ends a turn at once. */
export function modelLogin(login: ManagedLogin): LlmLogin {
  return {
    status: (provider_id, oauth) => login.status(provider_id, oauth),
    async accessToken(provider_id, options) {
      try {
        return await login.accessToken(provider_id, options)
      } catch (error) {
        throw error instanceof AccountProblem && !error.transient ? new TokenProblem(authError(error.message), error) : error
      }
    }
  }
}
