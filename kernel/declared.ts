/** What packs hand over is looked at then: they need not be typed, and what is odd would fail later, in the middle of somebody's request. */
import { inspect } from 'node:util'
import type { EventSpec, FrameSpec, OutFrameSpec } from './contract.ts'
import { developerError } from './errors.ts'
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

export function assertEvent({ type, scope, payload, merge }: EventSpec): void {
  assertType('an event', type)
  if (scope !== 'session' && scope !== 'global') throw odd(`the scope of ${type}`, "'session' or 'global'", scope)
  assertSchema(`the payload of ${type}`, payload)
  if (merge && !Array.isArray(merge.by)) throw odd(`merge of ${type}`, 'a list of fields', merge.by)
}

export function assertFrame({ type, payload, ack }: FrameSpec): void {
  assertType('a frame', type)
  assertSchema(`the payload of ${type}`, payload)
  assertSchema(`the ack of ${type}`, ack)
}

export function assertOutFrame({ type, payload }: OutFrameSpec): void {
  assertType('a frame', type)
  assertSchema(`the payload of ${type}`, payload)
}

function assertType(what: string, type: unknown): void {
  if (typeof type !== 'string' || type === '') throw odd(what, 'a type', type)
}
