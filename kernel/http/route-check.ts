/** What a route declaration must fulfil before it is accepted. */
import { FormatRegistry, Kind } from '@sinclair/typebox'
import type { AnyRoute } from '../contract.ts'
import { parseTemplate } from './template.ts'

/** Throws an Error that names the route and what is wrong: path template, params that do not fit it, unusable schemas. */
export function assertRoute(spec: AnyRoute): void {
  const name = `route ${spec.method} ${spec.path}`
  const { names } = parseTemplate(spec.path)
  if (spec.params) {
    const declared = Object.keys(spec.params.properties)
    const missing = names.filter(key => !declared.includes(key))
    const extra = declared.filter(key => !names.includes(key))
    if (missing.length > 0) throw new Error(`${name}: the params schema lacks ${missing.join(', ')}`)
    if (extra.length > 0) throw new Error(`${name}: the path has no parameter ${extra.join(', ')}`)
  }
  for (const part of ['params', 'query', 'body', 'data'] as const) {
    const problem = spec[part] && unusable(spec[part], new Set())
    if (problem) throw new Error(`${name}: ${part} ${problem}`)
  }
}

/** An unregistered format would make every value invalid, and an untyped schema cannot be compiled: both only at the first request. */
function unusable(node: unknown, seen: Set<object>): string | undefined {
  if (typeof node !== 'object' || node === null || seen.has(node)) return undefined
  seen.add(node)
  const schema = node as Record<string | symbol, unknown>
  if (schema[Kind] === 'Unsafe') return 'contains Type.Unsafe, which cannot be checked; use a union of literals'
  if (typeof schema.format === 'string' && Kind in schema && !FormatRegistry.Has(schema.format)) {
    return `uses the unregistered format '${schema.format}'`
  }
  for (const [key, value] of Object.entries(schema)) {
    if (key === 'default' || key === 'const' || key === 'examples') continue
    const problem = unusable(value, seen)
    if (problem) return problem
  }
  return undefined
}
