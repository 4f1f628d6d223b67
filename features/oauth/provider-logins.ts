/** The managed login in the form that the providers pack asks for. */
import type { ProviderLogins } from '../providers/index.ts'
import { AccountProblem } from './problem.ts'
import type { ManagedLogin } from './service.ts'

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
