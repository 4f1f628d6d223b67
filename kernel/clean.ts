/** Default values in, unknown keys out. */
import { Kind, type Static, type TSchema, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'

const prepared = new WeakMap<TSchema, TSchema>()

/**
 * Removes keys that the schema does not name, in place, and returns the value. Objects with `additionalProperties: true` keep
 * theirs (the library's own Clean would drop them), and names such as `constructor` get no special treatment.
 */
export function stripUnknown(schema: TSchema, value: unknown): unknown {
  let ready = prepared.get(schema)
  if (!ready) {
    ready = prepare(schema) as TSchema
    prepared.set(schema, ready)
  }
  return Value.Clean(ready, value)
}

/** Fills defaults, then strips unknown keys, in place: a parsed JSON value becomes what the schema describes (if it passes the check). */
export function tidy<S extends TSchema>(schema: S, value: unknown): Static<S> {
  return stripUnknown(schema, Value.Default(schema, value)) as Static<S>
}

function prepare(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(prepare)
  if (typeof node !== 'object' || node === null) return node
  const copy: Record<string | symbol, unknown> = { ...node }
  for (const [key, value] of Object.entries(copy)) {
    if (key === 'default' || key === 'const' || key === 'examples') continue
    // Without a prototype: Clean asks `key in properties`.
    copy[key] = key === 'properties' && Kind in node ? Object.assign(Object.create(null), prepareEach(value as object)) : prepare(value)
  }
  if (copy[Kind] === 'Object' && copy.additionalProperties === true) copy.additionalProperties = Type.Unknown()
  return copy
}

function prepareEach(properties: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(properties).map(([key, value]) => [key, prepare(value)]))
}
