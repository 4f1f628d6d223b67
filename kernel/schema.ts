/** Schemas at work: compiled checkers, error details, coercion of params and queries, defaults and unknown keys; what makes a schema useless. */
import { FormatRegistry, Kind, type Static, type TObject, type TProperties, type TSchema, Type } from '@sinclair/typebox'
import { type TypeCheck, TypeCompiler } from '@sinclair/typebox/compiler'
import { Value, type ValueError, ValueErrorType, ValuePointer } from '@sinclair/typebox/value'
import { type Detail, mostDetails } from './errors.ts'
import { type NamedShape, namedShape } from './shapes.ts'

const formats: Readonly<Record<string, (text: string) => boolean>> = {
  'date-time': text => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(text) && !Number.isNaN(Date.parse(text)),
  uri: text => URL.canParse(text)
}
for (const [name, check] of Object.entries(formats)) if (!FormatRegistry.Has(name)) FormatRegistry.Set(name, check)

/** A compiled schema. */
export interface Checker<S extends TSchema> {
  Check(value: unknown): value is Static<S>
  Errors(value: unknown): Iterable<ValueError>
}

/** Made once for each schema. */
function once<T>(make: (schema: TSchema) => T): (schema: TSchema) => T {
  const known = new WeakMap<TSchema, T>()
  return schema => {
    const made = known.get(schema)
    if (made !== undefined) return made
    const fresh = make(schema)
    known.set(schema, fresh)
    return fresh
  }
}

/** The checker of a schema, compiled at its first use (a mid-size schema costs about half a millisecond). */
export const checker = once(schema => inCharacters(TypeCompiler.Compile(schema))) as <S extends TSchema>(schema: S) => Checker<S>

/** JSON Schema counts the characters of a text, the library its UTF-16 units: what is too long by these alone is fine. */
function inCharacters(check: TypeCheck<TSchema>): Checker<TSchema> {
  return {
    Check: (value): value is never => check.Check(value) || allFit(check.Errors(value)),
    *Errors(value) {
      for (const error of check.Errors(value)) if (error.errors.length > 0 || !fits(error)) yield error // those of a union can be read only once
    }
  }
}

function allFit(errors: Iterable<ValueError>): boolean {
  for (const error of errors) if (!fits(error)) return false
  return true
}

function fits({ type, schema, value, errors }: ValueError): boolean {
  if (type === ValueErrorType.Union) return errors.some(allFit)
  if (type !== ValueErrorType.StringMaxLength) return false
  const text = value as string
  return text.length <= 2 * schema.maxLength && [...text].length <= schema.maxLength
}

/** Fields that miss the schema; empty when the value is fine. `root` prefixes the paths (`body`). At most `mostDetails`. */
export function problems(schema: TSchema, value: unknown, root = ''): Detail[] {
  const check = checker(schema)
  if (check.Check(value)) return []
  const details: Detail[] = []
  const seen = new Set<string>()
  for (const error of check.Errors(value)) {
    for (const leaf of leaves(error)) {
      const path = [root, ...ValuePointer.Format(leaf.path)].filter(part => part !== '').join('.')
      if (seen.has(path)) continue
      seen.add(path)
      details.push({ path, message: leaf.message.charAt(0).toLowerCase() + leaf.message.slice(1) })
      if (details.length >= mostDetails) return details
    }
  }
  return details
}

/** Errors of a value that is of the right type. */
const outOfBounds: ReadonlySet<ValueErrorType> = new Set([
  ValueErrorType.IntegerMinimum,
  ValueErrorType.IntegerMaximum,
  ValueErrorType.NumberMinimum,
  ValueErrorType.NumberMaximum,
  ValueErrorType.StringMinLength,
  ValueErrorType.StringMaxLength,
  ValueErrorType.StringPattern
])

