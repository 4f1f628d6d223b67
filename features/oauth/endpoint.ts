/** The endpoint of an account: region, hosts, and the slot its credential is kept in. Pure. */
import { createHash } from 'node:crypto'
import { isHttpUrl, nonBlank, type OauthRef, type ProviderRecord } from '../llm/index.ts'
import { MANAGED_PROVIDER } from '../providers/index.ts'
import { defaultRegion, type Options, type Region, regions } from './contract.ts'

/** One login: its credential, and who renews and takes its tokens. */
export interface Account {
  /** Name of the credential file. */
  readonly slot: string
  readonly oauth_host?: string
  readonly base_url?: string
}

/** Account of a new login, with what its provider record must remember. */
export interface Endpoint extends Account {
  readonly region: Region
  /** The environment names the hosts; the record then keeps the authorization host. */
  readonly pinned: boolean
}

/** What decides where an account lives, beside its record. */
export interface Surroundings {
  readonly options: Options
  readonly env: NodeJS.ProcessEnv
  /** Region named by the marker file. */
  readonly marker?: Region | undefined
}

const slots: Readonly<Record<Region, string>> = { 'mainland-cn': 'svc-code', global: 'svc-code-global' }
const usable = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/

/** Client id: environment, then options. */
export function clientId({ options, env }: Surroundings): string | undefined {
  return nonBlank(env.SVC_CODE_OAUTH_CLIENT_ID) ?? nonBlank(options.client_id)
}

/** Region, in this order: host of the environment or configuration, key of the stored login, marker file, default (contract 1). */
export function regionOf(record: ProviderRecord | undefined, around: Surroundings): Region {
  const { options, env, marker } = around
  const byEnvironment = nonBlank(env.SVC_CODE_OAUTH_HOST)
  if (byEnvironment) return regionOfHost(byEnvironment, options) ?? defaultRegion
  const byRecord = nonBlank(record?.oauth?.oauth_host)
  const hosted = byRecord && regionOfHost(byRecord, options)
  return hosted || regionOfSlot(record?.oauth?.key) || marker || defaultRegion
}

/** Where a login that begins now goes. `asked` counts unless the environment names a host. */
export function endpointOf(asked: Region | undefined, record: ProviderRecord | undefined, around: Surroundings): Endpoint {
  const { options } = around
  const pins = pinned(around)
  const region = (pins ? undefined : asked) ?? regionOf(record, around)
  const { oauth_host, base_url } = { ...hostsOf(region, options), ...pins }
  const hosts = where(oauth_host, base_url)
  return { ...hosts, slot: pins ? pinnedSlot(hosts) : slots[region], region, pinned: pins !== undefined }
}

/** The account behind a provider; undefined when it is not one that logs in. */
export function accountOf(provider_id: string, record: ProviderRecord | undefined, around: Surroundings): Account | undefined {
  const managed = provider_id === MANAGED_PROVIDER
  const oauth = record?.oauth
  if (managed && (pinned(around) || !oauth)) return endpointOf(undefined, record, around)
  return oauth && accountOfReference(oauth, record?.base_url, around)
}

/** The account behind an `oauth` reference; undefined when its key cannot be the name of a file. `keyring` means `file`. */
export function accountOfReference({ key, oauth_host }: OauthRef, base_url: string | undefined, around: Surroundings): Account | undefined {
  if (!usable.test(key)) return undefined
  const region = regionOfSlot(key)
  // A login of another key was not issued by the managed hosts: they must not see its tokens.
  const hosts = region ? hostsOf(region, around.options) : {}
  return { ...hosts, ...where(httpUrl(oauth_host), httpUrl(base_url)), slot: key }
}

/** Every slot that the managed login may have filled: a logout empties them all. */
export function ownSlots(record: ProviderRecord | undefined, around: Surroundings): string[] {
  const current = accountOf(MANAGED_PROVIDER, record, around)
  const stored = record?.oauth?.key
  const found = [...Object.values(slots), endpointOf(undefined, record, around).slot, current?.slot, stored]
  return [...new Set(found.filter((slot): slot is string => slot !== undefined && usable.test(slot)))]
}

/** What is not set, in words for whoever can set it. */
export function missingSettings({ oauth_host, base_url }: Account, around: Surroundings): string[] {
  return [
    ...(oauth_host ? [] : ['SVC_CODE_OAUTH_HOST or packs.config.oauth.oauth_host (http or https)']),
    ...(base_url ? [] : ['SVC_CODE_API_BASE_URL or packs.config.oauth.api_base_url (http or https)']),
    ...(clientId(around) ? [] : ['SVC_CODE_OAUTH_CLIENT_ID or packs.config.oauth.client_id'])
  ]
}

type Where = Omit<Account, 'slot'>

function hostsOf(region: Region, options: Options): Where {
  const own = options.regions?.[region]
  return where(httpUrl(own?.oauth_host) ?? httpUrl(options.oauth_host), httpUrl(own?.api_base_url) ?? httpUrl(options.api_base_url))
}

/** Hosts that the environment names. One that is no URL stands as undefined: nothing else is used in its place. */
function pinned({ env }: Surroundings): { oauth_host?: string | undefined; base_url?: string | undefined } | undefined {
  const oauth_host = nonBlank(env.SVC_CODE_OAUTH_HOST)
  const base_url = nonBlank(env.SVC_CODE_API_BASE_URL)
  if (!oauth_host && !base_url) return undefined
  return { ...(oauth_host && { oauth_host: httpUrl(oauth_host) }), ...(base_url && { base_url: httpUrl(base_url) }) }
}

/** A login at hosts of the environment is kept apart from all others. */
function pinnedSlot({ oauth_host, base_url }: Where): string {
  const hash = createHash('sha256')
    .update(`${oauth_host ?? ''}\n${base_url ?? ''}`)
    .digest('hex')
  return `svc-code-env-${hash.slice(0, 16)}`
}

function regionOfSlot(slot: string | undefined): Region | undefined {
  return regions.find(region => slots[region] === slot)
}

function regionOfHost(host: string, options: Options): Region | undefined {
  const origin = originOf(host)
  return regions.find(region => origin !== undefined && originOf(options.regions?.[region]?.oauth_host) === origin)
}

function where(oauth_host: string | undefined, base_url: string | undefined): Where {
  return { ...(oauth_host && { oauth_host }), ...(base_url && { base_url }) }
}

function originOf(text: string | undefined): string | undefined {
  const url = httpUrl(text)
  return url && new URL(url).origin
}

/** The URL without slashes at its end; undefined when it is none of http(s). */
function httpUrl(text: string | undefined): string | undefined {
  const url = nonBlank(text)
  return isHttpUrl(url) ? url.replace(/\/+$/, '') : undefined
}

/** Who renews the logins that single providers and models refer to. */
export function renewalHosts(accounts: readonly (Account | undefined)[]): { url: string; why: string; when: string }[] {
  const hosts = new Set(accounts.flatMap(account => account?.oauth_host ?? []))
  return [...hosts].map(url => ({ url, why: 'logins of providers and models', when: 'a turn, when a login is renewed' }))
}

/** Whom the login may call, for the list of outbound hosts. */
export function accountHosts(account: Account | undefined): { url: string; why: string; when: string }[] {
  const { oauth_host, base_url } = account ?? {}
  return [
    ...(oauth_host ? [{ url: oauth_host, why: 'the managed login', when: 'a login starts, is polled or is renewed' }] : []),
    ...(base_url ? [{ url: base_url, why: 'the account service', when: 'usage, user information or models are asked for' }] : [])
  ]
}
