/** From the API documents to TypeScript: a type for every shared schema, every part of an operation, and every frame. */
import { compile } from 'json-schema-to-typescript'

const head = `/**
 * Types of the server's API: the shared shapes, \`paths\` for REST, and the frames of the WebSocket.
 * Made by .ci/client-types.mjs from the documents that the server serves. Do not edit.
 */
`

const tail = `/** An answer with what was asked for. */
export interface Success<Data, Code extends number = 0> {
  code: Code
  msg: 'success'
  data: Data
  request_id: string
}

/** An answer that says why there is nothing; most have HTTP status 200. */
export interface Failure<Code extends number = number> {
  code: Code
  msg: string
  data: unknown
  request_id: string
  /** With 40001 each offending field: \`{ path, message }\`. */
  details?: unknown
}

interface Content<Data, Type extends string = 'application/json'> {
  content: { [type in Type]: Data }
}

/** Failures with an HTTP status of their own: credential, scope or host, address, ban. */
interface Refused {
  401: Content<Failure>
  403: Content<Failure>
  404: Content<Failure>
  429: Content<Failure>
}
`

const methods = ['get', 'put', 'post', 'patch', 'delete']

/** The whole file as text; the same documents give the same text. */
export async function clientTypes(openapi, asyncapi) {
  const types = new Declarations()
  types.share(openapi.components.schemas)
  types.share(asyncapi.components.schemas)
  const paths = Object.entries(openapi.paths).map(([path, item]) => pathText(path, item, new Operations(openapi, types)))
  const frames = framesText(asyncapi, types)
  const rest = `/** Every route, in the form that openapi-fetch reads. */\nexport interface paths {\n${paths.join('\n')}\n}\n`
  return [head, await types.text(), tail, rest, frames].join('\n')
}

/** Types by name, each with its schema. */
class Declarations {
  #schemas = {}

  /** Components of a document, under their names; both documents may have the same ones. Failures are written as \`Failure\` instead. */
  share(schemas = {}) {
    for (const [name, schema] of Object.entries(schemas)) if (!isFailure(schema)) this.#add(pascal(name), schema)
  }

  /** The text of a type; one that is no plain word gets the name. */
  of(name, schema) {
    const plain = plainType(schema)
    if (plain !== undefined) return plain
    this.#add(name, schema)
    return name
  }

