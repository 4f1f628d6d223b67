/** Domains that map names to records (`providers`, `models`): with thousands of rows, only those that changed are worth a look. */
import { checker, type TSchema } from '../../kernel/index.ts'
import { mapValue } from './casing.ts'
import type { ConfigSection } from './service.ts'
import { isTable, keysOf, own, put, type Table } from './tables.ts'

/** True for a domain whose keys are names. */
export function isMap({ schema }: ConfigSection): boolean {
  return mapValue(schema) !== undefined
}

/** Rows of `next` that are not those of `before`, which may be anything. */
export function changedRows(before: unknown, next: Table): Table {
  const known = isTable(before) ? before : {}
  const keys = keysOf(known)
  const now = keysOf(next)
  const rows: Table = {}
  for (let at = 0; at < now.length; at++) {
    const key = now[at]!
    const row = next[key]
    if (row !== (key === keys[at] ? known[key] : own(known, key))) put(rows, key, row)
  }
  return rows
}

/** Rows of a map with the keys of another table. */
export function rowsLike(map: unknown, other: Table): Table {
  const rows: Table = {}
  if (isTable(map)) for (const key of Object.keys(other)) if (Object.hasOwn(map, key)) put(rows, key, map[key])
  return rows
}

/** The last map without a bad row, by the schema of rows. They are frozen: those that are still there are good. */
const good = new WeakMap<TSchema, Table>()

/** Keys of rows that miss their schema. */
export function badRows(schema: TSchema, map: Table): string[] {
  const before = good.get(schema)
  if (map === before) return []
  const check = checker(schema)
  const rows = changedRows(before, map)
  const bad = Object.keys(rows).filter(key => !check.Check(rows[key]))
  if (bad.length === 0 && Object.isFrozen(map)) good.set(schema, map)
  return bad
}
