/** Key spelling: the file is snake_case, the inside of a domain on the wire is camelCase, names that users choose stay as they are. */
import type { TSchema } from '../../kernel/index.ts'
import { isTable, own, put, remembered, type Table } from './tables.ts'

export const toSnake = remembered(key =>
  key
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1_$2')
    .toLowerCase()
)
export const toCamel = remembered(key => key.replace(/_+([a-z0-9])/g, (_, letter: string) => letter.toUpperCase()))

/** Tables whose keys are names, wherever they occur: header names, environment names. */
const nameTables = new Set(['env', 'custom_headers', 'headers'])
/** Domains whose first level is names even when nobody contributed a schema for them. */
const nameDomains = new Set(['providers', 'models', 'experimental'])

/** Converts the keys inside one domain. `schema` tells maps (records) from objects; without it the rules above decide. */
export function convertKeys(domain: string, value: unknown, to: 'snake' | 'camel', schema?: TSchema): unknown {
  return walk(value, schema, nameDomains.has(domain), to, domain === 'secondary_model')
}

function walk(value: unknown, schema: TSchema | undefined, names: boolean, to: 'snake' | 'camel', inPool = false): unknown {
  if (Array.isArray(value)) return value.map(item => walk(item, schema?.items as TSchema | undefined, false, to))
  if (!isTable(value)) return value
  const result: Table = {}
  const pattern = recordValue(schema)
  const verbatim = names || pattern !== undefined
  for (const [key, item] of Object.entries(value)) {
    const snake = verbatim ? key : toSnake(key)
    const inner = pattern ?? ((schema?.properties as Record<string, TSchema> | undefined)?.[snake] as TSchema | undefined)
    const innerNames = !verbatim && (nameTables.has(snake) || (inPool && snake === 'models'))
    put(result, verbatim ? key : to === 'snake' ? snake : toCamel(key), walk(item, inner, innerNames, to))
  }
  return result
}

/** The value schema of a record (a map with free keys). */
function recordValue(schema: TSchema | undefined): TSchema | undefined {
  const patterns = schema?.patternProperties as Record<string, TSchema> | undefined
  return patterns && schema?.properties === undefined ? Object.values(patterns)[0] : undefined
}

/** A path in file spelling, as the sender spelled it: `loop_control.max_steps_per_turn` or `loop_control.maxStepsPerTurn`. */
export function asSent(body: unknown, path: string): string {
  let at: unknown = body
  const sent = path.split('.').map(part => {
    const spelled = isTable(at) && !Object.hasOwn(at, part) && Object.hasOwn(at, toCamel(part)) ? toCamel(part) : part
    at = isTable(at) ? own(at, spelled) : Array.isArray(at) ? at[Number(part)] : undefined
    return spelled
  })
  return sent.join('.')
}

/** A file schema as it is on the wire: object keys camelCase, records untouched. */
export function camelSchema(schema: TSchema): TSchema {
  const result: TSchema = { ...schema }
  if (schema.properties) {
    result.properties = Object.fromEntries(
      Object.entries(schema.properties as Record<string, TSchema>).map(([key, inner]) => [toCamel(key), camelSchema(inner)])
    )
    if (schema.required) result.required = (schema.required as string[]).map(toCamel)
  }
  if (schema.items) result.items = camelSchema(schema.items as TSchema)
  return result
}