  #add(name, schema) {
    const known = this.#schemas[name]
    if (known !== undefined && JSON.stringify(known) !== JSON.stringify(schema)) throw new Error(`two different shapes are called ${name}`)
    this.#schemas[name] = schema
  }

  async text() {
    const sorted = Object.keys(this.#schemas).sort()
    const $defs = Object.fromEntries(sorted.map(name => [name, bare(this.#schemas[name])]))
    const text = await compile({ type: 'object', additionalProperties: false, $defs }, 'Everything', {
      bannerComment: '',
      additionalProperties: false,
      unreachableDefinitions: true,
      ignoreMinAndMaxItems: true,
      style: { semi: false, singleQuote: true, printWidth: 140, trailingComma: 'none', arrowParens: 'avoid' }
    })
    return text
      .replace(/export interface Everything \{\s*\}\n/, '')
      .replace(/ *\*( \*)? This interface was referenced by `[^`]*`'s JSON-Schema( definition)?\n *\* via the `[^\n]*\n/g, '')
      .replace(/^ *\* @m(in|ax)Items \d+\n/gm, '')
      .replace(/^( *)\/\*\*\n(?:\1 \*\n)*((?:\1 \* .*\n(?:\1 \*\n)?)*?)(?:\1 \*\n)*\1 \*\/\n/gm, (_, indent, lines) =>
        lines === '' ? '' : `${indent}/**\n${lines}${indent} */\n`
      )
      .replace(/^( *)\/\*\*\n *\* (.*)\n *\*\/\n/gm, '$1/** $2 */\n')
  }
}

/** What needs no declaration of its own. */
function plainType(schema) {
  if (schema === undefined || Object.keys(schema).every(key => key === 'description')) return 'unknown'
  if (schema.$ref !== undefined) return pascal(schema.$ref.split('/').at(-1))
  if (schema.const !== undefined || schema.anyOf || schema.enum) return undefined
  return { string: 'string', boolean: 'boolean', integer: 'number', number: 'number', null: 'null' }[schema.type]
}

/** A copy whose references point at the declarations, without what only changes names or adds noise. */
function bare(value, isMap = false) {
  if (Array.isArray(value)) return value.map(item => bare(item))
  if (typeof value !== 'object' || value === null) return value
  const copy = {}
  for (const [key, inner] of Object.entries(value)) {
    if (!isMap && ['title', 'examples', 'default', 'format', 'contentEncoding'].includes(key)) continue
    if (!isMap && key === '$ref') copy.$ref = `#/$defs/${pascal(inner.split('/').at(-1))}`
    else copy[key] = key === 'const' || key === 'enum' ? inner : bare(inner, key === 'properties' || key === 'patternProperties')
  }
  return copy
}

/** Routes of the OpenAPI document. */
class Operations {
  #document
  #types

  constructor(document, types) {
    this.#document = document
    this.#types = types
  }

  text(operation) {
    const name = pascal(operation.operationId)
    const successes = Object.entries(operation.responses).filter(([status]) => status < 400)
    const replies = successes.map(([status, reply]) => `${status}: ${this.#reply(name, reply)}`)
    return [...this.#parameters(name, operation), ...this.#body(name, operation), `responses: { ${replies.join('; ')} } & Refused`]
  }

  #parameters(name, { parameters = [] }) {
    const parts = ['path', 'query'].flatMap(place => {
      const own = parameters.map(one => this.#resolve(one)).filter(one => one.in === place)
      if (own.length === 0) return []
      const properties = Object.fromEntries(own.map(one => [one.name, one.schema]))
      const required = own.filter(one => one.required).map(one => one.name)
      const type =
        place === 'query'
          ? this.#types.of(`${name}Query`, { type: 'object', required, properties })
          : `{ ${own.map(one => `${one.name}: string`).join('; ')} }`
      return [`${place}${required.length > 0 ? '' : '?'}: ${type}`]
    })
    return parts.length === 0 ? [] : [`parameters: { ${parts.join('; ')} }`]
  }

  #body(name, { requestBody }) {
    if (requestBody === undefined) return []
    const { required, content } = this.#resolve(requestBody)
    const parts = Object.entries(content).map(([type, { schema }]) => `'${type}': ${this.#types.of(`${name}Body`, schema)}`)
    return [`requestBody${required ? '' : '?'}: { content: { ${parts.join('; ')} } }`]
  }

  #reply(name, given) {
    const { content } = this.#resolve(given)
    if (content === undefined) return '{ content?: never }'
    const { 'application/json': json, ...bytes } = content
    const parts = Object.keys(bytes).map(type => `Content<unknown, '${type}'>`)
    return [...(json ? [`Content<${this.#answers(name, json.schema).join(' | ')}>`] : []), ...parts].join(' & ')
  }

  /** The success, as data or as what the document says it is, and the failures by their codes. */
  #answers(name, schema) {
    const branches = schema.anyOf ?? schema.oneOf ?? [schema]
    const codes = []
    const answers = []
    for (const branch of branches.map(one => this.#resolve(one))) {
      const { code, data, msg } = branch.properties ?? {}
      if (isFailure(branch)) codes.push(...valuesOf(code))
      else if (msg?.const === 'success')
        answers.push(`Success<${this.#types.of(`${name}Data`, data)}${code.const === 0 ? '' : `, ${code.const}`}>`)
      else answers.push(this.#types.of(`${name}Data`, branch))
    }
    if (codes.length > 0) answers.push(`Failure<${codes.join(' | ')}>`)
    return answers
  }

  #resolve(value) {
    if (value?.$ref === undefined) return value
    return value.$ref
      .split('/')
      .slice(1)
      .reduce((at, key) => at[key.replaceAll('~1', '/')], this.#document)
  }
}

function pathText(path, item, operations) {
  const indented = (lines, by) => lines.map(line => `${by}${line}`).join('\n')
  const shown = methods
    .filter(method => item[method])
    .map(method => `    ${method}: {\n${indented(operations.text(item[method]), '      ')}\n    }`)
  return `  '${path}': {\n${shown.join('\n')}\n  }`
}

/** An envelope without data: its code is never 0 and its text is free. */
function isFailure({ properties, required = [] }) {
  return properties?.code !== undefined && required.includes('request_id') && properties.msg?.const !== 'success'
}

function valuesOf(schema) {
  if (schema.const !== undefined) return [schema.const]
  return schema.enum ?? (schema.anyOf ?? schema.oneOf ?? []).flatMap(valuesOf)
}

/** Frames of the AsyncAPI document: events, what the server says by itself, requests and their acks. */
function framesText({ components: { messages } }, types) {
  const events = []
  const system = []
  const requests = []
  for (const [key, message] of Object.entries(messages)) {
    const { name = key, payload } = message
    const ack = messages[`${name}_ack`]
    if (ack) {
      const asked = payload.properties.payload
      const answer = (ack.payload.anyOf ?? ack.payload.oneOf).find(one => one.properties.code?.const === 0).properties.payload
      requests.push([name, `{ payload: ${types.of(`${pascal(name)}Request`, asked)}; ack: ${types.of(`${pascal(name)}Ack`, answer)} }`])
    } else if (message['x-scope']) events.push([name, types.of(`${pascal(name.replace(/^event\./, ''))}Event`, payload)])
    else if (payload.properties?.type.const === name) system.push([name, types.of(`${pascal(name)}Frame`, payload)])
  }
  const table = (name, text, rows) =>
    `/** ${text} */\nexport interface ${name} {\n${rows.map(([key, type]) => `  '${key}': ${type}`).join('\n')}\n}\n`
  return [
    table('Events', 'Event frames by type.', events),
    table('SystemFrames', 'What the server sends beside events and acks, by type.', system),
    table('Requests', 'Control frames: what is sent, and the payload of the ack.', requests),
    '/** Any event. */\nexport type EventFrame = Events[keyof Events]\n',
    '/** Any frame of the server but an ack. */\nexport type ServerFrame = EventFrame | SystemFrames[keyof SystemFrames]\n'
  ].join('\n')
}

/** `session.meta.updated` and `get_sessions` in the spelling of types. */
function pascal(name) {
  return name.replace(/(?:^|[^A-Za-z0-9]+)([A-Za-z0-9])/g, (_, letter) => letter.toUpperCase())
}
