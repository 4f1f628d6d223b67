/** JSON Schemas of tools as upstreams take them: without `$ref` for those that follow no references, with types where they are demanded. */

type Json = Readonly<Record<string, unknown>>

/** Replaces local references (`#/$defs/x`) by what they point at. Of a schema that refers to itself only the type is left at that place. */
export function inlineRefs(schema: Json): Json {
  if (!JSON.stringify(schema).includes('"$ref"')) return schema
  const { $defs: _, definitions: __, ...rest } = schema
  return expand(rest, schema, []) as Json
}

function expand(value: unknown, root: Json, open: readonly string[]): unknown {
  if (Array.isArray(value)) return value.map(item => expand(item, root, open))
  if (typeof value !== 'object' || value === null) return value
  const { $ref, ...rest } = value as Json
  const own = Object.fromEntries(Object.entries(rest).map(([key, item]) => [key, expand(item, root, open)]))
  if (typeof $ref !== 'string') return own
  if (open.includes($ref) || open.length > 32) {
    const { type } = lookUp($ref, root) as Json
    return { ...(type !== undefined && { type }), ...own }
  }
  return { ...(expand(lookUp($ref, root), root, [...open, $ref]) as Json), ...own }
}

function lookUp(ref: string, root: Json): unknown {
  if (!ref.startsWith('#/')) return {}
  let at: unknown = root
  for (const segment of ref.slice(2).split('/')) {
    const key = decodeURIComponent(segment).replaceAll('~1', '/').replaceAll('~0', '~')
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return {}
    at = (at as Json)[key]
  }
  return typeof at === 'object' && at !== null ? at : {}
}

/** The arguments of a tool are an object, also where the schema goes without saying it. */
export function objectSchema(parameters: Json): Json {
  const { type = 'object', properties } = parameters
  return { ...parameters, type, ...(type === 'object' && properties === undefined && { properties: {} }) }
}

/** Keywords that say what a value is in place of a type. */
const instead = ['type', 'anyOf', 'oneOf', 'allOf', 'not', '$ref']

/** The type of a schema that states none, by its other keywords; a text where nothing tells. Undefined where one is stated, or another choice. */
export function missingType(schema: Json): string | undefined {
  if (instead.some(keyword => schema[keyword] !== undefined)) return undefined
  const values = Array.isArray(schema.enum) ? schema.enum : schema.const === undefined ? [] : [schema.const]
  const types = new Set(values.filter(value => value !== null).map(typeOfValue))
  const [type] = types
  if (types.size === 1) return type
  if (schema.properties !== undefined || schema.additionalProperties !== undefined || schema.required !== undefined) return 'object'
  if (schema.items !== undefined || schema.prefixItems !== undefined) return 'array'
  if (schema.minimum !== undefined || schema.maximum !== undefined) return 'number'
  return 'string'
}

function typeOfValue(value: unknown): string {
  if (Array.isArray(value)) return 'array'
  return Number.isInteger(value) ? 'integer' : typeof value
}
