/** From an alias to everything a request needs: record, provider, protocol, URL, credential. Pure; the errors are the readiness codes. */
import { AppError } from '../../kernel/index.ts'
import { isHttpUrl } from './addresses.ts'
import { type CredentialSources, credentialOf } from './credential.ts'
import { nonBlank, providerPlace, providerUrl } from './env-table.ts'
import { knownCapabilities } from './model-families.ts'
import { type ModelRecord, type ProviderRecord, withOverrides } from './records.ts'
import type { ResolvedModel } from './request.ts'
import { type ContributedModel, type LlmAdapter, ModelUnresolved, NoCredential, NoProvider } from './service.ts'

/** What there is to choose from at this moment. */
export interface ModelTable extends CredentialSources {
  readonly providers: Readonly<Record<string, ProviderRecord>>
  readonly models: Readonly<Record<string, ModelRecord>>
  readonly default_model: string | undefined
  readonly contributed: readonly ContributedModel[]
  readonly adapters: readonly LlmAdapter[]
  /** What is said for the pack of a `model <alias>` or `protocol <name>` that is away and comes back by itself. */
  readonly absence?: (what: string) => AppError | undefined
  /** Sent with every request: `svc-code/<version>`. */
  readonly user_agent: string
  /** Headers of the environment, lower-case names; all others win. Default none. */
  readonly extra_headers?: Readonly<Record<string, string>>
  readonly thinking_keep: string | undefined
  /** Of every model, as the environment says. */
  readonly temperature: number | undefined
  readonly top_p: number | undefined
}

/** Configured `default_model`, else the first contributed fallback. */
export function defaultAlias(table: ModelTable): string | undefined {
  return nonBlank(table.default_model) ?? table.contributed.find(model => model.fallback_default)?.alias
}

/**
 * Resolves an alias, or the default one. Throws NoProvider (40110) when there is nothing at all, NoCredential (40111) when the adapter
 * needs a credential and there is none (`auth = "none"` says that none is needed), CredentialRejected (40112) when the login was refused for
 * good, PackAway (50007) when the pack of the model or of its adapter is starting again, ModelUnresolved (40113) for everything else.
 */
function resolveModel(alias: string | undefined, table: ModelTable): ResolvedModel {
  const id = nonBlank(alias) ?? defaultAlias(table)
  const away = id === undefined || Object.hasOwn(table.models, id) ? undefined : table.absence?.(`model ${id}`)
  if (away) throw away
  if (Object.keys(table.providers).length === 0 && table.contributed.length === 0) throw new AppError(NoProvider)
  if (id === undefined) throw unresolved('no model was chosen and there is no default model', {})
  if (Object.hasOwn(table.models, id)) return configured(id, table.models[id]!, table)
  const model = table.contributed.find(candidate => candidate.alias === id)
  if (!model) throw unresolved(`model ${id} is not known`, { model_id: id })
  return contributed(model, table)
}

/** True for an alias that is configured, or that a pack brings or will bring again. */
export function knowsModel(alias: string, { models, contributed, absence }: ModelTable): boolean {
  return Object.hasOwn(models, alias) || contributed.some(model => model.alias === alias) || absence?.(`model ${alias}`) !== undefined
}

/** Resolved models, kept as long as the table is the same. A login may end at any time: where one counts, nothing is kept. */
export class KeptModels {
  #from: ModelTable | undefined
  readonly #models = new Map<string | undefined, ResolvedModel>()

