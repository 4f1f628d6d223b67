/** Key case: the file is snake_case, the inside of a domain on the wire is camelCase, names that users choose stay as they are. */
import type { TSchema } from '../../kernel/index.ts'
import type { ConfigSection } from './service.ts'
import { isTable, own, put, remembered, type Table } from './tables.ts'

/** `maxContextSize`, `HTTPPort` to `max_context_size`, `http_port`. */
export const toSnake = remembered(key =>
  key
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1_$2')
    .toLowerCase()
)
/** Only what `toSnake` turns back: `_a`, `a__b` and `a_1` stay. */
export const toCamel = remembered(key => key.replace(/(?<=[a-z0-9])_([a-z])/g, (_, letter: string) => letter.toUpperCase()))

/** Tables whose keys are names, wherever they occur: header names, environment names. */
const nameTables = new Set(['env', 'custom_headers', 'headers'])
/** Domains whose first level is names even when nobody contributed a schema for them. */
const nameDomains = new Set(['providers', 'models', 'experimental'])

/**
 * Converts the keys inside one domain. `schema` tells maps (records) from objects; where it says nothing the rules above decide. A key that is
 * given in two spellings is one key: see `both`.
 */
export function convertKeys(domain: string, value: unknown, to: 'snake' | 'camel', schema: TSchema): unknown {
  return walk(value, schema, nameDomains.has(domain), to, domain === 'secondary_model')
}

function walk(value: unknown, schema: TSchema | undefined, names: boolean, to: 'snake' | 'camel', inPool = false): unknown {
  if (Array.isArray(value)) return value.map(item => walk(item, schema?.items as TSchema | undefined, false, to))
  if (!isTable(value)) return value
  const result: Table = {}
  const entries = mapValue(schema)
  const verbatim = names || entries !== undefined
  const known = (schema?.properties as Table | undefined) ?? {}
  for (const [key, item] of Object.entries(value)) {
    const snake = verbatim ? key : toSnake(key)
    // Spelled like that in the file it is not read, so it must not look as if.
    if (to === 'camel' && snake !== key && Object.hasOwn(known, snake)) continue
    const inner = entries ?? (own(known, snake) as TSchema | undefined)
    const innerNames = !verbatim && (nameTables.has(snake) || (inPool && snake === 'models'))
    const name = verbatim ? key : to === 'snake' ? snake : toCamel(key)
    put(result, name, both(own(result, name), walk(item, inner, innerNames, to)))
  }
  return result
}

/** Two patches of one place: null keeps, tables merge, of anything else the later one counts. */
export function both(first: unknown, second: unknown): unknown {
  if (first === undefined) return second
  if (second === undefined || second === null) return first
  if (!isTable(first) || !isTable(second)) return second
  const result = { ...first }
  for (const [key, item] of Object.entries(second)) put(result, key, both(own(result, key), item))
  return result
}

/** Shape of the values of a map with free keys; undefined for everything else. */
export function mapValue(schema: TSchema | undefined): TSchema | undefined {
  const patterns = schema?.patternProperties as Record<string, TSchema> | undefined
  return patterns && schema?.properties === undefined ? Object.values(patterns)[0] : undefined
}

/** True for a domain whose keys are names. */
export function isMap({ schema }: ConfigSection): boolean {
  return mapValue(schema) !== undefined
}

/**
 * A path in file spelling, as the sender spelled it: `models.a.b.maxContextSize` for an alias `a.b`. What was not sent stays as it is.
 * `inList`: the way leads through a list.
 */
export function asSent(body: unknown, path: string): { readonly path: string; readonly inList: boolean } {
  const parts = path.split('.')
  const sent: string[] = []
  let inList = false
  let at: unknown = body
  while (parts.length > 0) {
    inList ||= Array.isArray(at)
    const [key, taken] = isTable(at) ? keyOf(at, parts) : [parts[0]!, 1]
    at = isTable(at) ? own(at, key) : Array.isArray(at) ? at[Number(key)] : undefined
    sent.push(key)
    parts.splice(0, taken)
  }
  return { path: sent.join('.'), inList }
}

/** The key of the table that the longest part of the path means (names may have dots), and how many parts that are. */
function keyOf(table: Table, parts: readonly string[]): readonly [key: string, taken: number] {
  const keys = Object.keys(table)
  for (let taken = parts.length; taken > 0; taken--) {
    const name = parts.slice(0, taken).join('.')
    const key = Object.hasOwn(table, name) ? name : keys.findLast(spelled => toSnake(spelled) === name)
    if (key !== undefined) return [key, taken]
  }
  return [parts[0]!, 1]
}
