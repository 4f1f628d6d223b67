/** The secondary-model pool follows when aliases are renamed or vanish. */
import { isTable, type Table } from './tables.ts'

/** Old alias to its new name; undefined: it is gone. */
export type Moves = ReadonlyMap<string, string | undefined>

/** Renamed aliases are replaced, vanished ones leave the pool; without its default model the whole section goes. */
export function movePool(file: Table, moves: Moves): void {
  const pool = file.secondary_model
  if (moves.size === 0 || !isTable(pool)) return
  for (const key of ['default_model', 'model']) {
    const alias = pool[key]
    if (typeof alias !== 'string' || !moves.has(alias)) continue
    const next = moves.get(alias)
    if (next === undefined) {
      delete file.secondary_model
      return
    }
    pool[key] = next
  }
  if (isTable(pool.models)) {
    pool.models = Object.fromEntries(
      Object.entries(pool.models).flatMap(([alias, text]) => {
        const next = moves.has(alias) ? moves.get(alias) : alias
        return next === undefined ? [] : [[next, text]]
      })
    )
  }
}
