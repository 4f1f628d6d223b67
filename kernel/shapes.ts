/** What packs declare shapes with, those that many share, and names for shapes. */
import {
  type IntegerOptions,
  Kind,
  type ObjectOptions,
  type Static,
  type TObject,
  type TProperties,
  type TSchema,
  Type as TypeBuilder
} from '@sinclair/typebox'
import { developerError } from './errors.ts'
import { longestMs } from './lifecycle/wait.ts'
import { jsonOf } from './text.ts'

export type { Static, TObject, TProperties, TSchema }

/**
 * The library's builder, but for records whose keys are any texts: the library's pattern of them leaves out keys with a line break, which
 * were neither checked nor kept.
 */
export const Type: typeof TypeBuilder = Object.create(TypeBuilder, { Record: { value: record } })

function record(key: TSchema, value: TSchema, options: ObjectOptions = {}): TSchema {
  const any = key[Kind] === 'String' && key.pattern === undefined
  return TypeBuilder.Record(any ? { ...key, pattern: '' } : key, value, options)
}

/** True for an object that is no list: what JSON calls an object. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** One of some strings; prints as `anyOf` of `const`, valid in OpenAPI 3.1. */
export function oneOf<const T extends readonly string[]>(
  values: T,
  options: { description?: string; default?: T[number]; examples?: readonly T[number][] } = {}
) {
  return Type.Union(
    values.map(value => Type.Literal(value as T[number])),
    options
  )
}

/** An object with some known fields that keeps all others, in values and in its static type. */
export function openObject<P extends TProperties>(properties: P, options: ObjectOptions = {}) {
  return Type.Unsafe<Static<TObject<P>> & Record<string, unknown>>(Type.Object(properties, { ...options, additionalProperties: true }))
}

/** Instant on the wire: ISO 8601, UTC, milliseconds. */
export const Time = Type.String({ format: 'date-time', description: 'ISO 8601, UTC', examples: ['2026-01-31T09:30:00.000Z'] })

/** A time that is waited, ms; what a timer cannot count is refused. */
export const milliseconds = (options: IntegerOptions) => Type.Integer({ maximum: longestMs, ...options })

/** Cursor-style page (contract 1, Pagination styles). */
export function page<S extends TSchema>(item: S) {
  return Type.Object({ items: Type.Array(item), has_more: Type.Boolean() })
}

/** Query fields of cursor-style lists. Combine with `Type.Composite([cursorQuery(20), ...])`. `before_id` and `after_id` exclude each other. */
export function cursorQuery(defaultSize?: number) {
  const size = { minimum: 1, maximum: 100, ...(defaultSize === undefined ? {} : { default: defaultSize }) }
  return Type.Object({
    before_id: Type.Optional(Type.String()),
    after_id: Type.Optional(Type.String()),
    page_size: Type.Optional(Type.Integer(size))
  })
}

/** An opaque page token that says `value`, which is JSON. */
export const toPageToken = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** What a page token says; undefined for a text that is none as `toPageToken` writes it. (The decoder leaves out what it does not know.) */
export function fromPageToken(token: string): unknown {
  const bytes = Buffer.from(token, 'base64url')
  return bytes.toString('base64url') === token ? jsonOf(bytes.toString('utf8')) : undefined
}

export const nullable = <S extends TSchema>(schema: S) => Type.Union([schema, Type.Null()])

/** A shape and the name that `named` gave to it. */
export interface NamedShape {
  readonly name: string
  readonly shape: TSchema
}

/** Also set by another copy of this module (a third-party pack with its own dependency). */
const mark = Symbol.for('kernel.named-shape')

/**
 * Gives a shape the name by which both API documents know it: `components.schemas` holds it once, every use refers to it, and generated
 * clients have a type of that name. Validation and the static type stay as they are. A shape keeps its name inside other shapes, in
 * `Type.Optional`, and with another description; what is derived from it (`Type.Pick`, `Type.Partial`, `Type.Composite`) has none until it
 * gets one. PascalCase, at most 64 characters, not `Error` and digits; unique among all packs: a pack that brings a different shape under a
 * known name fails.
 */
export function named<S extends TSchema>(name: string, shape: S): S {
  if (!/^[A-Z][A-Za-z0-9]{0,63}$/.test(name) || /^Error\d+$/.test(name)) throw developerError('shape_name_bad', name)
  return { ...shape, [mark]: { name, shape } }
}

/** Words about a shape; they do not decide which values fit. */
export const annotations: ReadonlySet<string> = new Set(['title', 'description', 'default', 'examples', 'deprecated'])

/** The name of a schema node; undefined when it has none, or was derived from a shape with a name. */
export function namedShape(node: object): NamedShape | undefined {
  const found = (node as { [mark]?: NamedShape })[mark]
  if (!found) return undefined
  const keys = new Set([...Object.keys(node), ...Object.keys(found.shape)])
  for (const key of keys) {
    if (!annotations.has(key) && (node as TSchema)[key] !== found.shape[key]) return undefined
  }
  return found
}
