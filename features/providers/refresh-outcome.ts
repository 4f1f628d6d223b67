/** What a round of questions found, and what becomes of it: changes of the configuration and the refresh report. */
import { isDeepStrictEqual } from 'node:util'
import { yieldToLoop } from '../../kernel/index.ts'
import { nonBlank, type ProviderRecord } from '../llm/index.ts'
import type { RefreshReport } from './contract.ts'
import type { FoundModel } from './discovery.ts'
import { type AliasChange, Draft } from './draft.ts'
import { listedId, type RegistryEntry, registryOf } from './registry.ts'
import type { RegistryAnswer } from './sources.ts'
import type { Table } from './tables.ts'

/** `asked`: the record of the provider when the question was put. */
export type RefreshOutcome =
  | { readonly kind: 'unchanged'; readonly id: string }
  | { readonly kind: 'failed'; readonly id: string; readonly reason: string }
  /** `entry`: what its registry says of it. */
  | {
      readonly kind: 'listed'
      readonly id: string
      readonly asked: ProviderRecord
      readonly found: readonly FoundModel[]
      readonly entry?: RegistryEntry
    }
  /** Its registry no longer lists it. */
  | { readonly kind: 'gone'; readonly id: string; readonly asked: ProviderRecord }
  /** A registry lists a provider that is not here. */
  | { readonly kind: 'new'; readonly id: string; readonly entry: RegistryEntry; readonly url: string; readonly api_key: string | undefined }

/** A provider of the configuration. */
export type Row = readonly [id: string, record: ProviderRecord]
type Providers = Readonly<Record<string, ProviderRecord>>

/** What the answer of a registry means for those who were asked about. `whole`: new ones are taken in and vanished ones go. */
export function registryOutcomes(
  url: string,
  answer: RegistryAnswer,
  asked: readonly Row[],
  whole: boolean,
  all: Providers
): RefreshOutcome[] {
  const entries = new Map(answer.entries.map(entry => [entry.id, entry]))
  const outcomes = asked.map(([id, record]): RefreshOutcome => {
    const entry = entries.get(listedId(id, record))
    if (entry) return { kind: 'listed', id, asked: record, found: entry.models, entry }
    return whole ? { kind: 'gone', id, asked: record } : { kind: 'failed', id, reason: 'the registry no longer lists it' }
  })
  if (!whole) return outcomes
  const here = Object.entries(all).filter(([, record]) => registryOf(record) === url)
  const known = new Set(here.map(([id, record]) => listedId(id, record)))
  const fresh = answer.entries.filter(({ id }) => !known.has(id))
  return [...outcomes, ...fresh.map((entry): RefreshOutcome => ({ kind: 'new', id: entry.id, entry, url, api_key: answer.api_key }))]
}

/** Finds out, in shares of the event loop, which outcomes change nothing in these tables; they become `unchanged`. */
export async function sift(outcomes: readonly RefreshOutcome[], tables: { providers: Table; models: Table }): Promise<RefreshOutcome[]> {
  const trial = new Draft(tables)
  const sifted: RefreshOutcome[] = []
  for (const outcome of outcomes) {
    sifted.push(isNews(outcome, trial) ? outcome : { kind: 'unchanged', id: outcome.id })
    await yieldToLoop()
  }
  return sifted
}

function isNews(outcome: RefreshOutcome, trial: Draft): boolean {
  if (outcome.kind !== 'listed') return true
  const { id, asked, entry, found } = outcome
  const record = trial.record(id)
  return !record || !isAsAsked(record, asked) || isMoved(record, entry) || trial.settle(id, found).changed
}

/** True when an outcome has something to write. */
export function writes({ kind }: RefreshOutcome): boolean {
  return kind === 'listed' || kind === 'gone' || kind === 'new'
}

/** Writes the outcomes into the table of the configuration file; answers the report. */
export function settle(outcomes: readonly RefreshOutcome[], file: Table): RefreshReport {
  const draft = new Draft(file)
  const report: RefreshReport = { changed: [], unchanged: [], failed: [] }
  const tell = (id: string, { changed, added, removed }: AliasChange, name = id) => {
    if (changed) report.changed.push({ provider_id: id, provider_name: name, added, removed })
    else report.unchanged.push(id)
  }
  const fail = (provider: string, reason: string) => report.failed.push({ provider, reason })
  const enter = (outcome: RefreshOutcome & { kind: 'new' }) => {
    const { id, entry } = outcome
    if (draft.providers().has(id)) fail(id, 'the registry lists it, but a provider of this id exists')
    else tell(id, addEntry(draft, outcome), entry.name)
  }
  const rewrite = (outcome: RefreshOutcome & { kind: 'listed' | 'gone' }) => {
    const { id, asked } = outcome
    const record = draft.record(id)
    if (!record) return // removed meanwhile: nothing to tell
    if (!isAsAsked(record, asked)) fail(id, 'it was changed meanwhile')
    else if (outcome.kind === 'gone') tell(id, { changed: true, added: 0, removed: draft.withdraw(id) })
    else {
      const { entry, found } = outcome
      if (entry && isMoved(record, entry)) draft.put(id, { ...record, type: entry.type, base_url: entry.base_url })
      tell(id, draft.settle(id, found), entry?.name)
    }
  }
  for (const outcome of outcomes) {
    if (outcome.kind === 'unchanged') report.unchanged.push(outcome.id)
    else if (outcome.kind === 'failed') fail(outcome.id, outcome.reason)
    else if (outcome.kind === 'new') enter(outcome)
    else rewrite(outcome)
  }
  if (outcomes.some(writes)) draft.close(file)
  return report
}

/** Adds a provider that a registry lists, with a record of where it came from. */
function addEntry(draft: Draft, { id, entry, url, api_key }: RefreshOutcome & { kind: 'new' }): AliasChange {
  const key = nonBlank(api_key)
  const source = { kind: 'apiJson', url, ...(key && { api_key: key }) }
  draft.put(id, { type: entry.type, base_url: entry.base_url, ...(key && { api_key: key }), source })
  return draft.settle(id, entry.models)
}

/** The registry says that the provider is somewhere else. */
function isMoved(record: Table, entry: RegistryEntry | undefined): boolean {
  return entry !== undefined && (record.type !== entry.type || record.base_url !== entry.base_url)
}

/** Whoever was asked, and how: with another of these the answer would be another provider's. */
const question = ['type', 'base_url', 'api_key', 'auth', 'oauth', 'env', 'custom_headers', 'model_source', 'source'] as const

function isAsAsked(record: Table, asked: ProviderRecord): boolean {
  return question.every(key => isDeepStrictEqual(record[key], asked[key]))
}
