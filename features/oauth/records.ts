/** What a login writes into the configuration file's table, and what a logout takes out of it. */
import { MANAGED_PROVIDER } from '../providers/index.ts'
import { isTable } from './account-service.ts'
import { type ListedModel, listedFields } from './catalog.ts'
import type { Place } from './place.ts'

type Table = Record<string, unknown>

const PREFIX = 'svc-code/'
const serviceNames = { svc_search: 'search', svc_fetch: 'fetch' } as const

/**
 * Provider, aliases, services. `models`: undefined when the list could not be had; then aliases stay as they are. `known`: an alias that
 * exists without the file. The default model is kept while it exists, else it becomes the first of the list.
 */
export function enterProvider(
  file: Table,
  place: Place,
  models: readonly ListedModel[] | undefined,
  known: (alias: string) => boolean
): void {
  const { slot, base_url, oauth_host, pinned } = place
  const oauth = { storage: 'file', key: slot, ...(pinned && oauth_host && { oauth_host }) }
  const providers = rows(file, 'providers')
  const { api_key: _, ...kept } = table(providers[MANAGED_PROVIDER])
  put(providers, MANAGED_PROVIDER, { ...kept, type: 'svc', ...(base_url && { base_url }), model_source: 'oauth-catalog', oauth })
  enterServices(file, base_url, oauth)
  if (!models || models.length === 0) return
  enterModels(file, models)
  const aliases = rows(file, 'models')
  const chosen = file.default_model
  if (typeof chosen === 'string' && chosen.trim() !== '' && (Object.hasOwn(aliases, chosen) || known(chosen))) return
  const first = models.map(({ id }) => PREFIX + id).find(alias => table(aliases[alias]).provider === MANAGED_PROVIDER)
  if (first === undefined) return
  file.default_model = first
  const thinking = rows(file, 'thinking')
  thinking.enabled ??= true
}

/** Everything of the managed provider goes, and what pointed at it. A file without it stays as it is. */
export function leaveProvider(file: Table): void {
  const models = rowsIfAny(file, 'models')
  const gone = new Set(Object.keys(models).filter(alias => table(models[alias]).provider === MANAGED_PROVIDER))
  for (const alias of gone) delete models[alias]
  const providers = rowsIfAny(file, 'providers')
  const slot = table(table(providers[MANAGED_PROVIDER]).oauth).key
  delete providers[MANAGED_PROVIDER]
  const services = rowsIfAny(file, 'services')
  for (const name of Object.keys(serviceNames)) {
    const key = table(table(services[name]).oauth).key
    if (slot !== undefined && key === slot) delete services[name]
  }
  if (file.default_provider === MANAGED_PROVIDER) delete file.default_provider
  if (typeof file.default_model === 'string' && gone.has(file.default_model)) {
    delete file.default_model
    const thinking = rowsIfAny(file, 'thinking')
    if (thinking.enabled === true) delete thinking.enabled // the default anyway
    dropIfEmpty(file, 'thinking')
  }
  leavePool(file, gone)
  for (const name of ['models', 'providers', 'services']) dropIfEmpty(file, name)
}

/** A search or fetch service that the user set up for himself is not replaced. */
function enterServices(file: Table, base_url: string | undefined, oauth: Table): void {
  if (!base_url) return
  const services = rows(file, 'services')
  for (const [name, path] of Object.entries(serviceNames)) {
    const own = table(services[name])
    if (services[name] === undefined || (own.oauth !== undefined && own.api_key === undefined)) {
      put(services, name, { ...own, base_url: `${base_url}/${path}`, oauth })
    }
  }
}

/** Aliases of the list come or are brought up to date, those that it no longer has go; aliases of other providers are left alone. */
function enterModels(file: Table, models: readonly ListedModel[]): void {
  const aliases = rows(file, 'models')
  const listed = new Set(models.map(({ id }) => PREFIX + id))
  const gone = new Set<string>()
  for (const [alias, record] of Object.entries(aliases)) {
    if (table(record).provider === MANAGED_PROVIDER && alias.startsWith(PREFIX) && !listed.has(alias)) gone.add(alias)
  }
  for (const alias of gone) delete aliases[alias]
  for (const { id, fields } of models) {
    const alias = PREFIX + id
    const before = Object.hasOwn(aliases, alias) ? table(aliases[alias]) : undefined
    if (before && before.provider !== MANAGED_PROVIDER) continue
    const owned = new Set<string>(['provider', 'model', ...listedFields])
    const kept = Object.entries(before ?? {}).filter(([key]) => !owned.has(key))
    put(aliases, alias, { provider: MANAGED_PROVIDER, model: id, ...fields, ...Object.fromEntries(kept) })
  }
  leavePool(file, gone)
}

/** The secondary-model pool forgets aliases that are gone; without its default the section goes. */
function leavePool(file: Table, gone: ReadonlySet<string>): void {
  const pool = file.secondary_model
  if (!isTable(pool) || gone.size === 0) return
  if ([pool.default_model, pool.model].some(alias => typeof alias === 'string' && gone.has(alias))) {
    delete file.secondary_model
    return
  }
  const models = rowsIfAny(pool as Table, 'models')
  for (const alias of gone) delete models[alias]
}

/** The table of a name, made when it is missing. */
function rows(file: Table, name: string): Table {
  if (!isTable(file[name])) file[name] = {}
  return file[name] as Table
}

function rowsIfAny(file: Table, name: string): Table {
  const value = file[name]
  return isTable(value) ? (value as Table) : {}
}

function table(value: unknown): Table {
  return isTable(value) ? (value as Table) : {}
}

function dropIfEmpty(file: Table, name: string): void {
  const value = file[name]
  if (isTable(value) && Object.keys(value).length === 0) delete file[name]
}

/** `__proto__` is a name like any other. */
function put(rows: Table, key: string, value: Table): void {
  Object.defineProperty(rows, key, { value, enumerable: true, configurable: true, writable: true })
}
