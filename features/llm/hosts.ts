/** The hosts that model requests go to, from the tables of the configuration. Pure. */
import type { OutboundHost } from './outbound.ts'
import type { ModelTable } from './resolve.ts'
import { isLoopback, nonBlank, providerUrl } from './sections.ts'

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
  const proxies = [env.http_proxy || env.HTTP_PROXY, env.https_proxy || env.HTTPS_PROXY]
  return [
    ...[...configured(tables)].map(([url, ids]) => ({ url, why: `models of ${listed([...ids])}`, when: 'a turn, a refresh' })),
    ...brought,
    ...defaults,
    ...[...new Set(proxies)].flatMap(url => (url ? [{ url, why: 'proxy of the environment', when: 'a request to another machine' }] : []))
  ]
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
  for (const [id, record] of Object.entries(providers)) {
    const protocol = nonBlank(record.type) ?? 'compat_chat'
    add(providerUrl(record) ?? adapters.find(adapter => adapter.protocol === protocol)?.default_base_url, id)
  }
  for (const { provider, base_url } of Object.values(models)) {
    if (Object.hasOwn(providers, provider)) add(nonBlank(base_url), provider)
  }
  return found
}

function listed(ids: readonly string[]): string {
  const more = ids.length - SHOWN
  return `${ids.length === 1 ? 'provider' : 'providers'} ${ids.slice(0, SHOWN).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}
