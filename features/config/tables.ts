/** Plain tables: what the configuration file is made of once it is parsed. */

/** Keys in the order of the file. */
export type Table = Record<string, unknown>

/** True for tables, false for arrays, dates and scalars. */
export function isTable(value: unknown): value is Table {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

/** Sets a key as own property, so that `__proto__` in a file or body is a name like any other. */
export function put(table: Table, key: string, value: unknown): void {
  if (key === '__proto__') Object.defineProperty(table, key, { value, enumerable: true, configurable: true, writable: true })
  else table[key] = value
}

/** The own value of a key. */
export function own(table: Table, key: string): unknown {
  return Object.hasOwn(table, key) ? table[key] : undefined
}

/** Deep copy with ordinary prototypes and without undefined values. Dates are shared: nobody changes them. */
export function copy<T>(value: T): T {
  if (Array.isArray(value)) return value.map(copy) as T
  if (!isTable(value)) return value
  const table: Table = {}
  for (const key of Object.keys(value)) {
    const item = value[key]
    if (item !== undefined) put(table, key, typeof item === 'object' ? copy(item) : item)
  }
  return table as T
}

/** Equal as TOML values. The order of keys matters only when asked for. */
export function same(a: unknown, b: unknown, ordered = false): boolean {
  if (Object.is(a, b)) return true
  if (typeof a === 'bigint' || typeof b === 'bigint') {
    return (
      (typeof a === 'number' || typeof a === 'bigint') && (typeof b === 'number' || typeof b === 'bigint') && a.toString() === b.toString()
    )
  }
  if (a === 0 && b === 0) return true // TOML writes -0 as 0
  if (a instanceof Date && b instanceof Date) return a.toISOString() === b.toISOString()
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((item, index) => same(item, b[index], ordered))
  if (!isTable(a) || !isTable(b)) return false
  const keys = Object.keys(a)
  const others = Object.keys(b)
  if (keys.length !== others.length) return false
  return keys.every((key, at) => (ordered ? key === others[at] : Object.hasOwn(b, key)) && same(a[key], b[key], ordered))
}

/**
 * `next` without undefined values, made of the parts of `before` that say the same in the same place and of its own frozen parts; the rest is
 * copied. `before` itself when they are equal; the order of keys matters only when asked for.
 */
export function shared<T>(before: unknown, next: T, ordered = false): T {
  if (Object.is(before, next)) return next
  if (Array.isArray(next)) return sharedList(Array.isArray(before) ? before : undefined, next, ordered) as T
  if (isTable(next)) return sharedTable(isTable(before) ? before : undefined, next, ordered) as T
  return (same(before, next) ? before : next) as T
}

function sharedList(before: readonly unknown[] | undefined, next: readonly unknown[], ordered: boolean): readonly unknown[] {
  if (!before && Object.isFrozen(next)) return next
  const items = next.map((item, at) => shared(before?.[at], item, ordered))
  return before?.length === items.length && items.every((item, at) => Object.is(item, before[at])) ? before : items
}

function sharedTable(before: Table | undefined, next: Table, ordered: boolean): Table {
  const frozen = Object.isFrozen(next)
  if (!before && frozen) return next
  const keys = Object.keys(next).filter(key => next[key] !== undefined)
  const values = keys.map(key => shared(before && own(before, key), next[key], ordered))
  if (before && values.every((value, at) => Object.is(value, own(before, keys[at]!)))) {
    const others = Object.keys(before)
    if (others.length === keys.length && (!ordered || keys.every((key, at) => key === others[at]))) return before
  }
  if (frozen && values.every((value, at) => Object.is(value, next[keys[at]!]))) return next
  const table: Table = {}
  for (const [at, key] of keys.entries()) put(table, key, values[at])
  return table
}

/** Freezes tables and arrays deeply. What is frozen already is taken to be so all the way down. */
export function freeze<T>(value: T): T {
  if (Object.isFrozen(value)) return value
  if (Array.isArray(value)) value.forEach(freeze)
  else if (isTable(value)) Object.values(value).forEach(freeze)
  else return value
  return Object.freeze(value)
}

/** `upper` laid over `base`: tables merge, everything else replaces, an own `undefined` removes. Frozen parts are shared, others copied. */
export function overlay(base: unknown, upper: unknown): unknown {
  if (!isTable(base) || !isTable(upper)) return kept(upper)
  if (Object.isFrozen(upper) && Object.keys(base).length === 0) return upper
  const merged: Table = { ...base }
  for (const key of Object.keys(upper)) {
    const value = upper[key]
    if (value === undefined) delete merged[key]
    else put(merged, key, isTable(value) && isTable(own(merged, key)) ? overlay(own(merged, key), value) : kept(value))
  }
  for (const key of Object.keys(merged)) if (!Object.hasOwn(upper, key)) put(merged, key, kept(merged[key]))
  return merged
}

function kept<T>(value: T): T {
  return shared(undefined, value)
}

/** A table with a change: tables merge, null deletes, everything else replaces. */
export function mergeTable(table: Table, change: Readonly<Record<string, unknown>>): Table {
  const merged = { ...table }
  for (const [key, value] of Object.entries(change)) {
    const before = own(table, key)
    if (value === null) delete merged[key]
    else if (isTable(value)) put(merged, key, mergeTable(isTable(before) ? before : {}, value))
    else if (value !== undefined) put(merged, key, value)
  }
  return merged
}

/** Keys whose values are not the same objects. */
export function changedKeys(before: Table, after: Table): string[] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(key => !Object.is(own(before, key), own(after, key)))
}

/** Remembers what a pure function of a key answered: large files repeat few keys. Bounded. */
export function remembered<T>(compute: (key: string) => T): (key: string) => T {
  const known = new Map<string, T>()
  return key => {
    const found = known.get(key)
    if (found !== undefined) return found
    if (known.size >= 2_000) known.clear()
    const value = compute(key)
    if (key.length <= 200) known.set(key, value)
    return value
  }
}
