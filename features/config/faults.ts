/** What a change of the configuration may not bring in. What was there before stands in nobody's way. */
import type { Detail } from '../../kernel/index.ts'
import { newProblems, pathOf, salvaged, withDefault } from './effective.ts'
import { changedRows, isMap, rowsLike } from './rows.ts'
import type { ConfigSection } from './service.ts'
import { isTable, put, type Table } from './tables.ts'

/** Rows that are looked at together. */
const PART = 32

/**
 * Faults of a domain that is `stored` now: what cannot be written, what misses the schema, and where neither is the case what the review
 * refuses. Yields often.
 */
export function* faultsOf(
  name: string,
  section: ConfigSection | undefined,
  before: unknown,
  stored: unknown
): Generator<void, Detail[], void> {
  const details: Detail[] = []
  for (const [old, part] of section && isMap(section) && isTable(stored) ? parts(before, stored) : [[before, stored]]) {
    const odd = unsayable(part, name)
    const wrong = section && part !== undefined ? newProblems(section, old, part).map(detail => within(name, detail)) : []
    details.push(...odd, ...wrong.filter(({ path }) => !odd.some(known => known.path === path)))
    if (section && odd.length === 0) details.push(...newRefusals(section, old, part).map(detail => within(name, detail)))
    yield
  }
  return details
}

function within(name: string, { path, message }: Detail): Detail {
  return { path: pathOf(name, path), message }
}

/** Changed rows of a map, a few at a time, with those that they replace. */
function* parts(before: unknown, map: Table): Generator<readonly [old: Table, rows: Table], void, void> {
  const changed = changedRows(before, map)
  const keys = Object.keys(changed)
  for (let from = 0; from < keys.length; from += PART) {
    const rows: Table = {}
    for (const key of keys.slice(from, from + PART)) put(rows, key, changed[key])
    yield [rowsLike(before, rows), rows]
  }
}

/** What the section's review would not let in and was not there before. */
function newRefusals(section: ConfigSection, before: unknown, stored: unknown): readonly Detail[] {
  const found = refusals(section, stored)
  if (found.length === 0) return found
  const known = new Set(refusals(section, before).map(({ path }) => path))
  return found.filter(({ path }) => !known.has(path))
}

function refusals(section: ConfigSection, stored: unknown): readonly Detail[] {
  if (stored === undefined || !section.review) return []
  return section.review(salvaged(section, withDefault(section, stored))).filter(({ refused }) => refused)
}

const loneSurrogate = /\p{Cs}/u

/** TOML has no null (one may be left in a list) and its text is Unicode: what else there is cannot be written. */
function unsayable(value: unknown, path: string): Detail[] {
  if (value === null) return [{ path, message: 'null cannot be stored here' }]
  if (typeof value === 'string') return !loneSurrogate.test(value) ? [] : [{ path, message: 'is not valid Unicode' }]
  if (Array.isArray(value)) return value.flatMap((item, index) => unsayable(item, `${path}.${index}`))
  if (!isTable(value)) return []
  return Object.entries(value).flatMap(([key, item]) =>
    loneSurrogate.test(key) ? [{ path, message: 'a name is not valid Unicode' }] : unsayable(item, `${path}.${key}`)
  )
}
