/** From declared schemas to the JSON Schema of a document: plain copies; what has a name, and recursion, moved into `components.schemas`. */
import { annotations, isRecord, type NamedShape, namedShape, type TSchema } from '../../kernel/index.ts'

/** A JSON Schema as it stands in a document. */
export type DocumentSchema = { [key: string]: unknown }

/** Bytes: as OpenAPI 3.1 says it, and as 3.0 did, for the generators that know nothing else and take them for text. */
export const bytes = { type: 'string', contentMediaType: 'application/octet-stream', format: 'binary' }

type Names = ReadonlyMap<string, string>

const kinds = new Set(['null', 'boolean', 'object', 'array', 'number', 'string', 'integer'])
const schemaMaps = new Set(['properties', 'patternProperties', 'dependentSchemas'])
const plainValues = new Set(['default', 'const', 'enum', 'examples', 'required'])
const noNames: Names = new Map()

/** Copies the schemas of one document and collects those that have to be shared. */
export class DocumentSchemas {
  /** Content of `components.schemas`. */
  readonly shared: Record<string, DocumentSchema> = {}
  /** Component by declared name and text, so that equal declarations share one and different ones never do. */
  readonly #known = new Map<string, string>()
  readonly #named = new Map<TSchema, string>()

  /**
   * A copy without the markers of TypeBox. Shapes with a name (`named`) and schemas with an `$id` (`Type.Recursive`, `Type.Module`) become
   * shared components and are referred to. What JSON Schema cannot say (`Type.Undefined`, `Type.Date`) stays without a `type`: anything
   * fits.
   */
  copy(schema: TSchema): DocumentSchema {
    return this.#schema(schema, noNames)
  }

  /** Adds a component under a name that the caller knows to be its own, once. Returns the reference to it. */
  share(name: string, build: () => DocumentSchema): DocumentSchema {
    this.shared[name] ??= build()
    return reference(name)
  }

  #schema(source: object, outer: Names): DocumentSchema {
    const found = namedShape(source)
    return found ? { ...this.#reference(found), ...wordsBeside(source, found) } : this.#plain(source, outer)
  }

