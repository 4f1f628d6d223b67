/** The refresh engine: one round at a time; all questions first, then one save. */
import { aFewAtOnce, headOf, inOrder, type Logger } from '../../kernel/index.ts'
import type { Config } from '../config/index.ts'
import { modelsSection, providersSection } from '../llm/index.ts'
import { missing } from './changes.ts'
import type { RefreshReport } from './contract.ts'
import { type FoundModel, isSized } from './discovery.ts'
import { FetchProblem } from './fetch.ts'
import { type RefreshOutcome, type Row, registryOutcomes, settle, sift, writes } from './refresh-outcome.ts'
import { askProvider, askRegistry, registryKeys, type SourceParts, sourceOf } from './sources.ts'
import { save } from './tables.ts'

/** `all` providers, those with a login, or one. */
type RefreshScope = 'all' | 'logins' | { readonly id: string }

/** What a round needs from around it. */
interface RefreshParts extends SourceParts {
  readonly config: Pick<Config, 'get' | 'reload' | 'update'>
  readonly log: Pick<Logger, 'error' | 'warn'>
  /** Providers that the file does not hold. */
  readonly fromEnvironment: (provider_id: string) => boolean
  /** Endpoint of the managed service, if one is set. */
  readonly managed_url: string | undefined
  /** Ends every round. */
  readonly signal: AbortSignal
  /** Hears of every round that changed aliases. */
  readonly onChange: (report: RefreshReport) => void
}

/** Questions in flight at once. */
const PARALLEL = 4

/** All refreshes of the process. */
export class Refresher {
  readonly #parts: RefreshParts
  readonly #waiting = new Map<string, Promise<RefreshReport>>()
  readonly #inOrder = inOrder()

  constructor(parts: RefreshParts) {
    this.#parts = parts
  }

  /** Rounds run one after the other; a round that has not begun is shared by all who ask for the same. Throws 40412. */
  run(scope: RefreshScope): Promise<RefreshReport> {
    const key = typeof scope === 'string' ? scope : `one ${scope.id}`
    let round = this.#waiting.get(key)
    if (!round) {
      round = this.#inOrder(() => {
        this.#waiting.delete(key)
        return this.#round(scope)
      })
      this.#waiting.set(key, round)
    }
    return round
  }

  async #round(scope: RefreshScope): Promise<RefreshReport> {
    const { config, onChange } = this.#parts
    await config.reload()
    const found = await this.#ask(this.#chosen(scope), typeof scope === 'string')
    const outcomes = await sift(found, { providers: config.get(providersSection), models: config.get(modelsSection) })
    const report = outcomes.some(writes) ? await save(config, file => settle(outcomes, file)) : settle(outcomes, {})
    if (report.changed.length > 0) onChange(report)
    return report
  }

  #chosen(scope: RefreshScope): Row[] {
    const providers = this.#parts.config.get(providersSection)
    if (typeof scope === 'string') return Object.entries(providers).filter(([, record]) => scope === 'all' || record.oauth !== undefined)
    if (!Object.hasOwn(providers, scope.id)) throw missing(scope.id)
    return [[scope.id, providers[scope.id]!]]
  }

  /** Outcomes in the order of the providers; a registry stands where the first of its providers does. */
  async #ask(rows: readonly Row[], whole: boolean): Promise<RefreshOutcome[]> {
    const { managed_url, fromEnvironment, signal } = this.#parts
    const questions: (() => Promise<readonly RefreshOutcome[]>)[] = []
    const registries = new Map<string, Row[]>()
    for (const row of rows) {
      const [id, record] = row
      const kind = fromEnvironment(id) ? 'static' : sourceOf(record, managed_url)
      if (kind === 'static') questions.push(async () => [{ kind: 'unchanged', id }])
      else if (kind !== 'registry') {
        questions.push(() =>
          this.#answer([id], async () => {
            const found = await askProvider(id, record, kind === 'login' ? 'login' : 'key', this.#parts, signal)
            this.#nameLeftOut(id, found)
            return [{ kind: 'listed', id, asked: record, found }]
          })
        )
      } else {
        const { url } = record.source!
        const group = registries.get(url)
        if (group) group.push(row)
        else {
          const first = [row]
          registries.set(url, first)
          questions.push(() => this.#askRegistry(url, first, whole))
        }
      }
    }
    return (await aFewAtOnce(questions, PARALLEL, ask => ask())).flat()
  }

  #askRegistry(url: string, rows: readonly Row[], whole: boolean): Promise<readonly RefreshOutcome[]> {
    const { config, signal } = this.#parts
    const keys = registryKeys(rows.map(([, record]) => record))
    return this.#answer(
      rows.map(([id]) => id),
      async () => registryOutcomes(url, await askRegistry(url, keys, this.#parts, signal), rows, whole, config.get(providersSection))
    )
  }

  #nameLeftOut(provider_id: string, found: readonly FoundModel[]): void {
    const models = found.filter(one => !isSized(one)).map(({ model }) => headOf(model, 100))
    if (models.length === 0) return
    const told = { provider_id, count: models.length, models: models.slice(0, 20) }
    this.#parts.log.warn(told, 'models without a context_length were left out')
  }

  /** A question that fails is an outcome of the providers it was asked for; the others go on. */
  async #answer(ids: readonly string[], ask: () => Promise<readonly RefreshOutcome[]>): Promise<readonly RefreshOutcome[]> {
    try {
      return await ask()
    } catch (error) {
      const { log, signal } = this.#parts
      signal.throwIfAborted()
      const known = error instanceof FetchProblem
      if (!known) log.error({ err: error, providers: ids }, 'a refresh failed')
      return ids.map(id => ({ kind: 'failed', id, reason: known ? error.message : 'the refresh failed' }))
    }
  }
}
