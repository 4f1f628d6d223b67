/** Puts a login into the user's configuration and takes it out: one save each. */
import type { Logger } from '../../kernel/index.ts'
import type { Config } from '../config/index.ts'
import { type ContributedModel, modelsSection, type ProviderRecord, providersSection } from '../llm/index.ts'
import { FetchProblem, type FoundModel, MANAGED_PROVIDER, readModelList } from '../providers/index.ts'
import type { AccountService } from './account-service.ts'
import type { Place } from './place.ts'
import { AccountProblem } from './problem.ts'
import { enterProvider, leaveProvider } from './records.ts'

export interface EnrolmentParts {
  readonly config: Pick<Config, 'get' | 'update'>
  readonly service: Pick<AccountService, 'read'>
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
  has({ slot, base_url }: Place): boolean {
    const record = this.record()
    if (record?.oauth?.key !== slot || record.base_url !== base_url) return false
    return Object.values(this.#parts.config.get(modelsSection)).some(({ provider }) => provider === MANAGED_PROVIDER)
  }

  /** Without an answer to the question for models the provider is written all the same. Throws 40001 when it cannot be saved. */
  async enter(place: Place, access_token: string): Promise<void> {
    const { config, contributed } = this.#parts
    const models = await this.#list(place, access_token)
    const known = (alias: string) => contributed().some(model => model.alias === alias)
    await config.update(file => enterProvider(file, place, models, known))
  }

  /** Throws 40001 when it cannot be saved. */
  async leave(): Promise<void> {
    await this.#parts.config.update(leaveProvider)
  }

  async #list({ base_url }: Place, access_token: string): Promise<FoundModel[] | undefined> {
    const { service, log, signal } = this.#parts
    if (base_url === undefined) return undefined
    try {
      return await readModelList(await service.read(base_url, '/models', access_token, signal))
    } catch (error) {
      if (!(error instanceof AccountProblem || error instanceof FetchProblem || signal.aborted)) throw error
      log.warn({ reason: (error as Error).message }, 'the models of the managed provider could not be listed')
      return undefined
    }
  }
}
