/** Tool schemas as `svc` takes them: without references, without keywords that only describe the schema itself, and with a type everywhere. */
import { inlineRefs, objectSchema, typedSchema } from '../llm/index.ts'

type Json = Readonly<Record<string, unknown>>

const aboutItself = new Set([
  '$schema',
  '$id',
  '$anchor',
  '$comment',
  '$vocabulary',
  '$dynamicRef',
  '$dynamicAnchor',
  '$defs',
  'definitions'
])
/** Keywords whose keys are names that somebody chose. */
const named = new Set(['properties', 'patternProperties', 'dependentSchemas'])
/** Keywords whose values are data. */
const data = new Set(['enum', 'const', 'default', 'examples'])

/** The parameters in that form, at any depth; names that somebody chose and data stay. */
export function plainSchema(parameters: Json): Json {
  return typedSchema(objectSchema(strip(inlineRefs(objectSchema(parameters))) as Json))
}

function strip(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(strip)
  if (typeof value !== 'object' || value === null) return value
  const kept = Object.entries(value).filter(([key]) => !aboutItself.has(key))
  return Object.fromEntries(kept.map(([key, item]) => [key, data.has(key) ? item : named.has(key) ? each(item) : strip(item)]))
}

function each(schemas: unknown): unknown {
  if (typeof schemas !== 'object' || schemas === null) return schemas
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, strip(schema)]))
}
