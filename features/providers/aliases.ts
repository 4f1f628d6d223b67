/** Writes discovered models into the alias records of a provider and counts what came and went. */
import { isDeepStrictEqual } from 'node:util'
import { dropProvider } from './changes.ts'
import { discovered, type FoundModel } from './discovery.ts'
import { aliasOf } from './form.ts'
import { movePool } from './pool.ts'
import { isTable, putRows, rowsOf, type Table, without } from './tables.ts'

export interface AliasChange {
  /** An alias came, went, or states something else. */
  readonly changed: boolean
  readonly added: number
  readonly removed: number
}

/**
 * Aliases `<id>/<key>` of a provider in the configuration file's table become what was found. Aliases under other names and of other
 * providers, fields that discovery does not know and `overrides` stay. A default that names a vanished alias is cleared, the secondary-model
 * pool follows. Nothing found changes nothing. Throws 40001 when the table is damaged.
 */
export function writeAliases(file: Table, id: string, found: readonly FoundModel[]): AliasChange {
  if (found.length === 0) return { changed: false, added: 0, removed: 0 }
  const models = rowsOf(file, 'models')
  const listed = new Set(found.map(({ key }) => aliasOf(id, key)))
  const gone = [...models].flatMap(([alias, record]) =>
    isTable(record) && record.provider === id && alias.startsWith(aliasOf(id, '')) && !listed.has(alias) ? [alias] : []
  )
  let added = 0
  let changed = gone.length > 0
  for (const { key, model, fields } of found) {
    const alias = aliasOf(id, key)
    const before = models.get(alias)
    if (before === undefined) added++
    else if (!isTable(before) || before.provider !== id) continue
    const next = { provider: id, model, ...fields, ...(before && without(before, ['provider', 'model', ...discovered])) }
    if (before && isDeepStrictEqual(comparable(before), comparable(next))) continue
    models.set(alias, next)
    changed = true
  }
  if (changed) {
    for (const alias of gone) models.delete(alias)
    putRows(file, 'models', models)
    clearDefaults(file, id, gone)
  }
  return { changed, added, removed: gone.length }
}

/**
 * Takes a provider, whoever owns it, out of the configuration file's table: its aliases, and what pointed at it or them (default provider,
 * default model, secondary-model pool). Answers the aliases that went. Throws 40001 when the table is damaged.
 */
export function withdrawProvider(file: Table, id: string): string[] {
  const gone = dropProvider(file, id)
  clearDefaults(file, id, gone)
  if (file.default_provider === id) delete file.default_provider
  return gone
}

/** Pointers at aliases that are gone. */
function clearDefaults(file: Table, id: string, gone: readonly string[]): void {
  if (typeof file.default_model === 'string' && gone.includes(file.default_model)) delete file.default_model
  const provider = rowsOf(file, 'providers').get(id)
  if (isTable(provider) && typeof provider.default_model === 'string' && gone.includes(provider.default_model))
    delete provider.default_model
  movePool(file, new Map(gone.map(alias => [alias, undefined])))
}

/** The order of capabilities says nothing, nor does that of keys. */
function comparable(record: Table): Table {
  return Array.isArray(record.capabilities) ? { ...record, capabilities: [...record.capabilities].sort() } : record
}