  /** As `resolveModel`. */
  resolve(alias: string | undefined, table: ModelTable): ResolvedModel {
    if (table !== this.#from) this.#models.clear()
    this.#from = table
    const known = this.#models.get(alias)
    if (known) return known
    let asksLogin = false
    const loginStatus: ModelTable['loginStatus'] = (...whose) => {
      asksLogin = true
      return table.loginStatus?.(...whose) ?? 'unauthenticated'
    }
    const model = resolveModel(alias, { ...table, loginStatus })
    if (!asksLogin) this.#models.set(alias, model)
    return model
  }
}

/** Wire protocol of a configured model, or of a provider by itself. */
export function protocolOf(provider: Pick<ProviderRecord, 'type'>, model: Pick<ModelRecord, 'protocol'> = {}): string {
  return nonBlank(model.protocol) ?? nonBlank(provider.type) ?? 'compat_chat'
}

/** The URL that is called for a configured model, or for a provider by itself; undefined when nobody names one. */
export function addressOf(
  adapter: LlmAdapter | undefined,
  provider: ProviderRecord,
  model: Pick<ModelRecord, 'base_url'> = {}
): string | undefined {
  const base_url = nonBlank(model.base_url) ?? providerUrl(provider) ?? adapter?.default_base_url
  return adapter?.baseUrl ? adapter.baseUrl(base_url, providerPlace(provider).location) : base_url
}

function configured(alias: string, stored: ModelRecord, table: ModelTable): ResolvedModel {
  const record = withOverrides(stored)
  const provider_id = record.provider
  const where = { model_id: alias, provider_id }
  if (!Object.hasOwn(table.providers, provider_id)) throw unresolved(`provider ${provider_id} of model ${alias} is not configured`, where)
  const provider = table.providers[provider_id]!
  const protocol = protocolOf(provider, record)
  const adapter = adapterOf(protocol, table, where)
  const base_url = addressOf(adapter, provider, record)
  if (adapter.needs_base_url && base_url === undefined) throw unresolved(`provider ${provider_id} has no base_url`, where)
  if (base_url !== undefined && !isHttpUrl(base_url))
    throw unresolved(`base_url of provider ${provider_id} is not an http(s) address`, where)
  const { max_context_size, max_input_size } = record
  const model: ResolvedModel = {
    alias,
    provider_id,
    protocol,
    name: record.model,
    display_name: nonBlank(record.display_name) ?? (nonBlank(record.model) || alias),
    headers: headersOf(table, provider.custom_headers),
    max_context_size,
    capabilities: [...new Set([...(record.capabilities ?? []), ...knownCapabilities(record.model)])],
    ...(nonBlank(provider.type) === 'svc' && { own_headers: lowerCased(provider.custom_headers) }),
    ...(base_url && { base_url: base_url.replace(/\/+$/, '') }),
    ...credentialOf({ alias, model: stored, provider_id, provider, adapter }, table),
    ...providerPlace(provider),
    ...(max_input_size && { max_input_size: Math.min(max_input_size, max_context_size) }),
    ...(record.max_output_size && { max_output_size: record.max_output_size }),
    ...(record.support_efforts && { support_efforts: record.support_efforts }),
    ...(record.default_effort && { default_effort: record.default_effort }),
    ...(record.off_effort && { off_effort: record.off_effort }),
    ...(record.reasoning_key && { reasoning_key: record.reasoning_key }),
    ...(record.adaptive_thinking !== undefined && { adaptive_thinking: record.adaptive_thinking }),
    ...(table.thinking_keep && { thinking_keep: table.thinking_keep }),
    ...(table.temperature !== undefined && { temperature: table.temperature }),
    ...(table.top_p !== undefined && { top_p: table.top_p })
  }
  const lack = adapter.missing?.(model)
  if (lack !== undefined) throw unresolved(`provider ${provider_id}: ${lack}`, where)
  return ready(adapter, model, provider.auth)
}

function contributed({ fallback_default: _, cost: _cost, auth, ...model }: ContributedModel, table: ModelTable): ResolvedModel {
  const adapter = adapterOf(model.protocol, table, { model_id: model.alias, provider_id: model.provider_id })
  return ready(adapter, { ...model, headers: headersOf(table, model.headers) }, auth)
}

function headersOf({ user_agent, extra_headers }: ModelTable, own: Readonly<Record<string, string>> | undefined): Record<string, string> {
  return { ...extra_headers, 'user-agent': user_agent, ...lowerCased(own) }
}

function ready(adapter: LlmAdapter, model: ResolvedModel, auth: 'none' | undefined): ResolvedModel {
  const { api_key, login, key_file } = model
  if (adapter.needs_credential && !api_key && !login && !key_file && auth !== 'none') {
    const { provider_id } = model
    throw new AppError(NoCredential, { message: `provider ${provider_id} has no credential`, details: { provider_id } })
  }
  return model
}

function adapterOf(protocol: string, table: ModelTable, where: Readonly<Record<string, string>>): LlmAdapter {
  const adapter = table.adapters.find(candidate => candidate.protocol === protocol)
  if (!adapter) throw table.absence?.(`protocol ${protocol}`) ?? unresolved(`no adapter speaks the protocol ${protocol}`, where)
  return adapter
}

function unresolved(message: string, details: Readonly<Record<string, string>>): AppError {
  return new AppError(ModelUnresolved, { message, ...(Object.keys(details).length > 0 && { details }) })
}

function lowerCased(headers: Readonly<Record<string, string>> | undefined): Record<string, string> {
  return Object.fromEntries(Object.entries(headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]))
}
