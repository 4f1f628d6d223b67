/** Changes of providers and models on the table of the configuration file. Each checks first and changes only what passed. */
import { AppError, invalid } from '../../kernel/index.ts'
import { type CreateBody, type ModelEntry, ProviderExists, ProviderManaged, ProviderMissing, type ReplaceBody } from './contract.ts'
import { Draft } from './draft.ts'
import { aliasOf, modelRecord, providerRecord } from './record-builder.ts'
import { listedId, withListedId } from './registry.ts'
import { isTable, type Moves, movePool, namesDefault, putRows, rowsOf, type Table } from './tables.ts'

/** Adds a provider. Throws 40921, or 40001 when another provider owns an alias. `hasDefault`: a default model comes from elsewhere. */
export function addProvider(file: Table, body: CreateBody, hasDefault: boolean): void {
  const providers = rowsOf(file, 'providers')
  const models = rowsOf(file, 'models')
  const { id } = body
  if (providers.has(id)) throw exists(id)
  const { rows } = rebuilt(models, { from: id, to: id, field: 'models' }, body.models)
  providers.set(id, providerRecord(id, body, body.api_key))
  putRows(file, 'providers', providers)
  putRows(file, 'models', rows)
  const first = body.default_model ?? body.models[0]!.model
  if (!hasDefault && !namesDefault(file)) file.default_model = aliasOf(id, first)
}

/**
 * Replaces and perhaps renames a provider. Throws, in this order: 40412, 40003, 40921, 40001 for an alias of another provider.
 * `reserved`: ids that exist although the file does not hold them.
 */
export function changeProvider(file: Table, from: string, body: ReplaceBody, reserved: (id: string) => boolean): void {
  const providers = rowsOf(file, 'providers')
  const models = rowsOf(file, 'models')
  const to = body.new_id ?? from
  const before = ownRecord(providers, from)
  if (to !== from && (providers.has(to) || reserved(to))) throw exists(to)
  const { rows, moves } = rebuilt(models, { from, to, field: to === from ? 'models' : 'new_id' }, body.models)
  const record = withListedId(providerRecord(to, body, body.api_key, before), listedId(from, before), to)
  putRows(file, 'providers', new Map([...providers].map(([id, row]) => (id === from ? [to, record] : [id, row]))))
  putRows(file, 'models', rows)
  if (to === from) return
  if (file.default_provider === from) file.default_provider = to
  const moved = typeof file.default_model === 'string' ? moves.get(file.default_model) : undefined
  if (moved !== undefined) file.default_model = moved
  movePool(file, moves, [from])
}

/** Removes a provider with its aliases; default pointers stay. Throws 40412, 40003. */
export function removeProvider(file: Table, id: string): void {
  ownRecord(rowsOf(file, 'providers'), id)
  const draft = new Draft(file)
  draft.withdraw(id)
  draft.close(file, false)
}

/**
 * The model table after the aliases of a provider were rebuilt: listed models keep their place, fields that the request does not know and,
 * for an alias with a name of its own, that name (below the id of the provider it follows a rename); new ones come last; what is not
 * listed goes.
 */
function rebuilt(
  models: ReadonlyMap<string, unknown>,
  names: Names,
  entries: readonly ModelEntry[]
): { rows: Map<string, unknown>; moves: Moves } {
  const { from, to } = names
  const listed = new Map(entries.map(entry => [entry.model, entry]))
  const targets = new Set(entries.map(entry => aliasOf(to, entry.model)))
  const below = aliasOf(from, '')
  const free = (alias: string) => {
    const other = models.get(alias)
    if (other !== undefined && !(isTable(other) && other.provider === from)) throw taken(alias, names.field)
  }
  const rows = new Map<string, unknown>()
  const moves = new Map<string, string | undefined>()
  for (const [alias, record] of models) {
    if (!isTable(record) || record.provider !== from) {
      rows.set(alias, record)
      continue
    }
    const entry = listed.get(String(record.model))
    if (!entry) moves.set(alias, undefined)
    else if (alias !== aliasOf(from, entry.model)) {
      const name = to !== from && alias.startsWith(below) ? aliasOf(to, alias.slice(below.length)) : alias
      free(name)
      if (name !== alias) moves.set(alias, name)
      if (!targets.has(name) && !rows.has(name)) rows.set(name, { ...record, provider: to })
    } else {
      rows.set(aliasOf(to, entry.model), modelRecord(to, entry, record))
      if (to !== from) moves.set(alias, aliasOf(to, entry.model))
    }
  }
  for (const entry of entries) {
    const alias = aliasOf(to, entry.model)
    free(alias)
    if (!rows.has(alias)) rows.set(alias, modelRecord(to, entry))
  }
  return { rows, moves }
}

interface Names {
  readonly from: string
  readonly to: string
  /** Field of the body that is to blame for a clash. */
  readonly field: string
}

function ownRecord(providers: ReadonlyMap<string, unknown>, id: string): Table {
  const record = providers.get(id)
  if (!isTable(record)) throw missing(id)
  if (record.oauth !== undefined) throw managed(id)
  return record
}

/** 40412 for an id that nobody has. */
export function missing(id: string): AppError {
  return new AppError(ProviderMissing, { message: `provider ${id} not found` })
}

/** 40003 for a provider that a login looks after. */
export function managed(id: string): AppError {
  return new AppError(ProviderManaged, { message: `provider ${id} is managed by a login; log out first` })
}

/** 40921 for an id that is taken. */
export function exists(id: string): AppError {
  return new AppError(ProviderExists, { message: `a provider ${id} exists` })
}

function taken(alias: string, field: string): AppError {
  return invalid([{ path: `body.${field}`, message: `model alias ${alias} belongs to another provider` }])
}
