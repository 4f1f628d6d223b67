/** Auth readiness: what a client asks before it offers a prompt (contract 1, Auth readiness). */
import { defaultModelSection, type LoginStatus, nonBlank, type ProviderRecord, providersSection } from '../llm/index.ts'
import { MANAGED_PROVIDER } from './service.ts'
import type { ViewSource } from './view.ts'

/** Contract 1, Auth readiness. */
export interface Readiness {
  readonly ready: boolean
  readonly providers_count: number
  readonly default_model: string | null
  readonly managed_provider: { readonly name: string; readonly status: LoginStatus } | null
}

/** Providers and models that packs bring along count: a prompt can be sent to them. */
export function readiness({ config, contributed, loginStatus }: ViewSource): Readiness {
  const providers: Readonly<Record<string, ProviderRecord>> = config.get(providersSection)
  const extra = contributed()
  const count = new Set([...Object.keys(providers), ...extra.map(model => model.provider_id)]).size
  const default_model = nonBlank(config.get(defaultModelSection)) ?? extra.find(model => model.fallback_default)?.alias ?? null
  const managed = Object.hasOwn(providers, MANAGED_PROVIDER) ? providers[MANAGED_PROVIDER] : undefined
  // Without a reference to a login it works by its own key, whatever is stored of an earlier login.
  const status = managed?.oauth === undefined ? 'unauthenticated' : loginStatus(MANAGED_PROVIDER)
  const managed_provider = managed ? { name: MANAGED_PROVIDER, status } : null
  return {
    ready: count > 0 && default_model !== null && managed_provider?.status !== 'revoked',
    providers_count: count,
    default_model,
    managed_provider
  }
}
