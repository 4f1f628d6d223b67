/** What a change of the configuration may not bring in. What was there before stands in nobody's way. */
import { type Detail, mostDetails, problems, yieldToLoop } from '../../kernel/index.ts'
import { pathOf, withDefault } from './effective.ts'
import { fitting } from './fitting.ts'
import { isMap, mapValue } from './key-case.ts'
import type { ConfigSection } from './service.ts'
import { isTable, own, same, type Table } from './tables.ts'
import { renamedValues } from './toml-rename.ts'
import { misspelt } from './unknown-keys.ts'

/**
 * Faults of a domain that is `stored` now: what cannot be written, what misses the schema, and what the review refuses of the rest. Of a
 * map only records that changed count; long maps are looked at in shares of the event loop.
 */
export async function faultsOf(section: ConfigSection | undefined, name: string, before: unknown, stored: unknown): Promise<Detail[]> {
  const details: Detail[] = []
  for (const [old, part] of section && isMap(section) && isTable(stored) ? changedRecords(before, stored) : [[before, stored]]) {
    const odd = unwritable(part, name)
    const misfit = section && part !== undefined ? misfits(section, part) : []
    const wrong = misfit.map(detail => below(name, detail))
    details.push(...odd, ...wrong.filter(({ path }) => !odd.some(known => known.path === path)))
    if (section && odd.length === 0) {
      const refused = refusals(section, part).filter(remark => !misfit.some(({ path }) => covers(path, remark.path)))
      details.push(...newOnes(refused, () => refusals(section, old)).map(detail => below(name, detail)))
      details.push(...newOnes(misspelt(section, part), () => misspelt(section, old)).map(detail => below(name, detail)))
    }
    if (details.length >= mostDetails) break // nobody is told of more
    await yieldToLoop()
  }
  return details
}

function below(name: string, { path, message }: Detail): Detail {
  return { path: pathOf(name, path), message }
}

/** Records of a map that differ, each in a map of its own, with those that they replace, also under another name. */
function* changedRecords(before: unknown, map: Table): Generator<readonly [old: Table, record: Table], void, void> {
  const known = isTable(before) ? before : {}
  const origins = new Map([...renamedValues(known, map)].map(([from, to]) => [to, from]))
  for (const key of Object.keys(map)) {
    const record = map[key]
    const old = own(known, origins.get(key) ?? key)
    if (!origins.has(key) && same(old, record, true)) continue
    yield [old === undefined ? {} : Object.fromEntries([[key, old]]), Object.fromEntries([[key, record]])]
  }
}

function misfits(section: ConfigSection, value: unknown): Detail[] {
  const record = isTable(value) ? mapValue(section.schema) : undefined
  if (!record) return problems(section.schema, withDefault(section, value))
  return Object.entries(value as Table).flatMap(([key, item]) => problems(record, item, key))
}

/** What of this was not there before. */
function newOnes(found: readonly Detail[], before: () => readonly Detail[]): readonly Detail[] {
  if (found.length === 0) return found
  const known = new Set(before().map(({ path }) => path))
  return found.filter(({ path }) => !known.has(path))
}

function refusals(section: ConfigSection, stored: unknown): readonly Detail[] {
  if (stored === undefined || !section.review) return []
  const value = fitting(section.schema, withDefault(section, stored))
  return value === undefined ? [] : section.review(value).filter(({ refused }) => refused)
}

/** Whether a place is this one or lies in it. */
const covers = (path: string, place: string) => place === path || place.startsWith(`${path}.`)

const loneSurrogate = /\p{Cs}/u

/** TOML has no null (one may be left in a list) and its text is Unicode: what else there is cannot be written. */
function unwritable(value: unknown, path: string): Detail[] {
  if (value === null) return [{ path, message: 'null cannot be stored here' }]
  if (typeof value === 'string') return !loneSurrogate.test(value) ? [] : [{ path, message: 'is not valid Unicode' }]
  if (Array.isArray(value)) return value.flatMap((item, index) => unwritable(item, `${path}.${index}`))
  if (!isTable(value)) return []
  return Object.entries(value).flatMap(([key, item]) =>
    loneSurrogate.test(key) ? [{ path, message: 'a name is not valid Unicode' }] : unwritable(item, `${path}.${key}`)
  )
}