  /** A shape stands on its own, so what it refers to is in it. */
  #reference({ name, shape }: NamedShape): DocumentSchema {
    const known = this.#named.get(shape)
    if (known !== undefined) return reference(known)
    const { $id, ...source } = shape as DocumentSchema
    const [component, isNew] = this.#name(name, JSON.stringify(source))
    this.#named.set(shape, component)
    if (isNew) this.shared[component] = this.#plain(source, typeof $id === 'string' ? new Map([[$id, component]]) : noNames)
    return reference(component)
  }

  #plain(source: object, outer: Names): DocumentSchema {
    const { $defs, $id, $ref, ...rest } = source as DocumentSchema
    const names = isRecord($defs) ? this.#define($defs as Record<string, object>, outer) : outer
    if (typeof $id === 'string') return this.#component($id, rest, names)
    const copy = this.#fields(rest, names)
    const target = typeof $ref === 'string' ? names.get($ref) : undefined
    return target === undefined ? copy : { ...copy, ...reference(target) }
  }

  /** The members of a module know each other, so all get their names before the first is copied. */
  #define(definitions: Record<string, object>, outer: Names): Names {
    const text = JSON.stringify(definitions)
    const names = new Map(outer)
    const fresh: [name: string, source: object][] = []
    for (const [id, definition] of Object.entries(definitions)) {
      const [name, isNew] = this.#name(id, text)
      names.set(id, name)
      if (isNew) fresh.push([name, definition])
    }
    for (const [name, definition] of fresh) {
      const { $id, ...rest } = definition as DocumentSchema
      this.shared[name] = this.#schema(rest, names)
    }
    return names
  }

  #component(id: string, source: DocumentSchema, outer: Names): DocumentSchema {
    const [name, isNew] = this.#name(id, JSON.stringify(source))
    if (isNew) this.shared[name] = this.#schema(source, new Map(outer).set(id, name))
    return reference(name)
  }

  #name(id: string, text: string): readonly [name: string, isNew: boolean] {
    const key = `${id} ${text}`
    const known = this.#known.get(key)
    if (known !== undefined) return [known, false]
    // `T0` of an anonymous recursion counts per process; its number would depend on which modules were loaded before.
    const name = uniqueName(/^T\d+$/.test(id) ? 'Recursive' : id.replace(/[^A-Za-z0-9._-]/g, '_'), taken => taken in this.shared)
    this.#known.set(key, name)
    this.shared[name] = {} // holds the place until the copy, which may refer to it, is ready
    return [name, true]
  }

  #fields(source: DocumentSchema, names: Names): DocumentSchema {
    const copy: DocumentSchema = {}
    for (const [key, value] of Object.entries(source)) {
      if (value === undefined) continue
      if (plainValues.has(key)) copy[key] = structuredClone(value)
      else if (key === 'patternProperties' && isRecord(value) && '' in value)
        copy.additionalProperties = this.#value(value[''], names) // any names
      else if (schemaMaps.has(key) && isRecord(value)) copy[key] = mapValues(value, entry => this.#value(entry, names))
      else copy[key] = this.#value(value, names)
    }
    const { anyOf, ...rest } = copy
    if (isEnumeration(anyOf)) return { ...rest, type: 'string', enum: anyOf.map(branch => branch.const) }
    if (copy.contentMediaType === bytes.contentMediaType && copy.contentEncoding === undefined) return { ...copy, ...bytes }
    if (copy.type === 'RegExp') return { type: 'string', pattern: String(source.source) }
    if (typeof copy.type === 'string' && !kinds.has(copy.type)) delete copy.type
    return copy
  }

  #value(value: unknown, names: Names): unknown {
    if (Array.isArray(value)) return value.map(entry => this.#value(entry, names))
    return isRecord(value) ? this.#schema(value, names) : value
  }
}

/** Another description than the shape has itself. */
function wordsBeside(source: object, { shape }: NamedShape): DocumentSchema {
  return Object.fromEntries(Object.entries(source).filter(([key, value]) => annotations.has(key) && value !== shape[key]))
}

/** The copy of what clients send: it may lack what has a default; a default of its own that lacks something needed is none. */
export function withoutDefaults(source: TSchema, copy: DocumentSchema): DocumentSchema {
  const { required, default: given, ...rest } = copy
  const fields = (source.properties ?? {}) as Record<string, TSchema>
  const needed = Array.isArray(required) ? (required as string[]).filter(key => fields[key]?.default === undefined) : []
  const isWhole = given !== undefined && (needed.length === 0 || (isRecord(given) && needed.every(key => Object.hasOwn(given, key))))
  return { ...rest, ...(needed.length > 0 && { required: needed }), ...(isWhole && { default: given }) }
}

/** A union of nothing but constant texts, which generators of most languages know as `enum` only. */
function isEnumeration(branches: unknown): branches is { const: string }[] {
  return (
    Array.isArray(branches) && branches.length > 0 && branches.every(branch => Object.keys(branch).length === 2 && isConstantText(branch))
  )
}

function isConstantText(branch: DocumentSchema): boolean {
  return branch.type === 'string' && typeof branch.const === 'string'
}

function reference(name: string): DocumentSchema {
  return { $ref: `#/components/schemas/${name}` }
}

/** The name itself, or with the first free number behind it. */
export function uniqueName(name: string, taken: (name: string) => boolean): string {
  let free = name
  for (let n = 2; taken(free); n++) free = `${name}_${n}`
  return free
}

function mapValues(map: object, change: (value: unknown) => unknown): object {
  return Object.fromEntries(Object.entries(map).map(([key, value]) => [key, change(value)]))
}