/** A union reports itself only; the useful errors are in the branch whose discriminator fits, or which got furthest. */
function leaves(error: ValueError): ValueError[] {
  if (error.errors.length === 0) return [error]
  let best: ValueError[] = []
  const tags: ValueError[] = []
  const bounds: string[] = []
  for (const branch of error.errors) {
    const direct = firstOf(branch) // can be read only once
    tags.push(...direct.filter(leaf => leaf.schema.const !== undefined))
    bounds.push(...direct.flatMap(leaf => (outOfBounds.has(leaf.type) && leaf.path === error.path ? leaf.message : [])))
    const found = direct.flatMap(leaves)
    if (found.length === 0) continue
    if (found.some(leaf => isTagOf(error, leaf))) continue
    if (best.length === 0 || depth(found) > depth(best)) best = found
  }
  if (best.length > 0 && depth(best) > depth([error])) return best
  const tag = tags[0]
  if (tag && tag.path !== error.path && tags.every(leaf => leaf.path === tag.path)) {
    return [{ ...tag, message: `Expected ${unique(tags.map(leaf => JSON.stringify(leaf.schema.const)))}` }]
  }
  if (bounds.length > 0) return [{ ...error, message: bounds.join(', or ').replaceAll(', or Expected', ', or') }]
  return [{ ...error, message: `Expected ${unique(alternatives(error.schema))}` }]
}

/** A list in a branch may be wrong in every entry. */
function firstOf(errors: Iterable<ValueError>): ValueError[] {
  const first: ValueError[] = []
  for (const error of errors) {
    if (first.push(error) >= 1000) break
  }
  return first
}

/** Whether a branch misses by the field that tells it from the others. A tag further down belongs to a union inside of the branch. */
function isTagOf(union: ValueError, { path, schema }: ValueError): boolean {
  if (schema.const === undefined || !path.startsWith(`${union.path}/`)) return false
  return /^(type|kind|transport|source|op)$/.test(path.slice(union.path.length + 1))
}

const unique = (texts: readonly string[]): string => [...new Set(texts)].join(', ').replace(/, ([^,]*)$/, ' or $1')

/** What a union allows, in words: its constants, and the types of everything else. */
function alternatives(schema: TSchema): string[] {
  if (schema.anyOf) return (schema.anyOf as TSchema[]).flatMap(alternatives)
  return [schema.const === undefined ? String(schema.type ?? schema[Kind]) : JSON.stringify(schema.const)]
}

function depth(errors: readonly ValueError[]): number {
  return Math.max(...errors.map(error => error.path.split('/').length))
}

/**
 * Turns decoded query or path strings into the types of an object schema: integers and numbers by strict decimal notation,
 * booleans from true/1/false/0, arrays from repeated keys. What does not fit stays as it is and fails the check.
 */
export function coerce(schema: TObject, raw: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const value: Record<string, unknown> = {}
  for (const [key, field] of Object.entries(schema.properties)) {
    const given = raw[key]
    if (given !== undefined) value[key] = coerceField(field, given)
    else if (field.default !== undefined) value[key] = structuredClone(field.default)
  }
  return value
}

function coerceField(field: TSchema, given: unknown): unknown {
  const kind = field[Kind]
  if (kind === 'Array') return (Array.isArray(given) ? given : [given]).map(item => coerceField(field.items as TSchema, item))
  if (Array.isArray(given)) return kind === 'Union' ? given : coerceField(field, given[0])
  if (typeof given !== 'string') return given
  if (kind === 'Integer') return /^-?\d{1,16}$/.test(given) && Number.isSafeInteger(Number(given)) ? Number(given) : given
  if (kind === 'Number') return /^-?\d+(\.\d+)?$/.test(given) ? Number(given) : given
  if (kind === 'Boolean') return given === 'true' || given === '1' ? true : given === 'false' || given === '0' ? false : given
  if (kind === 'Union') {
    for (const branch of field.anyOf as TSchema[]) {
      const tried = coerceField(branch, given)
      if (checker(branch).Check(tried)) return tried
    }
  }
  return given
}

const prepared = once(schema => prepare(schema) as TSchema)

/**
 * Removes keys that the schema does not name, in place, and returns the value. Objects with `additionalProperties: true` keep
 * theirs (the library's own Clean would drop them), and names such as `constructor` get no special treatment.
 */
export function stripUnknown(schema: TSchema, value: unknown): unknown {
  return Value.Clean(prepared(schema), value)
}

const isDefaulted = once(hasDefault)

