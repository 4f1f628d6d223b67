/** Keys that nobody reads and that look like ones that are read. What is far from all of them may belong to somebody else. */
import { type Detail, nearest, type TSchema } from '../../kernel/index.ts'
import { isMap, mapValue, toSnake } from './key-case.ts'
import { RecordMemo } from './record-memo.ts'
import type { ConfigSection } from './service.ts'
import { isTable } from './tables.ts'

/** Longer keys are not compared with known ones: they are no typing errors. */
const maxLength = 60

/** Unknown keys of one table that are told, or held against known ones. */
export const maxStrangers = 20

/** `offline` for `offlin` or `OffLine`. */
export function meant(given: string, known: readonly string[]): string | undefined {
  return given.length > maxLength ? undefined : nearest(toSnake(given), known)
}

/** `is unknown; did you mean offline?` */
export const didYouMean = (word: string): string => `is unknown; did you mean ${word}?`

const records = new RecordMemo<readonly Detail[]>()

/** Keys inside a domain, with paths below it. */
export function misspelt(section: ConfigSection, value: unknown): readonly Detail[] {
  const { schema, retired = {} } = section
  if (!isMap(section) || !isTable(value)) return walk(schema, value, '').filter(({ path }) => !Object.hasOwn(retired, path))
  const inner = mapValue(schema) as TSchema // of a map
  return Object.keys(value).flatMap(name => records.of(section, name, value[name], record => walk(inner, record, name)))
}

function walk(schema: TSchema, value: unknown, path: string): Detail[] {
  if (Array.isArray(value)) {
    const { items } = schema as { items?: TSchema }
    return items ? value.flatMap((item, at) => walk(items, item, below(path, String(at)))) : []
  }
  if (!isTable(value)) return []
  const entries = mapValue(schema)
  if (entries) return Object.entries(value).flatMap(([key, item]) => walk(entries, item, below(path, key)))
  const { properties } = schema as { properties?: Readonly<Record<string, TSchema>> }
  if (!properties) return []
  const known = Object.keys(properties)
  let strangers = 0
  return Object.entries(value).flatMap(([key, item]) => {
    if (Object.hasOwn(properties, key)) return walk(properties[key]!, item, below(path, key))
    const word = strangers++ < maxStrangers ? meant(key, known) : undefined
    return word === undefined ? [] : [{ path: below(path, key), message: didYouMean(word) }]
  })
}

const below = (path: string, key: string): string => (path === '' ? key : `${path}.${key}`)
