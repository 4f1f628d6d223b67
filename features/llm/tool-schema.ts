/** JSON Schemas of tools as upstreams take them: an object at the top, without `$ref` for those that follow no references. */
import { listOf, recordOf } from './wire-values.ts'

type Json = Readonly<Record<string, unknown>>

/** Values that references bring in at most, all together: types that refer to each other multiply. */
const INLINED = 5000
const MAX_DEPTH = 32

/**
 * Replaces local references (`#/$defs/x`) by what they point at. Of a schema that refers to itself only the type is left at that place; where
 * references bring in more than goes to a model, of those that are further inside, too.
 */
export function inlineRefs(schema: Json): Json {
  if (!JSON.stringify(schema).includes('"$ref"')) return schema
  const { $defs: _, definitions: __, ...rest } = schema
  return new Inlining(schema).of(rest)
}

class Inlining {
  readonly #root: Json
  /** Outer ones first. */
  readonly #todo: { readonly into: Record<string, unknown>; readonly ref: string; readonly open: readonly string[] }[] = []
  #left = INLINED

  constructor(root: Json) {
    this.#root = root
  }

  of(schema: Json): Json {
    const whole = {}
    this.#fill(whole, schema, [])
    // It grows meanwhile.
    for (const { into, ref, open } of this.#todo) {
      const target = lookUp(ref, this.#root)
      const { type } = target
      if (this.#left > 0 && open.length <= MAX_DEPTH && !open.includes(ref)) this.#fill(into, target, [...open, ref])
      else if (type !== undefined) into.type ??= type
    }
    return whole
  }

  /** What stands there already, beside a reference, counts. */
  #fill(into: Record<string, unknown>, from: Json, open: readonly string[]): void {
    for (const [key, item] of Object.entries(from)) {
      if (key === '$ref' && typeof item === 'string') this.#todo.push({ into, ref: item, open })
      else if (!Object.hasOwn(into, key)) into[key] = this.#copy(item, open)
    }
  }

  #copy(value: unknown, open: readonly string[]): unknown {
    if (open.length > 0) this.#left--
    if (Array.isArray(value)) return value.map(item => this.#copy(item, open))
    if (typeof value !== 'object' || value === null) return value
    const copy = {}
    this.#fill(copy, value as Json, open)
    return copy
  }
}

/** What a reference points at; empty where that is nothing. */
function lookUp(ref: string, root: Json): Json {
  if (!ref.startsWith('#/')) return {}
  let at: unknown = root
  for (const segment of ref.slice(2).split('/')) {
    const key = plainText(segment).replaceAll('~1', '/').replaceAll('~0', '~')
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return {}
    at = (at as Json)[key]
  }
  return recordOf(at)
}

function plainText(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment // percent signs that mean nothing
  }
}

/**
 * The arguments of a tool are an object, also where the schema goes without saying it, and no choice or reference: upstreams refuse a whole
 * request for one at the top.
 */
export function objectSchema(parameters: Json): Json {
  const plain = refusedAtTop.some(keyword => parameters[keyword] !== undefined) ? withoutChoice(inlineRefs(parameters)) : parameters
  const { type = 'object', properties } = plain
  return { ...plain, type, ...(type === 'object' && properties === undefined && { properties: {} }) }
}

const refusedAtTop = ['anyOf', 'oneOf', 'allOf', 'enum', 'not', '$ref']

/** The properties of all alternatives side by side; required is what each of them requires. The tool itself judges the arguments. */
function withoutChoice(schema: Json): Json {
  const { anyOf, oneOf, allOf, enum: _, not: __, ...own } = schema
  const parts = (list: unknown) => listOf(list).map(part => withoutChoice(recordOf(part)))
  const [every, first, second] = [parts(allOf), parts(anyOf), parts(oneOf)]
  const required = new Set([own, ...every].flatMap(part => listOf(part.required)))
  for (const choice of [first, second]) {
    const [one, ...others] = choice.map(part => new Set(listOf(part.required)))
    for (const name of one ?? []) if (others.every(other => other.has(name))) required.add(name)
  }
  // By the name of a property: what it may be, by the text of that.
  const named = new Map<string, Map<string, unknown>>()
  for (const part of [...every, ...first, ...second]) {
    for (const [name, property] of Object.entries(recordOf(part.properties))) {
      const known = named.get(name) ?? new Map<string, unknown>()
      named.set(name, known.set(JSON.stringify(property), property))
    }
  }
  const properties: Record<string, unknown> = { ...recordOf(own.properties) }
  for (const [name, known] of named) {
    if (!Object.hasOwn(properties, name)) properties[name] = known.size === 1 ? [...known.values()][0] : { anyOf: [...known.values()] }
  }
  return { ...own, properties, ...(required.size > 0 && { required: [...required] }) }
}
