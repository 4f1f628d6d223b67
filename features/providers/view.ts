/** Providers and models as the API shows them: computed once for each state of the configuration. */
import { redactUrls } from '../../kernel/index.ts'
import type { Config } from '../config/index.ts'
import {
  type ContributedModel,
  defaultModelSection,
  type ModelRecord,
  modelsSection,
  nonBlank,
  type ProviderRecord,
  providersSection,
  providerToWire,
  withOverrides
} from '../llm/index.ts'
import type { ModelItem, ProviderItem } from './contract.ts'
import { aliasOf } from './form.ts'
import type { LoginStatus } from './service.ts'

export interface ViewSource {
  readonly config: Pick<Config, 'get'>
  /** Models that packs bring along; the same array while nothing changed. */
  readonly contributed: () => readonly ContributedModel[]
  readonly loginStatus: (provider_id: string) => LoginStatus
}

interface Shown {
  /** What it was made of, compared by identity. */
  readonly from: readonly unknown[]
  readonly providers: readonly ProviderItem[]
  readonly models: readonly ModelItem[]
  readonly byId: ReadonlyMap<string, ProviderItem>
  readonly byAlias: ReadonlyMap<string, ModelItem>
  /** Providers whose status follows a login. */
  readonly logins: ReadonlySet<string>
}

export class View {
  readonly #source: ViewSource
  #shown: Shown | undefined

  constructor(source: ViewSource) {
    this.#source = source
  }

  providers(): readonly ProviderItem[] {
    const { providers, logins } = this.#now()
    return logins.size === 0 ? providers : providers.map(item => this.#withLogin(item))
  }

  provider(id: string): ProviderItem | undefined {
    const item = this.#now().byId.get(id)
    return item && this.#withLogin(item)
  }

  models(): readonly ModelItem[] {
    return this.#now().models
  }

  model(alias: string): ModelItem | undefined {
    return this.#now().byAlias.get(alias)
  }

  #withLogin(item: ProviderItem): ProviderItem {
    if (!this.#now().logins.has(item.id) || this.#source.loginStatus(item.id) !== 'authenticated') return item
    return { ...item, has_api_key: true, status: 'connected' }
  }

  #now(): Shown {
    const { config, contributed } = this.#source
    const providers = config.get(providersSection)
    const models = config.get(modelsSection)
    const global = config.get(defaultModelSection)
    const extra = contributed()
    const from = [providers, models, global, extra]
    if (!this.#shown?.from.every((part, index) => part === from[index])) this.#shown = { from, ...show(providers, models, global, extra) }
    return this.#shown!
  }
}

function show(
  providers: Readonly<Record<string, ProviderRecord>>,
  models: Readonly<Record<string, ModelRecord>>,
  global: string | undefined,
  contributed: readonly ContributedModel[]
): Omit<Shown, 'from'> {
  const aliases = new Map<string, string[]>(Object.keys(providers).map(id => [id, []]))
  const byAlias = new Map<string, ModelItem>()
  for (const [alias, record] of Object.entries(models)) {
    const own = aliases.get(record.provider)
    own?.push(alias)
    byAlias.set(alias, modelItem(alias, record, own !== undefined))
  }
  for (const model of contributed) if (!byAlias.has(model.alias)) byAlias.set(model.alias, contributedItem(model))
  const items = Object.entries(providers).map(([id, record]) => providerItem(id, record, aliases.get(id)!, global))
  return {
    providers: items,
    models: [...byAlias.values()],
    byId: new Map(items.map(item => [item.id, item])),
    byAlias,
    logins: new Set(Object.keys(providers).filter(id => providers[id]?.oauth !== undefined))
  }
}

function providerItem(id: string, record: ProviderRecord, models: string[], global: string | undefined): ProviderItem {
  const { type, base_url, has_api_key, default_model } = providerToWire(record)
  const chosen = default_model !== undefined && !models.includes(default_model) ? aliasOf(id, default_model) : default_model
  const shown = default_model === undefined ? models.find(alias => alias === global) : models.includes(chosen!) ? chosen : default_model
  return {
    id,
    type: nonBlank(type) ?? 'compat_chat',
    ...(base_url && { base_url: redactUrls(base_url) }),
    ...(shown && { default_model: shown }),
    has_api_key,
    status: has_api_key ? 'connected' : 'unconfigured',
    models
  }
}

function modelItem(alias: string, stored: ModelRecord, owned: boolean): ModelItem {
  const record = withOverrides(stored)
  return {
    provider: owned ? record.provider : '',
    model: alias,
    display_name: nonBlank(record.display_name) ?? (nonBlank(record.model) || alias),
    max_context_size: owned ? record.max_context_size : 0,
    ...(record.capabilities && { capabilities: record.capabilities }),
    ...(record.support_efforts && { support_efforts: record.support_efforts }),
    ...(record.default_effort && { default_effort: record.default_effort })
  }
}

function contributedItem(model: ContributedModel): ModelItem {
  return {
    provider: model.provider_id,
    model: model.alias,
    display_name: model.display_name,
    max_context_size: model.max_context_size,
    capabilities: [...model.capabilities],
    ...(model.support_efforts && { support_efforts: [...model.support_efforts] }),
    ...(model.default_effort && { default_effort: model.default_effort })
  }
}
