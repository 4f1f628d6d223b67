/** How a map of records looks to clients: only records that were not shown before are looked at. */
import { isTable, keysOf, own, put, type Table } from './tables.ts'

/** Something shown, by its JSON text; undefined when it is left out. The value is made when somebody asks for it. */
export interface Shown {
  readonly text: string | undefined
  readonly value: () => unknown
}

interface Row {
  /** With its key; undefined when it is left out. */
  readonly text: string | undefined
  readonly value: unknown
}

export class MapView {
  readonly #show: (rows: Table) => unknown
  /** By their records, which are frozen. */
  readonly #rows = new WeakMap<object, Row>()
  #map: Table = {}
  /** In the order of the map. */
  #texts: readonly (string | undefined)[] = []

  /** `show`: how rows look. It is asked for one at a time. */
  constructor(show: (rows: Table) => unknown) {
    this.#show = show
  }

  /** Yields often. */
  *show(map: Table): Generator<void, Shown, void> {
    const before = this.#map
    const known = this.#texts
    const keys = keysOf(before)
    const texts: (string | undefined)[] = []
    for (const key of keysOf(map)) {
      const at = texts.length
      const same = key === keys[at] && map[key] === before[key]
      texts.push(same ? known[at] : this.#row(map, key).text)
      if (at % 16 === 15) yield
    }
    this.#map = map
    this.#texts = texts
    return { text: `{${texts.filter(text => text !== undefined).join(',')}}`, value: once(() => this.#value(map)) }
  }

  #value(map: Table): Table {
    const value: Table = {}
    for (const key of keysOf(map)) {
      const row = this.#row(map, key)
      if (row.text !== undefined) put(value, key, row.value)
    }
    return value
  }

  #row(map: Table, key: string): Row {
    const record = map[key]
    const known = isTable(record) ? this.#rows.get(record) : undefined
    if (known) return known
    const alone: Table = {}
    put(alone, key, record)
    const value = own(this.#show(alone) as Table, key)
    const row = { text: member(key, JSON.stringify(value)), value }
    if (isTable(record) && Object.isFrozen(record)) this.#rows.set(record, row)
    return row
  }
}

/** JSON text of a key with its value. */
export function member(key: string, text: string | undefined): string | undefined {
  return text === undefined ? undefined : `${JSON.stringify(key)}:${text}`
}

function once<T extends object>(make: () => T): () => T {
  let made: T | undefined
  return () => {
    made ??= make()
    return made
  }
}
