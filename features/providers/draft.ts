/** The providers and models of a configuration table, opened once for many changes. Records that are there are replaced, never edited. */
import { isDeepStrictEqual } from 'node:util'
import { discovered, type FoundModel, isSized } from './discovery.ts'
import { aliasOf } from './record-builder.ts'
import { isTable, movePool, putRows, rowsOf, type Table, without } from './tables.ts'

/** What became of the aliases of one provider; `added` and `removed` are counts. */
export interface AliasChange {
  /** An alias came, went, or states something else. */
  readonly changed: boolean
  readonly added: number
  readonly removed: number
}

/** Throws 40001 when the table is damaged. Nothing is written before `close`. */
export class Draft {
  readonly #providers: Map<string, unknown>
  readonly #models: Map<string, unknown>
  /** Aliases of each provider. */
  readonly #owned = new Map<unknown, Set<string>>()
  readonly #gone = new Set<string>()
  /** Providers that were taken out or asked for their models. */
  readonly #touched = new Set<string>()

  constructor(table: Table) {
    this.#providers = rowsOf(table, 'providers')
    this.#models = rowsOf(table, 'models')
    for (const [alias, record] of this.#models) if (isTable(record)) this.#ownedBy(record.provider).add(alias)
  }

  /** Providers in their order; the value is the record unless the table is odd. */
  providers(): ReadonlyMap<string, unknown> {
    return this.#providers
  }

  /** Provider of an alias. */
  owner(alias: string): unknown {
    const record = this.#models.get(alias)
    return isTable(record) ? record.provider : undefined
  }

  /** Record of a provider. */
  record(id: string): Table | undefined {
    const record = this.#providers.get(id)
    return isTable(record) ? record : undefined
  }

  /** Adds a provider, or replaces its record in its place. */
  put(id: string, record: Table): void {
    this.#providers.set(id, record)
  }

  /**
   * Aliases `<id>/<key>` become what was found. Aliases under other names and of other providers, fields that discovery does not know
   * and `overrides` stay. Nothing found changes nothing.
   */
  settle(id: string, found: readonly FoundModel[]): AliasChange {
    return this.#write(id, found, (one, before) =>
      before && states(before, one) ? before : { provider: id, model: one.model, ...one.fields, ...(before && without(before, owned)) }
    )
  }

  /** As `settle`, but of a record that is there only `overrides` stay, and of them not the fields `but`. */
  replace(id: string, found: readonly FoundModel[], but: readonly string[]): AliasChange {
    return this.#write(id, found, ({ model, fields }, before) => {
      const overrides = isTable(before?.overrides) ? without(before.overrides, but) : before?.overrides
      return { provider: id, model, ...fields, ...(overrides !== undefined && { overrides }) }
    })
  }

  /** Takes a provider out; answers how many aliases went with it. */
  withdraw(id: string): number {
    const gone = [...this.#ownedBy(id)]
    this.#touched.add(id)
    this.#drop(id, gone)
    this.#providers.delete(id)
    return gone.length
  }

  /**
   * Puts everything back into the table. The secondary-model pool forgets aliases that went; `clearing` the default model and the default
   * provider, too, when they name something that went.
   */
  close(table: Table, clearing = true): void {
    const gone = new Map([...this.#gone].filter(alias => !this.#models.has(alias)).map(alias => [alias, undefined]))
    const { default_model, default_provider } = table
    const known = rowsOf(table, 'providers')
    putRows(table, 'providers', this.#providers)
    putRows(table, 'models', this.#models)
    movePool(table, gone, this.#touched)
    if (!clearing) return
    if (typeof default_model === 'string' && gone.has(default_model)) delete table.default_model
    if (typeof default_provider === 'string' && known.has(default_provider) && !this.#providers.has(default_provider)) {
      delete table.default_provider
    }
  }

  /** `next` answers the record of a model; the one that was there when nothing changes. */
  #write(id: string, found: readonly FoundModel[], next: (one: FoundModel, before: Table | undefined) => Table): AliasChange {
    if (found.length === 0) return { changed: false, added: 0, removed: 0 }
    this.#touched.add(id)
    const below = aliasOf(id, '')
    const aliases = this.#ownedBy(id)
    const listed = new Set<string>()
    let added = 0
    let changed = false
    for (const one of found) {
      const alias = below + one.key
      listed.add(alias)
      if (!isSized(one)) continue
      const there = this.#models.get(alias)
      const before = aliases.has(alias) ? (there as Table) : undefined
      if (there !== undefined && !before) continue
      const record = next(one, before)
      if (record === before) continue
      this.#models.set(alias, record)
      aliases.add(alias)
      if (!before) added++
      changed = true
    }
    const gone = [...aliases].filter(alias => alias.startsWith(below) && !listed.has(alias))
    this.#drop(id, gone)
    return { changed: changed || gone.length > 0, added, removed: gone.length }
  }

  #ownedBy(id: unknown): Set<string> {
    const aliases = this.#owned.get(id) ?? new Set()
    this.#owned.set(id, aliases)
    return aliases
  }

  #drop(id: string, aliases: readonly string[]): void {
    if (aliases.length === 0) return
    const owned = this.#ownedBy(id)
    for (const alias of aliases) {
      owned.delete(alias)
      this.#models.delete(alias)
      this.#gone.add(alias)
    }
    const record = this.record(id)
    const chosen = record?.default_model
    if (typeof chosen === 'string' && (aliases.includes(chosen) || aliases.includes(aliasOf(id, chosen)))) {
      this.put(id, without(record!, ['default_model']))
    }
  }
}

/** Keys of an alias record that discovery writes. */
const owned = ['provider', 'model', ...discovered]

/** The record says already what was found. The order of capabilities means nothing. */
function states(record: Table, { model, fields }: FoundModel): boolean {
  return record.model === model && discovered.every(key => isSame(record[key], fields[key], key === 'capabilities'))
}

function isSame(a: unknown, b: unknown, unordered: boolean): boolean {
  if (typeof a !== 'object' || typeof b !== 'object') return a === b
  const arrays = unordered && Array.isArray(a) && Array.isArray(b)
  return arrays ? isDeepStrictEqual([...a].sort(), [...b].sort()) : isDeepStrictEqual(a, b)
}

/**
 * Aliases `<id>/<key>` of a provider become what was found. Aliases under other names and of other providers, fields that discovery does
 * not know and `overrides` stay. A default that names a vanished alias is cleared, the secondary-model pool follows. Nothing found changes
 * nothing. Throws 40001 when the table is damaged.
 */
export function writeAliases(file: Table, id: string, found: readonly FoundModel[]): AliasChange {
  const draft = new Draft(file)
  const change = draft.settle(id, found)
  if (change.changed) draft.close(file)
  return change
}

/**
 * Takes a provider out, whoever owns it: its aliases, and what pointed at it or them (default provider, default models, secondary-model
 * pool). Throws 40001 when the table is damaged.
 */
export function withdrawProvider(file: Table, id: string): void {
  const draft = new Draft(file)
  draft.withdraw(id)
  draft.close(file)
}
