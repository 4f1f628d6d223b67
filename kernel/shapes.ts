/** What declared schemas are made of: shapes with a name of their own, and faults that would show only at the first value. */
import { FormatRegistry, Kind, type TSchema } from '@sinclair/typebox'
import { developerError } from './errors.ts'

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
 * gets one. PascalCase, at most 64 characters, not `Error` and digits; unique among all packs: a pack that brings a different shape under a known name fails.
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

/** The named shapes in nodes that were found usable; routes share many nodes. */
const walked = new WeakMap<object, readonly NamedShape[]>()
const none: readonly NamedShape[] = []

/** Every named shape in a usable schema, itself included. */
export function shapesIn(schema: TSchema): readonly NamedShape[] {
  const found = walk(schema, new Set())
  return typeof found === 'string' ? none : found
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