/** Fills what the schema has defaults for, in place, and returns the value. */
export function fillDefaults(schema: TSchema, value: unknown): unknown {
  return isDefaulted(schema) ? Value.Default(schema, withoutMisfits(schema, value)) : value
}

/**
 * With null for lists that should be objects, and objects that should be lists: the library would merge them with a default. None of them
 * passes the check.
 */
function withoutMisfits(schema: TSchema, value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  const kind = schema[Kind]
  if (kind === 'Array' ? !Array.isArray(value) : kind === 'Object' && Array.isArray(value)) return null
  if (kind === 'Array') {
    const items = value as unknown[]
    for (let at = 0; at < items.length; at++) items[at] = withoutMisfits(schema.items as TSchema, items[at])
  } else if (kind === 'Object') {
    const fields = value as Record<string, unknown>
    for (const [key, field] of Object.entries(schema.properties as TProperties)) {
      if (Object.hasOwn(fields, key)) fields[key] = withoutMisfits(field, fields[key])
    }
  }
  return value
}

/** Also true for a property of this name. */
function hasDefault(node: unknown): boolean {
  return typeof node === 'object' && node !== null && ('default' in node || Object.values(node).some(hasDefault))
}

/**
 * A parsed JSON value as the schema describes it, in place. Defaults are filled in first, so that they count as given; unknown keys go
 * last, so that a schema which forbids them, or says what they hold, has seen them. Throws what `refuse` makes of the fields that miss the
 * schema, below `root`.
 */
export function tidy<S extends TSchema>(schema: S, value: unknown, root: string, refuse: (details: readonly Detail[]) => Error): Static<S> {
  const filled = fillDefaults(schema, value)
  const details = problems(schema, filled, root)
  if (details.length > 0) throw refuse(details)
  return stripUnknown(schema, filled) as Static<S>
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

/** The named shapes in nodes that were found usable; routes share many nodes. */
const walked = new WeakMap<object, readonly NamedShape[]>()
const none: readonly NamedShape[] = []

/** Every named shape in a usable schema, itself included. */
export function shapesIn(schema: TSchema): readonly NamedShape[] {
  const found = walk(schema, new Set())
  return typeof found === 'string' ? none : found
}

/** Whether it was made with `Type`. */
export function isSchema(value: unknown): value is TSchema {
  return typeof value === 'object' && value !== null && Kind in value
}

/**
 * What makes a schema useless, if anything: an unregistered format would make every value invalid, and an untyped schema cannot be
 * compiled, but both would show only at the first value.
 */
export function unusable(schema: TSchema): string | undefined {
  const found = walk(schema, new Set())
  return typeof found === 'string' ? found : undefined
}

/** The named shapes, or what is wrong. `above`: the nodes that the walk is in. */
function walk(node: unknown, above: Set<object>): readonly NamedShape[] | string {
  if (typeof node !== 'object' || node === null || above.has(node)) return none
  const known = walked.get(node)
  if (known) return known
  const schema = node as Record<string | symbol, unknown>
  if (schema[Kind] === 'Unsafe') return 'contains Type.Unsafe, which cannot be checked; use a union of literals'
  if (typeof schema.format === 'string' && Kind in schema && !FormatRegistry.Has(schema.format)) {
    return `uses the unregistered format '${schema.format}'`
  }
  const fields =
    schema[Kind] === 'Object' ? Object.entries(schema.properties as object) : schema[Kind] === 'Array' ? [['items', schema.items]] : []
  const foreign = fields.find(([, field]) => !isSchema(field))
  if (foreign) return `has '${foreign[0]}', which was not made with Type`
  const own = namedShape(schema)
  let shapes: Set<NamedShape> | undefined = own && new Set([own])
  above.add(node)
  for (const key of Object.keys(schema)) {
    const value = schema[key]
    if (typeof value !== 'object' || key === 'default' || key === 'const' || key === 'examples') continue
    const found = walk(value, above)
    if (typeof found === 'string') return found
    if (found.length === 0) continue
    shapes ??= new Set()
    for (const shape of found) shapes.add(shape)
  }
  above.delete(node)
  const found = shapes ? [...shapes] : none
  walked.set(node, found)
  return found
}
