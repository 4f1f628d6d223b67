/** Auth readiness: what a client asks before it offers a prompt (contract 1, Auth readiness). */
import { AppError, type DataOf } from '../../kernel/index.ts'
import type { Config } from '../config/index.ts'
import { defaultModelSection, type Llm, modelsSection, nonBlank, type ProviderRecord, providersSection } from '../llm/index.ts'
import type { readAuth } from './contract.ts'
import { MANAGED_PROVIDER } from './service.ts'
import type { ViewSource } from './view.ts'

interface ReadinessSource extends ViewSource {
  readonly config: Pick<Config, 'get' | 'diagnostics'>
  readonly llm: Pick<Llm, 'resolve'>
}

/**
 * Providers and models that packs bring along count: a prompt can be sent to them. A default model that is set and does not exist is warned of.
 * `check_model`: also warns of what else is in the way of a prompt to it.
 */
export function readiness({ config, contributed, loginStatus, llm }: ReadinessSource, check_model = false): DataOf<typeof readAuth> {
  const providers: Readonly<Record<string, ProviderRecord>> = config.get(providersSection)
  const models = config.get(modelsSection)
  const extra = contributed()
  const count = new Set([...Object.keys(providers), ...extra.map(model => model.provider_id)]).size
  const default_model = nonBlank(config.get(defaultModelSection)) ?? extra.find(model => model.fallback_default)?.alias ?? null
  const owner = default_model !== null && Object.hasOwn(models, default_model) ? models[default_model]!.provider : undefined
  const exists = owner === undefined ? extra.some(model => model.alias === default_model) : Object.hasOwn(providers, owner)
  const managed = Object.hasOwn(providers, MANAGED_PROVIDER) ? providers[MANAGED_PROVIDER] : undefined
  // Without a reference to a login it works by its own key, whatever is stored of an earlier login.
  const status = managed?.oauth === undefined ? 'unauthenticated' : loginStatus(MANAGED_PROVIDER)
  const managed_provider = managed ? { name: MANAGED_PROVIDER, status } : null
  const warnings = config.diagnostics().flatMap(({ domain, message }) => (domain === undefined ? [message] : []))
  const problem = default_model !== null && count > 0 && (!exists || check_model) ? problemOf(default_model, llm) : undefined
  if (problem !== undefined) warnings.push(problem)
  return {
    ready: count > 0 && default_model !== null && managed_provider?.status !== 'revoked',
    providers_count: count,
    default_model,
    managed_provider,
    ...(warnings.length > 0 && { warnings })
  }
}

/** Why a prompt to the model would be refused. */
function problemOf(alias: string, llm: Pick<Llm, 'resolve'>): string | undefined {
  try {
    llm.resolve(alias)
    return undefined
  } catch (error) {
    if (!AppError.is(error)) throw error
    return `the default model ${alias} cannot be used: ${error.message}`
  }
}
