/** Replies of an operation: success, bytes, and every failure under its HTTP status (contract 1, Response envelope and Errors). */
import {
  type AnyRoute,
  type ErrorSpec,
  generalErrors,
  isOpenRoute,
  ScopeMissing,
  Unauthorized,
  ValidationFailed
} from '../../kernel/index.ts'
import { bytes, type DocumentSchema, type DocumentSchemas } from './document-schema.ts'
import { exampleOf } from './examples.ts'

const json = 'application/json'
const requestId = { type: 'string', description: 'ULID, or the X-Request-Id of the request' }

const descriptions: Readonly<Record<number, string>> = {
  200: 'Success, or a failure with its code',
  201: 'Created',
  204: 'Done; no body',
  206: 'The requested range',
  304: 'Not modified',
  401: 'Unauthorized',
  403: 'Host refused, or the credential lacks the scope',
  404: 'Not found',
  429: 'Banned after repeated authentication failures',
  500: 'Failed'
}

/** Builds the replies of one document; those that many operations have in common are shared. */
export class Replies {
  /** Content of `components.responses`: failures by HTTP status and codes. */
  readonly shared: Record<string, object> = {}
  readonly #schemas: DocumentSchemas

  constructor(schemas: DocumentSchemas) {
    this.#schemas = schemas
  }

  of(spec: AnyRoute): Record<string, object> {
    const failures = failuresOf(spec)
    const replies: Record<string, object> = {}
    for (const status of successStatuses(spec)) {
      const content = this.#success(spec, status)
      replies[status] = this.#reply(status, content, failures.get(status) ?? [], exampleReply(spec))
      failures.delete(status)
    }
    for (const [status, specs] of failures) replies[status] = this.#failure(status, specs)
    return replies
  }

  /** Media types of a success with this status and their schemas. */
  #success(spec: AnyRoute, status: number): Record<string, DocumentSchema> {
    if (status === 204 || status === 304) return {}
    if (!spec.binary) return { [json]: this.#envelope(spec) }
    return Object.fromEntries(spec.binary.types.map(type => [type, type === json ? this.#schemas.copy(spec.data) : bytes]))
  }

  #envelope({ data, successCode = 0 }: AnyRoute): DocumentSchema {
    const properties = {
      code: { type: 'integer', const: successCode },
      msg: { type: 'string', const: 'success' },
      data: this.#schemas.copy(data),
      request_id: requestId
    }
    return { type: 'object', required: Object.keys(properties), properties }
  }

  #reply(status: number, success: Readonly<Record<string, DocumentSchema>>, failures: readonly ErrorSpec[], example?: unknown): object {
    const { [json]: schema, ...bytes } = success
    const content: Record<string, object> = Object.fromEntries(Object.entries(bytes).map(([type, value]) => [type, { schema: value }]))
    const all = [...(schema ? [schema] : []), ...failures.map(spec => this.#errorSchema(spec))]
    if (all.length > 0)
      content[json] = { schema: all.length === 1 ? all[0] : { anyOf: all }, ...(schema && example !== undefined && { example }) }
    return { description: describe(status), ...(Object.keys(content).length === 0 ? {} : { content }) }
  }

  #failure(status: number, specs: readonly ErrorSpec[]): object {
    const name = `Http${status}_${specs.map(spec => spec.code).join('_')}`
    this.shared[name] ??= this.#reply(status, {}, specs)
    return { $ref: `#/components/responses/${name}` }
  }

  #errorSchema({ code, name, message, data, details }: ErrorSpec): DocumentSchema {
    return this.#schemas.share(`Error${code}`, () => ({
      type: 'object',
      title: name,
      description: message,
      required: ['code', 'msg', 'data', 'request_id', ...(code === ValidationFailed.code ? ['details'] : [])],
      properties: {
        code: { type: 'integer', const: code },
        msg: { type: 'string' },
        data: data ? this.#schemas.copy(data) : { type: 'null' },
        request_id: requestId,
        ...(code === ValidationFailed.code ? { details: fieldList } : details && { details: this.#schemas.copy(details) })
      }
    }))
  }
}

const fieldList = {
  type: 'array',
  description: 'Each offending field',
  items: {
    type: 'object',
    required: ['path', 'message'],
    properties: { path: { type: 'string', description: 'Joined with dots; empty at the root' }, message: { type: 'string' } }
  }
}

/** A whole reply of success, where the data has examples. */
function exampleReply({ data, binary, successCode = 0 }: AnyRoute): unknown {
  const example = binary ? undefined : exampleOf(data)
  return example === undefined ? undefined : { code: successCode, msg: 'success', data: example, request_id: '01JD0000000000000000000000' }
}

function successStatuses(spec: AnyRoute): readonly number[] {
  return spec.binary ? (spec.binary.statuses ?? [200]) : [spec.status ?? 200]
}

/** Declared and general failures by HTTP status, ascending, each code once per status. */
function failuresOf(spec: AnyRoute): Map<number, ErrorSpec[]> {
  const general = isOpenRoute(spec) ? generalErrors.filter(error => error !== Unauthorized && error !== ScopeMissing) : generalErrors
  const sorted = [...general, ...(spec.errors ?? [])].sort((a, b) => a.status - b.status || a.code - b.code)
  const failures = new Map<number, ErrorSpec[]>()
  for (const error of sorted) {
    const same = failures.get(error.status)
    if (!same) failures.set(error.status, [error])
    else if (same.at(-1)!.code !== error.code) same.push(error)
  }
  return failures
}

function describe(status: number): string {
  return descriptions[status] ?? (status < 400 ? 'Success' : 'Failed')
}
