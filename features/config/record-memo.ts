/** Results computed from single records of a map, kept as long as the records: versions of the configuration have most records in common. */
import { isTable } from './tables.ts'

export class RecordMemo<T> {
  readonly #known = new WeakMap<object, { readonly owner: unknown; readonly name: string; readonly made: T }>()

  /** `make` depends on the record, its name and the owner alone. Records that are not frozen are looked at anew. */
  of(owner: unknown, name: string, record: unknown, make: (record: unknown) => T): T {
    if (!isTable(record) || !Object.isFrozen(record)) return make(record)
    const known = this.#known.get(record)
    if (known && known.owner === owner && known.name === name) return known.made
    const made = make(record)
    this.#known.set(record, { owner, name, made })
    return made
  }
}
