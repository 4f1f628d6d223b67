/** What packs hand over is looked at then: they need not be typed, and what is odd would fail later, in the middle of somebody's request. */
import { inspect } from 'node:util'
import type { AnyRoute, EventSpec, FrameSpec, OutFrameSpec } from './contract.ts'
import { developerError, type ErrorSpec } from './errors.ts'
import type { ExtensionPoint } from './lifecycle/services.ts'
import { isSchema, unusable } from './schema.ts'

function odd(what: string, needed: string, given: unknown): Error {
  return developerError('argument_odd', what, needed, inspect(given, { depth: 0 }))
}

export function assertFunction(what: string, given: unknown): void {
  if (typeof given !== 'function') throw odd(what, 'a function', given)
}

/** Throws also for a schema that no value could be held against. */
export function assertSchema(what: string, given: unknown): void {
  if (!isSchema(given)) throw odd(what, 'a schema made with Type', given)
  const problem = unusable(given)
  if (problem) throw developerError('schema_unusable', what, problem)
}

export function isErrorSpec(value: unknown): value is ErrorSpec {
  return typeof (value as { code?: unknown } | null | undefined)?.code === 'number'
}

/** What a route has beside its path. */
export function assertRouteParts(name: string, { params, query, body, data, errors, status = 200, binary }: AnyRoute): void {
  if (data === undefined) throw developerError('route_unusable', name, 'data, the shape of its answer, is missing')
  for (const [part, schema] of Object.entries({ params, query, body, data })) {
    if (schema !== undefined) assertSchema(`${name}: ${part}`, schema)
  }
  for (const [part, schema] of Object.entries({ params, query })) {
    if (schema !== undefined && schema.type !== 'object') throw odd(`${name}: ${part}`, 'a schema of an object', schema)
  }
  assertErrors(name, errors)
  if (!Number.isInteger(status) || status < 200 || status > 299) throw odd(`${name}: status`, '200 to 299', status)
  if (binary !== undefined && !Array.isArray(binary.types)) throw odd(`${name}: binary`, "'types', a list of media types", binary)
}

export function assertEvent({ type, scope, payload }: EventSpec): void {
  assertType('an event', type)
  if (scope !== 'session' && scope !== 'global') throw odd(`the scope of ${type}`, "'session' or 'global'", scope)
  assertSchema(`the payload of ${type}`, payload)
}

export function assertFrame({ type, payload, ack, errors, invalid }: FrameSpec): void {
  assertType('a frame', type)
  assertSchema(`the payload of ${type}`, payload)
  assertSchema(`the ack of ${type}`, ack)
  assertErrors(type, errors)
  if (invalid !== undefined) assertErrors(type, [invalid])
}

export function assertOutFrame({ type, payload, fields = {} }: OutFrameSpec): void {
  assertType('a frame', type)
  assertSchema(`the payload of ${type}`, payload)
  for (const [name, field] of Object.entries(fields)) assertSchema(`${name} of ${type}`, field)
}

function assertErrors(what: string, errors: unknown): void {
  if (errors !== undefined && !(Array.isArray(errors) && errors.every(isErrorSpec)))
    throw odd(`errors of ${what}`, 'a list made with errorSpec', errors)
}

function assertType(what: string, type: unknown): void {
  if (typeof type !== 'string' || type === '') throw odd(what, 'a type', type)
}

/** Throws for what is no extension point, and for an item that lacks a part. */
export function assertItem(point: ExtensionPoint<unknown>, item: unknown): void {
  if (typeof (point as { id?: unknown } | undefined)?.id !== 'string') throw odd('ctx.contribute', 'an extension point', point)
  for (const [part, kind] of Object.entries(point.parts ?? {})) {
    const value = (item as Record<string, unknown> | null | undefined)?.[part]
    if (kind === 'set?' ? value === undefined || value instanceof Set : typeof value === kind && value !== null) continue
    throw odd(`what is contributed to '${point.id}'`, `'${part}' (${kind})`, item ? value : item)
  }
}
