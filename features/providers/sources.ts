/** Where the models of each provider come from, and the question put to it. */
import {
  type LlmAdapter,
  type LlmLogin,
  type ModelListRequest,
  type ModelServer,
  modelListRequest,
  nonBlank,
  type ProviderRecord,
  protocolOf,
  providerKey,
  providerToken,
  providerUrl,
  type TokenOptions,
  type Upstream
} from '../llm/index.ts'
import { type FoundModel, listIn, readModelList } from './discovery.ts'
import { FetchProblem, fetchJson } from './fetch.ts'
import { type RegistryEntry, readRegistry } from './registry.ts'
import type { Probed } from './service.ts'

/** `static`: nobody is asked. `login`: its model list with the token of its login. `list`: with its key. `registry`: the api.json it came from. */
type SourceKind = 'static' | 'login' | 'list' | 'registry'

/** `managed_url`: endpoint of the managed service; a `svc` provider with a key on exactly this URL is listed as if it said `discover`. */
export function sourceOf({ oauth, source, model_source, type, ...record }: ProviderRecord, managed_url: string | undefined): SourceKind {
  if (model_source === 'static') return 'static'
  if (oauth) return 'login'
  if (source?.kind === 'apiJson') return 'registry'
  if (model_source === 'discover') return 'list'
  const managed = managed_url !== undefined && type === 'svc' && record.base_url === managed_url && providerKey(record) !== undefined
  return managed ? 'list' : 'static'
}

/** Who asks, and how. */
export interface SourceParts {
  readonly upstream: Pick<Upstream, 'get'>
  /** Who gives access tokens for a provider. */
  readonly login: (provider_id: string) => LlmLogin | undefined
  /** They know how servers of their protocol are asked. */
  readonly adapters: () => readonly LlmAdapter[]
  /** Sent with every request. */
  readonly user_agent: string
}

/** Asks a server for its models. Rejects with FetchProblem, after an abort with the signal's reason. */
export async function askModelList(
  upstream: Pick<Upstream, 'get'>,
  { url, headers }: ModelListRequest,
  signal: AbortSignal
): Promise<FoundModel[]> {
  return readModelList(await fetchJson(upstream, url, headers, signal))
}

/** Asks a provider for its models, by its key or with a token of its login. Rejects with FetchProblem. */
export async function askProvider(
  id: string,
  record: ProviderRecord,
  by: 'key' | 'login',
  parts: SourceParts,
  signal: AbortSignal
): Promise<FoundModel[]> {
  return readModelList(await answerOf(id, record, by, parts, signal))
}

/** What a provider answers to the question for its models. A token of its login that is refused is renewed once. Rejects with FetchProblem. */
async function answerOf(
  id: string,
  record: ProviderRecord,
  by: 'key' | 'login',
  parts: SourceParts,
  signal: AbortSignal
): Promise<unknown> {
  const base_url = providerUrl(record)
  if (base_url === undefined) throw new FetchProblem('it has no base_url')
  if (!URL.canParse(base_url)) throw new FetchProblem('its base_url is not an http(s) address')
  const ask = (api_key: string | undefined, bearer: boolean) => {
    const { url, headers } = questionTo(record, { base_url, api_key, bearer }, parts)
    return fetchJson(parts.upstream, url, headers, signal)
  }
  if (by === 'key') {
    const api_key = record.auth === 'none' ? undefined : providerKey(record)
    return ask(api_key, api_key === providerToken(record))
  }
  const token = await tokenOf(id, parts.login(id), { signal })
  try {
    return await ask(token, true)
  } catch (error) {
    if (!(error instanceof FetchProblem && error.status === 401)) throw error
    return ask(await tokenOf(id, parts.login(id), { signal, force: true, refused: token }), true)
  }
}

/** The request for the models of a provider. */
function questionTo(record: ProviderRecord, server: ModelServer, { adapters, user_agent }: SourceParts): ModelListRequest {
  const type = protocolOf(record)
  const { url, headers } = (adapters().find(({ protocol }) => protocol === type)?.modelList ?? modelListRequest)(server)
  const own = Object.entries(record.custom_headers ?? {}).map(([name, value]) => [name.toLowerCase(), value])
  return { url, headers: { ...headers, 'user-agent': user_agent, ...Object.fromEntries(own) } }
}

/** See `Providers.probe`. What the list says of its models does not matter here. */
export async function probeProvider(
  id: string,
  record: ProviderRecord | undefined,
  parts: SourceParts,
  signal: AbortSignal
): Promise<Probed> {
  const failed = (problem: string, refused = false, offline = false): Probed => ({ ok: false, problem, refused, offline })
  if (!record) return failed('it is not configured')
  try {
    const answer = await answerOf(id, record, record.oauth ? 'login' : 'key', parts, signal)
    return { ok: true, models: listIn(answer)?.length ?? 0 }
  } catch (error) {
    if (error instanceof FetchProblem) return failed(error.message, error.credential, error.offline)
    throw error
  }
}

async function tokenOf(id: string, login: LlmLogin | undefined, options: TokenOptions & { readonly signal: AbortSignal }): Promise<string> {
  const given = login?.status(id) === 'authenticated' ? login.accessToken(id, options) : undefined
  const token = await given?.catch((error: Error) => {
    options.signal.throwIfAborted()
    throw new FetchProblem(error.message, { cause: error })
  })
  if (token === undefined) throw new FetchProblem('it is not logged in', { credential: true })
  return token
}

/** What a registry lists, and who was let in. */
export interface RegistryAnswer {
  readonly entries: readonly RegistryEntry[]
  /** The key that was let in. */
  readonly api_key: string | undefined
}

/** Reads a registry with the first of the keys that works; undefined asks without one. Rejects with the last FetchProblem. */
export async function askRegistry(
  url: string,
  keys: readonly (string | undefined)[],
  { upstream, user_agent }: SourceParts,
  signal: AbortSignal
): Promise<RegistryAnswer> {
  let last: unknown
  for (const api_key of keys) {
    try {
      return {
        entries: await readRegistry(await fetchJson(upstream, url, { ...bearer(api_key), 'user-agent': user_agent }, signal)),
        api_key
      }
    } catch (error) {
      if (!(error instanceof FetchProblem)) throw error
      last = error
      if (!error.credential) break
    }
  }
  throw last
}

/** Keys to try for a registry that several providers came from: those of its imports, never the key of a provider. */
export function registryKeys(records: readonly ProviderRecord[]): (string | undefined)[] {
  return [...new Set(records.map(record => nonBlank(record.source?.api_key)))]
}

function bearer(key: string | undefined): Record<string, string> {
  return key === undefined ? {} : { authorization: `Bearer ${key}` }
}

/** Registries that a refresh asks again, for the list of outbound hosts. Providers' own base URLs are listed by the llm pack. */
export function registryHosts(providers: Readonly<Record<string, ProviderRecord>>): { url: string; why: string; when: string }[] {
  const urls = new Set(Object.values(providers).flatMap(({ source }) => nonBlank(source?.url) ?? []))
  return [...urls].map(url => ({ url, why: 'a private registry', when: 'its models are refreshed' }))
}
