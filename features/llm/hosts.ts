/** The hosts that model requests go to, from the tables of the configuration. */
import { isLoopback } from './addresses.ts'
import { nonBlank, providerKey, providerKeyFile } from './env-table.ts'
import type { OutboundHost } from './outbound.ts'
import { proxyUrls } from './proxies.ts'
import type { ModelRecord, ProviderRecord } from './records.ts'
import { addressOf, type ModelTable, protocolOf } from './resolve.ts'

type Tables = Pick<ModelTable, 'providers' | 'models' | 'contributed' | 'adapters'>

/** Ids shown per host; a file may have a thousand. */
const SHOWN = 3

/** Where models are asked: configured URLs, the defaults of adapters, the models that packs bring along, and proxies. */
export function modelHosts(tables: Tables, env: NodeJS.ProcessEnv): OutboundHost[] {
  const { contributed, adapters } = tables
  const brought = contributed.flatMap(({ alias, base_url }) =>
    base_url ? [{ url: base_url, why: `model ${alias} of a pack`, when: 'a turn' }] : []
  )
  const defaults = adapters.flatMap(({ protocol, default_base_url: url }) =>
    url ? [{ url, why: `default of ${protocol}`, when: 'a provider of this type has no base_url' }] : []
  )
  return [
    ...[...configured(tables)].map(([url, ids]) => ({ url, why: `models of ${listed([...ids])}`, when: 'a turn, a refresh' })),
    ...brought,
    ...defaults,
    ...proxyUrls(env).map(url => ({ url, why: 'proxy of the environment', when: 'a request to another machine' }))
  ]
}

/** Who gives access tokens for the key files of providers. The files are read; of one that cannot be used the host is not known. */
export async function tokenHosts({ providers, models, adapters }: Tables): Promise<OutboundHost[]> {
  const found = new Map<string | undefined, Set<string>>()
  const ask = async (id: string, protocol: string | undefined) => {
    const key_file = providerKey(providers[id]!) === undefined ? providerKeyFile(providers[id]!, protocol) : undefined
    const adapter = adapters.find(candidate => candidate.protocol === protocol)
    if (key_file === undefined || !adapter?.tokenUrl) return
    const url = await adapter.tokenUrl(key_file)
    found.set(url, (found.get(url) ?? new Set()).add(id))
  }
  for (const [id, { type }] of Object.entries(providers)) await ask(id, nonBlank(type))
  for (const { provider, protocol } of Object.values(models)) {
    if (Object.hasOwn(providers, provider) && nonBlank(protocol)) await ask(provider, nonBlank(protocol))
  }
  return [...found].map(([url, ids]) => {
    const unknown = url === undefined ? ' (the key file cannot be used)' : ''
    return { ...(url && { url }), why: `access tokens of ${listed([...ids])}${unknown}`, when: 'a turn' }
  })
}

/** True for the server of a configured provider on this machine. */
export function isLocalProvider(url: URL, tables: Tables): boolean {
  return isLoopback(url.href) && configured(tables).has(url.origin)
}

/** Origins of configured providers and of models that have a URL of their own, with the ids of the providers. */
function configured({ providers, models, adapters }: Tables): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>()
  const add = (url: string | undefined, id: string) => {
    if (url === undefined || !URL.canParse(url)) return
    const { origin } = new URL(url)
    found.set(origin, (found.get(origin) ?? new Set()).add(id))
  }
  const called = (record: ProviderRecord, model: Partial<ModelRecord> = {}) => {
    const protocol = protocolOf(record, model)
    return addressOf(
      adapters.find(candidate => candidate.protocol === protocol),
      record,
      model
    )
  }
  for (const [id, record] of Object.entries(providers)) add(called(record), id)
  for (const model of Object.values(models)) {
    const own = nonBlank(model.base_url) ?? nonBlank(model.protocol)
    if (own && Object.hasOwn(providers, model.provider)) add(called(providers[model.provider]!, model), model.provider)
  }
  return found
}

function listed(ids: readonly string[]): string {
  const more = ids.length - SHOWN
  return `${ids.length === 1 ? 'provider' : 'providers'} ${ids.slice(0, SHOWN).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}
