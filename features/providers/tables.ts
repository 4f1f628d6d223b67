/** The providers and models of the configuration file as plain tables, and one save that keeps the pack's own errors. */
import { AppError, invalid, ValidationFailed } from '../../kernel/index.ts'
import type { Config } from '../config/index.ts'

/** A table of the configuration file, or an object of an upstream's JSON. */
export type Table = Record<string, unknown>

/** True for an object that is no list and no date. */
export function isTable(value: unknown): value is Table {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date)
}

/** Rows of a top-level table in file order; empty when the file has none. Throws 40001 when something else stands there. */
export function rowsOf(file: Table, name: string): Map<string, unknown> {
  const table = Object.hasOwn(file, name) ? file[name] : undefined
  if (table === undefined) return new Map()
  if (!isTable(table)) throw invalid([{ path: '', message: `config.toml: ${name} is not a table` }])
  const rows = new Map<string, unknown>()
  for (const key of Object.keys(table)) rows.set(key, table[key]) // a thousand providers: no pair for each
  return rows
}

/** Puts rows back; a table without rows is taken out. */
export function putRows(file: Table, name: string, rows: ReadonlyMap<string, unknown>): void {
  if (rows.size === 0) delete file[name]
  else file[name] = tableOf(rows)
}

function tableOf(rows: ReadonlyMap<string, unknown>): Table {
  const table: Table = {}
  for (const [key, row] of rows) {
    if (key === '__proto__') return Object.fromEntries(rows) // which makes it a name like any other
    table[key] = row
  }
  return table
}

/** True when the file names a default model. */
export function namesDefault({ default_model }: Table): boolean {
  return typeof default_model === 'string' && default_model.trim() !== ''
}

/** A copy without some keys. */
export function without(table: Table, keys: readonly string[]): Table {
  return Object.fromEntries(Object.entries(table).filter(([key]) => !keys.includes(key)))
}

/**
 * `config.update` for request handlers: an error that `change` throws arrives as it is. What the configuration itself refuses (a file
 * that cannot be read, checked or written) is a 40001 of the request as a whole, for no field of it is to blame.
 */
export async function save<T>(config: Pick<Config, 'update'>, change: (file: Table) => T): Promise<T> {
  let thrown: { readonly error: unknown } | undefined
  let result: { readonly value: T } | undefined
  try {
    await config.update(file => {
      try {
        result = { value: change(file) }
      } catch (error) {
        thrown = { error }
        throw error
      }
    })
  } catch (error) {
    if (thrown) throw thrown.error
    if (AppError.is(error) && error.code === ValidationFailed.code)
      throw invalid([{ path: '', message: `the configuration was not saved: ${error.message}` }], error)
    throw error
  }
  return result!.value
}

/** Old alias to its new name; undefined: it is gone. */
export type Moves = ReadonlyMap<string, string | undefined>

/**
 * Renamed aliases are replaced, vanished ones leave the pool; without its default model the whole section goes. `ids` are the providers that
 * the change is about: what the pool says of a model of theirs that went in an earlier change goes, too. The models of `file` are the new ones.
 */
export function movePool(file: Table, moves: Moves, ids: Iterable<string>): void {
  const pool = file.secondary_model
  if (!isTable(pool)) return
  const models = isTable(file.models) ? file.models : {}
  const below = Array.from(ids, id => `${id}/`)
  const nameOf = (alias: string) => {
    if (moves.has(alias)) return moves.get(alias)
    return below.some(start => alias.startsWith(start)) && !Object.hasOwn(models, alias) ? undefined : alias
  }
  for (const key of ['default_model', 'model']) {
    const alias = pool[key]
    if (typeof alias !== 'string') continue
    const name = nameOf(alias)
    if (name === undefined) {
      delete file.secondary_model
      return
    }
    pool[key] = name
  }
  if (isTable(pool.models)) {
    pool.models = Object.fromEntries(
      Object.entries(pool.models).flatMap(([alias, text]) => {
        const name = nameOf(alias)
        return name === undefined ? [] : [[name, text]]
      })
    )
  }
}
