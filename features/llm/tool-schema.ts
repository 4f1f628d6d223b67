/**
 * JSON Schemas of tools as upstreams take them: an object at the top, without `$ref` for those that follow no references, with types where
 * they are demanded.
 */
import { listOf, recordOf } from './wire-values.ts'

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

/**
 * The arguments of a tool are an object, also where the schema goes without saying it, and no choice: upstreams refuse a whole request for
 * one at the top.
 */
export function objectSchema(parameters: Json): Json {
  const plain = refusedAtTop.some(keyword => parameters[keyword] !== undefined) ? withoutChoice(inlineRefs(parameters)) : parameters
  const { type = 'object', properties } = plain
  return { ...plain, type, ...(type === 'object' && properties === undefined && { properties: {} }) }
}

const refusedAtTop = ['anyOf', 'oneOf', 'allOf', 'enum', 'not']

/** The properties of all alternatives side by side; required is what each of them requires. The tool itself judges the arguments. */
function withoutChoice(schema: Json): Json {
  const { anyOf, oneOf, allOf, enum: _, not: __, ...own } = schema
  const parts = (list: unknown) => listOf(list).map(part => withoutChoice(recordOf(part)))
  const [every, first, second] = [parts(allOf), parts(anyOf), parts(oneOf)]
  const common = (choice: readonly Json[]) =>
    listOf(choice[0]?.required).filter(name => choice.every(one => listOf(one.required).includes(name)))
  const required = new Set([own, ...every].flatMap(part => listOf(part.required)))
  for (const name of [...common(first), ...common(second)]) required.add(name)
  const properties: Record<string, unknown> = { ...recordOf(own.properties) }
  for (const part of [...every, ...first, ...second]) {
    for (const [name, property] of Object.entries(recordOf(part.properties))) {
      if (Object.hasOwn(recordOf(own.properties), name)) continue
      properties[name] = Object.hasOwn(properties, name) ? either(properties[name], property) : property
    }
  }
  return { ...own, properties, ...(required.size > 0 && { required: [...required] }) }
}

function either(one: unknown, other: unknown): unknown {
  const known = listOf(recordOf(one).anyOf)
  const all = known.length > 0 ? known : [one]
  return all.some(each => JSON.stringify(each) === JSON.stringify(other)) ? one : { anyOf: [...all, other] }
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
