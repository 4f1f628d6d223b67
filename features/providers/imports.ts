/** Writes whole providers that come from a directory or a registry, in one save. */
import { AppError } from '../../kernel/index.ts'
import { nonBlank } from '../llm/index.ts'
import { dropProvider } from './changes.ts'
import { ProviderManaged } from './contract.ts'
import { aliasOf } from './form.ts'
import { movePool } from './pool.ts'
import type { ImportedProvider } from './service.ts'
import { isTable, putRows, rowsOf, type Table, without } from './tables.ts'

export interface ImportRules {
  /** URL of the registry that they all come from: other providers of that source go. */
  readonly registry?: string | undefined
  /** A default model is set although the file names none. */
  readonly hasDefault: boolean
}

/**
 * Records are rewritten (an absent key keeps the stored one, headers and other fields stay), aliases below the id are replaced, of their
 * old records only `overrides` stay. Default pointers stay, but a missing default model becomes the first imported one. Throws 40003.
 */
export function importProviders(file: Table, imported: readonly ImportedProvider[], { registry, hasDefault }: ImportRules): void {
  const known = rowsOf(file, 'providers')
  for (const { id } of imported) {
    const record = known.get(id)
    if (isTable(record) && record.oauth !== undefined) {
      throw new AppError(ProviderManaged, { message: `provider ${id} is managed by a login; log out first` })
    }
  }
  if (registry !== undefined) {
    const listed = new Set(imported.map(({ id }) => id))
    for (const [id, record] of known) if (!listed.has(id) && sourceUrl(record) === registry) dropProvider(file, id)
  }
  const providers = rowsOf(file, 'providers')
  const models = rowsOf(file, 'models')
  const gone: string[] = []
  for (const one of imported) {
    const before = providers.get(one.id)
    gone.push(...replaceAliases(models, one))
    const record = recordOf(one, isTable(before) ? before : {})
    if (typeof record.default_model === 'string' && !models.has(record.default_model)) delete record.default_model
    providers.set(one.id, record)
  }
  putRows(file, 'providers', providers)
  putRows(file, 'models', models)
  movePool(file, new Map(gone.map(alias => [alias, undefined])))
  const first = imported.find(one => one.models.length > 0)
  if (first && !hasDefault && nonBlank(String(file.default_model ?? '')) === undefined) {
    file.default_model = aliasOf(first.id, first.models[0]!.key)
  }
}

function recordOf({ type, base_url, api_key, source }: ImportedProvider, before: Table): Table {
  const kept = without(before, ['type', 'base_url', 'source', 'model_source', ...(api_key === undefined ? [] : ['api_key'])])
  return { type, ...(base_url && { base_url }), ...(api_key && { api_key }), ...kept, ...(source && { source }) }
}

/** Answers the aliases that went. */
function replaceAliases(models: Map<string, unknown>, { id, models: found }: ImportedProvider): string[] {
  const listed = new Set(found.map(({ key }) => aliasOf(id, key)))
  const gone = [...models].flatMap(([alias, record]) =>
    isTable(record) && record.provider === id && alias.startsWith(aliasOf(id, '')) && !listed.has(alias) ? [alias] : []
  )
  for (const alias of gone) models.delete(alias)
  for (const { key, model, fields } of found) {
    const before = models.get(aliasOf(id, key))
    const overrides = isTable(before) && before.provider === id ? before.overrides : undefined
    models.set(aliasOf(id, key), { provider: id, model, ...fields, ...(overrides !== undefined && { overrides }) })
  }
  return gone
}

function sourceUrl(record: unknown): unknown {
  return isTable(record) && isTable(record.source) && record.source.kind === 'apiJson' ? record.source.url : undefined
}
