/**
 * Versions of the configuration share what they have in common: tables of a version are frozen and never change, so whatever is the same
 * object in the next one needs no second look.
 */
import { copy, isTable, keysOf, own, put, same, settled, type Table } from './tables.ts'

/**
 * Plain tables to edit; what stands below a top-level key is copied when somebody looks at it. Of maps only the map itself is a copy: its
 * records stay frozen, for there may be thousands of them.
 */
export function draftOf(table: Table, isMap: (key: string) => boolean): Table {
  const draft: Table = {}
  for (const [key, value] of Object.entries(table)) {
    if (typeof value !== 'object') {
      put(draft, key, value)
      continue
    }
    const become = (now: unknown) => Object.defineProperty(draft, key, { value: now, enumerable: true, configurable: true, writable: true })
    const get = () => {
      const mine = isMap(key) && isTable(value) ? copyOf(value) : copy(value)
      become(mine)
      return mine
    }
    Object.defineProperty(draft, key, { get, set: become, enumerable: true, configurable: true })
  }
  return draft
}

/** As `{ ...table }`, which takes longer for thousands of keys. */
function copyOf(table: Table): Table {
  const result: Table = {}
  for (const key of keysOf(table)) put(result, key, table[key])
  return result
}

/** What was edited, with every part that is as before replaced by that part. Undefined values are left out. Yields often. */
export function* settleDraft(before: Table, draft: Table): Generator<void, Table, void> {
  const next: Table = {}
  for (const key of Object.keys(draft)) {
    const untouched = Object.getOwnPropertyDescriptor(draft, key)?.get !== undefined
    put(next, key, untouched ? before[key] : draft[key])
  }
  return yield* shareTable(before, next)
}

/**
 * `next`, frozen, with every part that equals the one of `before`, in the same order, replaced by that part. Undefined values are left out.
 * Yields often.
 */
export function* shareTable(before: Table, next: Table): Generator<void, Table, void> {
  const parts: Table = {}
  for (const key of Object.keys(next)) {
    const old = own(before, key)
    const value = next[key]
    const part = value !== old && isTable(old) && isTable(value) ? yield* shareRows(old, value) : shared(old, value)
    if (part !== undefined) put(parts, key, part)
  }
  return unchanged(before, parts) ? before : Object.freeze(parts)
}

/** The same one level deeper, where there may be thousands: `next` is edited where it is, unless it is frozen. */
function* shareRows(before: Table, next: Table): Generator<void, Table, void> {
  const keys = keysOf(before)
  const now = keysOf(next)
  let isSame = keys.length === now.length
  let rows = Object.getPrototypeOf(next) === null ? { ...next } : next
  for (let at = 0; at < now.length; at++) {
    const key = now[at]!
    const row = next[key]
    const old = key === keys[at] ? before[key] : own(before, key)
    const part = row === old ? row : shared(old, row)
    if (part !== row || row === undefined) {
      if (Object.isFrozen(rows)) rows = { ...rows }
      if (part === undefined) delete rows[key]
      else put(rows, key, part)
    }
    if (key !== keys[at] || part !== old) isSame = false
    if (at % 64 === 63) yield
  }
  return isSame ? before : Object.freeze(rows)
}

function shared(before: unknown, next: unknown): unknown {
  if (unchanged(before, next)) return before
  if (!isTable(before) || !isTable(next)) return settled(next)
  const parts: Table = {}
  for (const key of Object.keys(next)) {
    const part = shared(own(before, key), next[key])
    if (part !== undefined) put(parts, key, part)
  }
  return Object.freeze(parts)
}

/** Equal, also in the order of keys. */
function unchanged(before: unknown, next: unknown): boolean {
  if (before === next) return true
  if (Array.isArray(before) && Array.isArray(next)) {
    return before.length === next.length && before.every((item, index) => unchanged(item, next[index]))
  }
  if (!isTable(before) || !isTable(next)) return same(before, next)
  const keys = keysOf(before)
  const now = keysOf(next)
  if (keys.length !== now.length) return false
  for (let at = 0; at < keys.length; at++) {
    const key = keys[at]!
    if (key !== now[at] || !unchanged(before[key], next[key])) return false
  }
  return true
}
