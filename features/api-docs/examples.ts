/** Examples of whole values, put together from those that shapes and fields declare. */
import { OptionalKind } from '@sinclair/typebox'
import type { TSchema } from '../../kernel/index.ts'

/**
 * A value of the schema that consists of declared examples, constants and defaults; undefined when some part of it has none. Optional
 * fields are there when they declare an example, instants aside: those tell of something that has happened. Numbers and booleans without
 * one are as small as they may be, lists of what has none are empty.
 */
export function exampleOf(schema: TSchema): unknown {
  if (Array.isArray(schema.examples) && schema.examples.length > 0) return schema.examples[0]
  if (schema.const !== undefined) return schema.const
  if (schema.default !== undefined && schema.type !== 'object') return schema.default
  if (Array.isArray(schema.anyOf)) return (schema.anyOf as TSchema[]).map(exampleOf).find(value => value !== undefined)
  if (Array.isArray(schema.allOf)) return merged((schema.allOf as TSchema[]).map(exampleOf))
  switch (schema.type) {
    case 'object':
      return objectExample(schema)
    case 'array':
      return listExample(schema)
    case 'null':
      return null
    case 'boolean':
      return false
    case 'integer':
    case 'number':
      return schema.minimum ?? schema.exclusiveMinimum ?? 0
    default:
      return undefined
  }
}

/** A default of an object has the fields that it names; the others come from their own schemas. */
function objectExample({ properties = {}, default: given = {} }: TSchema): unknown {
  const fields: [string, unknown][] = Object.entries(given as object)
  for (const [key, field] of Object.entries(properties as Record<string, TSchema>)) {
    if (Object.hasOwn(given as object, key)) continue
    const optional = OptionalKind in field
    const value = optional && !(declares(field) && field.format !== 'date-time') ? undefined : exampleOf(field)
    if (value === undefined && !optional) return undefined
    if (value !== undefined) fields.push([key, value])
  }
  return Object.fromEntries(fields)
}

function listExample({ items, minItems = 0 }: TSchema): unknown {
  const item = items ? exampleOf(items as TSchema) : undefined
  if (item !== undefined) return [item]
  return minItems === 0 ? [] : undefined
}

function declares(field: TSchema): boolean {
  return Array.isArray(field.examples) && field.examples.length > 0
}

function merged(parts: readonly unknown[]): unknown {
  return parts.every(part => typeof part === 'object' && part !== null) ? Object.assign({}, ...parts) : undefined
}
