/**
 * Checks of values against schemas of an API document, as strict as a reader of the document: an object has the fields that are named and no
 * others, unless the document says that it has. Checks are compiled at their first use and kept by their text, for all documents of the process.
 */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'

// biome-ignore lint/suspicious/noExplicitAny: documents are deep JSON
export type Node = any

// Compiling is what costs: this way half of it.
const ajv = new Ajv2020({ strict: false, meta: false, validateSchema: false, inlineRefs: false, code: { optimize: false } })
ajv.addFormat('date-time', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/)
ajv.addFormat('uri', (text: string) => URL.canParse(text))

const compiled = new Map<string, ValidateFunction>()
const checks = new WeakMap<object, ValidateFunction>()
/** Ids of the shapes of a document: equal shapes have equal ids, whatever the document. */
const ids = new WeakMap<object, Map<string, string>>()
const numbers = new Map<string, number>()
const added = new Set<string>()

/** What is wrong with the value; '' when nothing is. `schema` is a part of the document, or refers to its `components.schemas`. */
export function misfit(document: Node, schema: Node, value: unknown): string {
  let check = checks.get(schema)
  if (!check) {
    check = checkOf(closed(document, schema, false))
    checks.set(schema, check)
  }
  return check(value) ? '' : faultsOf(check, value)
}

function checkOf(schema: Node): ValidateFunction {
  const text = JSON.stringify(schema)
  const known = compiled.get(text)
  if (known) return known
  const check = ajv.compile(schema)
  compiled.set(text, check)
  return check
}

/** The node that a reference leads to. */
export function follow(document: Node, node: Node): Node {
  if (node?.$ref === undefined) return node
  const path = (node.$ref as string).slice(2).split('/')
  return follow(
    document,
    path.reduce((at, key) => at[key], document)
  )
}

/** At most three, each with its place; of a union those of the branch that got furthest. */
function faultsOf(check: ValidateFunction, value: unknown): string {
  const errors = [...(check.errors ?? [])].filter(error => error.keyword !== 'anyOf' && error.keyword !== 'if')
  const deepest = Math.max(...errors.map(error => error.instancePath.split('/').length))
  return errors
    .filter(error => error.instancePath.split('/').length === deepest)
    .slice(0, 3)
    .map(({ instancePath, message, params }) => {
      const data = valueAt(value, instancePath)
      const field = params.additionalProperty ?? params.unevaluatedProperty
      const what =
        field === undefined
          ? `${message} ${'allowedValue' in params ? JSON.stringify(params.allowedValue) : ''}`
          : `has '${field}', which the document does not name`
      const shown = field === undefined && typeof data !== 'object' ? ` (it is ${JSON.stringify(data)?.slice(0, 80)})` : ''
      return `${instancePath || 'the whole'} ${what.trim()}${shown}`
    })
    .join('; ')
}

function valueAt(value: unknown, pointer: string): unknown {
  const path = pointer.split('/').slice(1)
  return path.reduce((at: Node, key) => at?.[key.replaceAll('~1', '/').replaceAll('~0', '~')], value)
}

/** The id under which a shape of the document is known to the validator; `open`: without the rule that it has no other fields. */
function shapeId(document: Node, name: string, open: boolean): string {
  let known = ids.get(document)
  if (!known) {
    known = new Map()
    ids.set(document, known)
  }
  const key = `${name}${open ? '_open' : ''}`
  const found = known.get(key)
  if (found !== undefined) return found
  const text = JSON.stringify([...reached(document, name)].sort().map(each => [each, document.components.schemas[each]]))
  let number = numbers.get(text)
  if (number === undefined) {
    number = numbers.size
    numbers.set(text, number)
  }
  const id = `shape:${key}/${number}`
  known.set(key, id)
  if (added.has(id)) return id
  added.add(id)
  ajv.addSchema({ ...closed(document, document.components.schemas[name], open), $id: id })
  return id
}

/** Names of the shapes that a shape is made of, itself included. */
function reached(document: Node, name: string, found = new Set<string>()): Set<string> {
  if (found.has(name)) return found
  found.add(name)
  for (const [, other] of JSON.stringify(document.components.schemas[name]).matchAll(/"#\/components\/schemas\/([^"]+)"/g))
    reached(document, other!, found)
  return found
}

const maps = new Set(['properties', 'patternProperties', 'dependentSchemas'])
const plain = new Set(['const', 'enum', 'default', 'examples', 'required', 'not'])

/**
 * A copy whose objects have no other fields than they name. What is put together from several parts is closed as a whole, its parts are open.
 */
function closed(document: Node, node: Node, open: boolean): Node {
  if (Array.isArray(node)) return node.map(each => closed(document, each, open))
  if (typeof node !== 'object' || node === null) return node
  if (typeof node.$ref === 'string') return { $ref: shapeId(document, node.$ref.split('/').at(-1), open) }
  const joined = node.allOf !== undefined || (node.properties !== undefined && (node.anyOf ?? node.oneOf) !== undefined)
  const copy: Node = {}
  for (const [key, value] of Object.entries<Node>(node)) {
    if (plain.has(key)) copy[key] = value
    else if (maps.has(key))
      copy[key] = Object.fromEntries(Object.entries(value).map(([name, field]) => [name, closed(document, field, false)]))
    else copy[key] = closed(document, value, key === 'allOf' || key === 'anyOf' || key === 'oneOf' ? open || joined : false)
  }
  const says = 'additionalProperties' in node || 'unevaluatedProperties' in node
  if (!open && !says && joined) copy.unevaluatedProperties = false
  else if (!open && !says && node.properties !== undefined) copy.additionalProperties = false
  return copy
}
