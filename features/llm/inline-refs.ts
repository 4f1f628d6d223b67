/** JSON Schemas without `$ref`, for upstreams that do not follow references. */

type Json = Readonly<Record<string, unknown>>

/** Replaces local references (`#/$defs/x`) by what they point at. A schema that refers to itself becomes `{}` (anything) at that place. */
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
  if (open.includes($ref) || open.length > 32) return own
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
