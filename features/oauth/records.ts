/** What a login writes into the configuration file's table, and what a logout takes out of it. */
import { recordOf } from '../llm/index.ts'
import {
  aliasOf,
  type FoundModel,
  MANAGED_PROVIDER,
  putRows,
  rowsOf,
  type Table,
  withdrawProvider,
  without,
  writeAliases
} from '../providers/index.ts'
import type { Endpoint } from './endpoint.ts'

const serviceNames = { svc_search: 'search', svc_fetch: 'fetch' } as const

/**
 * Provider, aliases, services. `found`: undefined when the list could not be had; then aliases stay as they are. `known`: an alias that
 * exists without the file. The default model is kept while it exists, else it becomes the first of the list. Throws 40001 when the table
 * is damaged.
 */
export function enterProvider(
  file: Table,
  endpoint: Endpoint,
  found: readonly FoundModel[] | undefined,
  known: (alias: string) => boolean
): void {
  const { slot, base_url, oauth_host, pinned } = endpoint
  const oauth = { storage: 'file', key: slot, ...(pinned && oauth_host && { oauth_host }) }
  const providers = rowsOf(file, 'providers')
  const kept = without(recordOf(providers.get(MANAGED_PROVIDER)), ['api_key'])
  providers.set(MANAGED_PROVIDER, { ...kept, type: 'svc', ...(base_url && { base_url }), model_source: 'oauth-catalog', oauth })
  putRows(file, 'providers', providers)
  enterServices(file, base_url, oauth)
  if (!found || found.length === 0) return
  writeAliases(file, MANAGED_PROVIDER, found)
  chooseDefault(file, found, known)
}

/** Everything of the managed provider goes, and what pointed at it. Throws 40001 when the table is damaged. */
export function leaveProvider(file: Table): void {
  const slot = slotOf(rowsOf(file, 'providers').get(MANAGED_PROVIDER))
  const { default_model } = file
  withdrawProvider(file, MANAGED_PROVIDER)
  const services = rowsOf(file, 'services')
  for (const name of Object.keys(serviceNames)) if (slot !== undefined && slotOf(services.get(name)) === slot) services.delete(name)
  putRows(file, 'services', services)
  if (file.default_model === default_model) return
  const thinking = rowsOf(file, 'thinking')
  if (thinking.get('enabled') === true) thinking.delete('enabled') // the default anyway
  putRows(file, 'thinking', thinking)
}

/** A search or fetch service that the user set up for himself is not replaced. */
function enterServices(file: Table, base_url: string | undefined, oauth: Table): void {
  if (!base_url) return
  const services = rowsOf(file, 'services')
  for (const [name, path] of Object.entries(serviceNames)) {
    const own = recordOf(services.get(name))
    if (!services.has(name) || (own.oauth !== undefined && own.api_key === undefined)) {
      services.set(name, { ...own, base_url: `${base_url}/${path}`, oauth })
    }
  }
  putRows(file, 'services', services)
}

function chooseDefault(file: Table, found: readonly FoundModel[], known: (alias: string) => boolean): void {
  const models = rowsOf(file, 'models')
  const chosen = file.default_model
  if (typeof chosen === 'string' && chosen.trim() !== '' && (models.has(chosen) || known(chosen))) return
  const first = found
    .map(({ key }) => aliasOf(MANAGED_PROVIDER, key))
    .find(alias => recordOf(models.get(alias)).provider === MANAGED_PROVIDER)
  if (first === undefined) return
  file.default_model = first
  const thinking = rowsOf(file, 'thinking')
  if (!thinking.has('enabled')) putRows(file, 'thinking', thinking.set('enabled', true))
}

/** Key of the credential that a record logs in with. */
function slotOf(record: unknown): unknown {
  return recordOf(recordOf(record).oauth).key
}
