/** Tool schemas in the subset of JSON Schema that the wire takes; it refuses a whole request for one unknown keyword. */
import { inlineRefs, listOf, missingType, objectSchema, recordOf } from '../llm/index.ts'

type Json = Readonly<Record<string, unknown>>

const kept = [
  'title',
  'description',
  'nullable',
  'minimum',
  'maximum',
  'minItems',
  'maxItems',
  'minLength',
  'maxLength',
  'pattern'
] as const
const formats: Readonly<Record<string, readonly string[]>> = {
  string: ['date-time', 'enum'],
  integer: ['int32', 'int64'],
  number: ['float', 'double']
}

/** Parameters of a function; undefined when it has none (the wire refuses an object without properties). */
export function toSchema(parameters: Json): Json | undefined {
  const schema = convert(inlineRefs(objectSchema(parameters)))
  return Object.keys(recordOf(schema.properties)).length > 0 ? { ...schema, type: 'object' } : undefined
}

function convert(given: unknown): Json {
  const source = recordOf(given)
  const out: Record<string, unknown> = {}
  for (const key of kept) if (source[key] !== undefined) out[key] = source[key]
  const { types, nullable } = typesOf(source)
  const choice = choices(source)
  const isOpen = Object.keys(choice).length === 0 && source.allOf === undefined
  if (types.length > 1 && isOpen) return { ...out, anyOf: types.map(type => convert(ofType(source, type))), ...nullable }
  Object.assign(out, types.length === 1 && { type: types[0] }, nullable, choice)
  if (types.length > 1 && out.anyOf === undefined) out.type ??= types[0]
  for (const part of listOf(source.allOf)) mix(out, convert(part))
  const { type } = out
  if (typeof source.format === 'string' && typeof type === 'string' && formats[type]?.includes(source.format)) out.format = source.format
  const values = listOf(source.enum ?? (source.const === undefined ? undefined : [source.const])).filter(value => value !== null)
  // Only strings can be enumerated; numbers keep their type alone.
  if (values.length > 0 && values.every(value => typeof value === 'string')) Object.assign(out, { type: 'string', enum: values })
  const properties = Object.entries(recordOf(source.properties)).map(([name, property]) => [name, typed(recordOf(property))] as const)
  if (properties.length > 0) mix(out, { type: 'object', properties: Object.fromEntries(properties), required: source.required })
  if (out.type === 'array') out.items = typed(recordOf(Array.isArray(source.items) ? source.items[0] : source.items))
  return out
}

/** What says no type where a value is meant is refused, also when the keywords that told more are left out. */
function typed(source: Json): Json {
  const type = missingType(source)
  const out = convert(type === undefined ? source : { ...source, type })
  return out.type === undefined && out.anyOf === undefined ? { ...out, type: 'string' } : out
}

/** What `type` names, with null as `nullable`. */
function typesOf({ type }: Json): { readonly types: readonly unknown[]; readonly nullable: Json | false } {
  const all = typeof type === 'string' ? [type] : listOf(type).filter(each => typeof each === 'string')
  const types = all.filter(each => each !== 'null')
  return { types, nullable: types.length < all.length && { nullable: true } }
}

/** One of several types, with what is said about values of it. */
function ofType({ properties, required, items, enum: values, const: value, ...source }: Json, type: unknown): Json {
  return {
    ...source,
    type,
    ...(type === 'object' && { properties, required }),
    ...(type === 'array' && { items }),
    ...(type === 'string' && { enum: values, const: value })
  }
}

/** `anyOf` and `oneOf`, without null and what says the same twice; a single one that is left stands for itself. */
function choices(source: Json): Json {
  const all = [...listOf(source.anyOf), ...listOf(source.oneOf)].map(recordOf)
  const values = all.filter(choice => choice.type !== 'null')
  const nullable = values.length < all.length && { nullable: true }
  const above = typeof source.type === 'string' && { type: source.type }
  const shown = new Map(values.map(choice => typed({ ...above, ...choice })).map(choice => [JSON.stringify(choice), choice]))
  const real = [...shown.values()]
  return real.length === 1 ? { ...real[0], ...nullable } : { ...(real.length > 1 && { anyOf: real }), ...nullable }
}

/** Lays a part over a schema; properties add up, and only names that exist are required. */
function mix(out: Record<string, unknown>, part: Json): void {
  const properties = { ...recordOf(out.properties), ...recordOf(part.properties) }
  const required = [...new Set([...listOf(out.required), ...listOf(part.required)])].filter(name => Object.hasOwn(properties, String(name)))
  Object.assign(out, part, { properties, required })
  if (Object.keys(properties).length === 0) delete out.properties
  if (required.length === 0) delete out.required
}
