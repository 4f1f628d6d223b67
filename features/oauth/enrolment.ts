/** Puts a login into the user's configuration and takes it out: one save each. */
import type { Logger } from '../../kernel/index.ts'
import type { Config } from '../config/index.ts'
import {
  type ContributedModel,
  modelListRequest,
  modelsSection,
  type ProviderRecord,
  providersSection,
  type Upstream
} from '../llm/index.ts'
import { askModelList, FetchProblem, type FoundModel, MANAGED_PROVIDER, withdrawProvider } from '../providers/index.ts'
import type { Account, Endpoint } from './endpoint.ts'
import { enterProvider, leaveProvider } from './records.ts'
import type { TokenStore } from './token-store.ts'

export interface EnrolmentParts {
  readonly config: Pick<Config, 'get' | 'update'>
  readonly upstream: Pick<Upstream, 'get'>
  /** User agent and device headers. */
  readonly headers: () => Promise<Readonly<Record<string, string>>>
  /** Models that exist without the configuration. */
  readonly contributed: () => readonly ContributedModel[]
  readonly log: Pick<Logger, 'warn'>
  /** Ends the question for models. */
  readonly signal: AbortSignal
}

/** The managed provider in the configuration. */
export class Enrolment {
  readonly #parts: EnrolmentParts

  constructor(parts: EnrolmentParts) {
    this.#parts = parts
  }

  /** The managed provider as it is configured. */
  record(): ProviderRecord | undefined {
    const providers = this.#parts.config.get(providersSection)
    return Object.hasOwn(providers, MANAGED_PROVIDER) ? providers[MANAGED_PROVIDER] : undefined
  }

  /** True when the configuration has this login and at least one of its models. */
  has({ slot, base_url }: Endpoint): boolean {
    const record = this.record()
    if (record?.oauth?.key !== slot || record.base_url !== base_url) return false
    return Object.values(this.#parts.config.get(modelsSection)).some(({ provider }) => provider === MANAGED_PROVIDER)
  }

  /** Without an answer to the question for models the provider is written all the same. Throws 40001 when it cannot be saved. */
  async enter(endpoint: Endpoint, access_token: string): Promise<void> {
    const { config, contributed } = this.#parts
    const models = await this.#list(endpoint, access_token)
    const known = (alias: string) => contributed().some(model => model.alias === alias)
    await config.update(file => enterProvider(file, endpoint, models, known))
  }

  /** Throws 40001 when it cannot be saved. */
  async leave(): Promise<void> {
    await this.#parts.config.update(leaveProvider)
  }

  async #list({ base_url }: Endpoint, access_token: string): Promise<FoundModel[] | undefined> {
    const { upstream, headers, log, signal } = this.#parts
    if (base_url === undefined) return undefined
    try {
      const { url, headers: own } = modelListRequest({ base_url, api_key: access_token, bearer: true })
      return await askModelList(upstream, { url, headers: { ...(await headers()), ...own } }, signal)
    } catch (error) {
      if (!(error instanceof FetchProblem || signal.aborted)) throw error
      log.warn({ reason: (error as Error).message }, 'the models of the managed provider could not be listed')
      return undefined
    }
  }
}

export interface OtherLogoutParts {
  readonly config: Pick<Config, 'get' | 'reload' | 'update'>
  readonly tokens: Pick<TokenStore, 'discard'>
  /** The account that a provider logs in with. */
  readonly account: (provider_id: string) => Account | undefined
  /** Credentials of the managed login: they are its own affair. */
  readonly managed: () => readonly string[]
}

/**
 * Discards the credential, unless somebody else uses it as well, and removes the provider with its aliases. Providers without a login are
 * left alone. Throws 40001 when the configuration cannot be saved.
 */
export async function logoutOther(provider_id: string, { config, tokens, account, managed }: OtherLogoutParts): Promise<void> {
  await config.reload()
  const providers = config.get(providersSection)
  if (!Object.hasOwn(providers, provider_id) || providers[provider_id]?.oauth === undefined) return
  const slot = account(provider_id)?.slot
  const others = Object.entries(providers).filter(([id]) => id !== provider_id)
  const models = Object.values(config.get(modelsSection)).filter(({ provider }) => provider !== provider_id)
  const used = [...managed(), ...others.map(([, { oauth }]) => oauth?.key), ...models.map(({ oauth }) => oauth?.key)]
  if (slot !== undefined && !used.includes(slot)) await tokens.discard(slot)
  await config.update(file => withdrawProvider(file, provider_id))
}
