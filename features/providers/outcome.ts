/** What a round of questions found, written into the configuration file's table; the answer is the refresh report. */
import { nonBlank } from '../llm/index.ts'
import { type AliasChange, withdrawProvider, writeAliases } from './aliases.ts'
import type { RefreshReport } from './contract.ts'
import type { FoundModel } from './discovery.ts'
import type { RegistryEntry } from './registry.ts'
import type { RegistryAnswer } from './sources.ts'
import { isTable, putRows, rowsOf, type Table } from './tables.ts'

export type Outcome =
  | { readonly kind: 'static'; readonly id: string }
  | { readonly kind: 'failed'; readonly id: string; readonly reason: string }
  | { readonly kind: 'list'; readonly id: string; readonly found: readonly FoundModel[] }
  /** `ids`: the providers that came from it. `whole`: new ones are taken in and vanished ones go. */
  | {
      readonly kind: 'registry'
      readonly url: string
      readonly ids: readonly string[]
      readonly answer: RegistryAnswer
      readonly whole: boolean
    }

/** Report of outcomes that change nothing, or, with the file's table, of what they changed there. */
export function settle(outcomes: readonly Outcome[], file: Table): RefreshReport {
  const report: RefreshReport = { changed: [], unchanged: [], failed: [] }
  const tell = (id: string, { changed, added, removed }: AliasChange, name = id) => {
    if (changed) report.changed.push({ provider_id: id, provider_name: name, added, removed })
    else report.unchanged.push(id)
  }
  for (const outcome of outcomes) {
    if (outcome.kind === 'static') report.unchanged.push(outcome.id)
    else if (outcome.kind === 'failed') report.failed.push({ provider: outcome.id, reason: outcome.reason })
    else if (outcome.kind === 'list') {
      if (rowsOf(file, 'providers').has(outcome.id)) tell(outcome.id, writeAliases(file, outcome.id, outcome.found))
    } else settleRegistry(outcome, file, report, tell)
  }
  return report
}

function settleRegistry(
  { url, ids, answer, whole }: Outcome & { kind: 'registry' },
  file: Table,
  report: RefreshReport,
  tell: (id: string, change: AliasChange, name?: string) => void
): void {
  const entries = new Map(answer.entries.map(entry => [entry.id, entry]))
  for (const id of ids) {
    const row = rowsOf(file, 'providers').get(id)
    const entry = entries.get(id)
    if (!isTable(row) || !isTable(row.source) || row.source.url !== url) continue // changed meanwhile: not ours any more
    if (entry) {
      Object.assign(row, { type: entry.type, base_url: entry.base_url })
      tell(id, writeAliases(file, id, entry.models), entry.name)
    } else if (whole) {
      tell(id, { changed: true, added: 0, removed: withdrawProvider(file, id).length })
    } else report.failed.push({ provider: id, reason: 'the registry no longer lists it' })
  }
  if (!whole) return
  for (const entry of answer.entries) {
    if (ids.includes(entry.id)) continue
    if (rowsOf(file, 'providers').has(entry.id)) {
      report.failed.push({ provider: entry.id, reason: 'the registry lists it, but a provider of this id exists' })
    } else tell(entry.id, addEntry(file, url, entry, answer.api_key), entry.name)
  }
}

/** Adds a provider that a registry lists, with a record of where it came from. */
function addEntry(file: Table, url: string, entry: RegistryEntry, api_key: string | undefined): AliasChange {
  const key = nonBlank(api_key)
  const source = { kind: 'apiJson', url, ...(key && { api_key: key }) }
  const record = { type: entry.type, base_url: entry.base_url, ...(key && { api_key: key }), source }
  putRows(file, 'providers', rowsOf(file, 'providers').set(entry.id, record))
  return writeAliases(file, entry.id, entry.models)
}
