/** What fits of a value that misses its schema, so that the rest of it can be reviewed all the same. */
import { Value } from '@sinclair/typebox/value'
import { checker, type TSchema } from '../../kernel/index.ts'
import { mapValue } from './key-case.ts'
import { isTable, own, put, type Table } from './tables.ts'

/**
 * The value without its wrong fields and entries, which fits the schema; undefined: there is none. Something that the schema makes stands in the
 * place of required fields, and of items of lists, so that the others keep their numbers.
 */
export function fitting(schema: TSchema, value: unknown): unknown {
  const fits = (given: unknown) => checker(schema).Check(given)
  if (fits(value)) return value
  const { items, properties, required = [], additionalProperties } = schema as Partial<Parts>
  if (Array.isArray(value)) return items && value.map(item => fitting(items, item) ?? made(items))
  if (!isTable(value)) return undefined
  const entries = mapValue(schema)
  const kept: Table = {}
  for (const [key, item] of Object.entries(value)) {
    const inner = entries ?? (own(properties ?? {}, key) as TSchema | undefined)
    const part = inner ? fitting(inner, item) : additionalProperties === false ? undefined : item
    if (part !== undefined) put(kept, key, part)
  }
  for (const key of required) if (!Object.hasOwn(kept, key)) put(kept, key, made(own(properties ?? {}, key) as TSchema))
  return fits(kept) ? kept : undefined
}

interface Parts {
  readonly items: TSchema
  readonly properties: Table
  readonly required: readonly string[]
  readonly additionalProperties: unknown
}

/** Undefined: nothing can be made without more than the schema says (a pattern). */
function made(schema: TSchema): unknown {
  try {
    return Value.Create(schema)
  } catch {
    return undefined
  }
}
