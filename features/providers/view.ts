/** Providers and models as the API shows them: computed once for each state of the configuration. */
import { type Config, redactUrls } from '../config/index.ts'
import {
  type ContributedModel,
  defaultModelSection,
  type LoginStatus,
  type ModelRecord,
  modelsSection,
  nonBlank,
  type ProviderRecord,
  protocolOf,
  providersSection,
  providerToWire,
  withOverrides
} from '../llm/index.ts'
import type { ModelItem, ProviderItem } from './contract.ts'
import { aliasOf } from './record-builder.ts'

/** Where the lists come from. */
export interface ViewSource {
  readonly config: Pick<Config, 'get'>
  /** Models that packs bring along; the same array while nothing changed. */
  readonly contributed: () => readonly ContributedModel[]
  readonly loginStatus: (provider_id: string) => LoginStatus
}

/** What the lists are made of, compared by identity. */
interface From {
  readonly providers: Readonly<Record<string, ProviderRecord>>
  readonly models: Readonly<Record<string, ModelRecord>>
  /** Default model. */
  readonly global: string | undefined
  readonly contributed: readonly ContributedModel[]
}

interface Shown {
  readonly from: From
  readonly providers: readonly ProviderItem[]
  readonly models: readonly ModelItem[]
  readonly byId: ReadonlyMap<string, ProviderItem>
  readonly byAlias: ReadonlyMap<string, ModelItem>
  /** Providers whose status follows a login. */
  readonly logins: ReadonlySet<string>
}

/** The lists of the API; the same arrays while nothing changed. */
export class View {
  readonly #source: ViewSource
  #shown: Shown | undefined

  constructor(source: ViewSource) {
    this.#source = source
  }

  providers(): readonly ProviderItem[] {
    const { from, providers, logins } = this.#now()
    return logins.size === 0 ? providers : providers.map(item => this.#withLogin(item, from))
  }

  /** Made alone right after a change: the lists can wait until somebody asks for them. */
  provider(id: string): ProviderItem | undefined {
    const from = this.#from()
    const { providers, models, global } = from
    if (!Object.hasOwn(providers, id)) return undefined
    const aliases = () => Object.keys(models).filter(alias => models[alias]!.provider === id)
    const item = this.#known(from)?.byId.get(id) ?? providerItem(id, providers[id]!, aliases(), global)
    return this.#withLogin(item, from)
  }

  models(): readonly ModelItem[] {
    return this.#now().models
  }

  /** As `provider`. */
  model(alias: string): ModelItem | undefined {
    const from = this.#from()
    const known = this.#known(from)
    if (known) return known.byAlias.get(alias)
    const { providers, models, contributed } = from
    const record = Object.hasOwn(models, alias) ? models[alias] : undefined
    if (record) return modelItem(alias, record, Object.hasOwn(providers, record.provider))
    const found = contributed.find(model => model.alias === alias)
    return found && contributedItem(found)
  }

  #withLogin(item: ProviderItem, { providers }: From): ProviderItem {
    if (providers[item.id]?.oauth === undefined || this.#source.loginStatus(item.id) !== 'authenticated') return item
    return { ...item, has_api_key: true, status: 'connected' }
  }

  #from(): From {
    const { config, contributed } = this.#source
    return {
      providers: config.get(providersSection),
      models: config.get(modelsSection),
      global: config.get(defaultModelSection),
      contributed: contributed()
    }
  }

  /** The lists, if they are made of this. */
  #known(from: From): Shown | undefined {
    const made = this.#shown?.from
    const same = made && (['providers', 'models', 'global', 'contributed'] as const).every(part => made[part] === from[part])
    return same ? this.#shown : undefined
  }

  #now(): Shown {
    const from = this.#from()
    this.#shown = this.#known(from) ?? show(from)
    return this.#shown
  }
}

function show(from: From): Shown {
  const { providers, models, global, contributed } = from
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
    from,
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
    type: protocolOf({ type }),
    ...(base_url && { base_url: redactUrls(base_url) }),
    ...(shown && { default_model: shown }),
    has_api_key,
    status: has_api_key || record.auth === 'none' ? 'connected' : 'unconfigured',
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
    capabilities: record.capabilities,
    support_efforts: record.support_efforts,
    default_effort: record.default_effort || undefined
  }
}

function contributedItem(model: ContributedModel): ModelItem {
  return {
    provider: model.provider_id,
    model: model.alias,
    display_name: model.display_name,
    max_context_size: model.max_context_size,
    capabilities: [...model.capabilities],
    support_efforts: model.support_efforts && [...model.support_efforts],
    default_effort: model.default_effort || undefined
  }
}
