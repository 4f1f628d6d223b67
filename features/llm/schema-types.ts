/** Types for the schemas of tools that state none: many upstreams refuse a whole request for one such property. */
import { isRecord } from '../../kernel/index.ts'

type Json = Readonly<Record<string, unknown>>

/** Keywords that hold schemas of values, by what holds them: one or a list of them, or some under names that somebody chose. */
const values = new Set(['items', 'prefixItems', 'anyOf', 'oneOf'])
const namedValues = new Set(['properties', 'patternProperties', '$defs', 'definitions'])
/** These say more of a value that is typed elsewhere, or may be anything. */
const beside = new Set(['allOf', 'additionalProperties'])

/** The schema with a type for every value in it that has none; one that lacks nothing stays as it is. */
export function typedSchema(schema: Json): Json {
  const entries = Object.entries(schema).map(([key, item]): [string, unknown] => {
    if (namedValues.has(key))
      return [key, isRecord(item) ? Object.fromEntries(Object.entries(item).map(([name, one]) => [name, typed(one)])) : item]
    if (beside.has(key)) return [key, each(item, one => (isRecord(one) ? typedSchema(one) : one))]
    if (!values.has(key)) return [key, item]
    // An alternative is of the type that stands above all of them.
    const above = key === 'anyOf' || key === 'oneOf' ? schema.type : undefined
    return [key, each(item, one => typed(one, above))]
  })
  return Object.fromEntries(entries)
}

function each(held: unknown, change: (schema: unknown) => unknown): unknown {
  return Array.isArray(held) ? held.map(change) : change(held)
}

function typed(schema: unknown, above?: unknown): unknown {
  if (!isRecord(schema)) return schema
  const type = missingType(schema)
  return typedSchema(type === undefined ? schema : { ...schema, type: typeof above === 'string' ? above : type })
}

/** Keywords that say what a value is in place of a type. */
const instead = ['type', 'anyOf', 'oneOf', 'allOf', 'not', '$ref']

/** The type of a schema that states none, by its other keywords; a text where nothing tells. Undefined where one is stated, or another choice. */
export function missingType(schema: Json): string | undefined {
  if (instead.some(keyword => schema[keyword] !== undefined)) return undefined
  const values = Array.isArray(schema.enum) ? schema.enum : schema.const === undefined ? [] : [schema.const]
  const types = new Set(values.filter(value => value !== null).map(typeOfValue))
  if (types.has('number')) types.delete('integer')
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
