/** Whole frames as messages of the AsyncAPI document (contract 3, Control frames and Event frames). */
import { OptionalKind } from '@sinclair/typebox'
import {
  defaultScope,
  type ErrorSpec,
  type EventSpec,
  type FrameSpec,
  globalStream,
  InternalError,
  type OutFrameSpec,
  OwnerSilent,
  PackAway,
  PersistenceFailed,
  ScopeMissing,
  type TSchema,
  ValidationFailed
} from '../../kernel/index.ts'
import { type DocumentSchema, withoutDefaults } from './document-schema.ts'

export type Message = Readonly<Record<string, unknown>>
type Copy = (schema: TSchema) => DocumentSchema

const correlationId = { location: '$message.payload#/id', description: 'The ack repeats the id of its request' }
const timestamp = { type: 'string', format: 'date-time' }
const text = { type: 'string' }
const details = {
  description: 'of 40001: every field that misses its schema, by its path from the root of the frame (`payload.session_ids`)',
  type: 'array',
  items: { type: 'object', required: ['path', 'message'], properties: { path: text, message: text } }
}

const ackFields = ['type', 'id', 'code', 'msg', 'payload']

/** What failures of frames tell beside their text: the fields of 40001, or what the error says of itself. */
const ofFailure = { anyOf: [details, { type: 'object', description: 'of other codes' }] }

export function asyncapiRequest(spec: FrameSpec, copy: Copy): Message {
  const payload = withoutDefaults(spec.payload, copy(spec.payload))
  const optional = spec.payload.type === 'object' && payload.required === undefined && payload.$ref === undefined // a missing one counts as `{}`
  return message(spec.type, spec.summary, {
    ...binary(spec),
    'x-required-scope': spec.scope ?? defaultScope,
    correlationId,
    payload: objectOf(['type', ...(optional ? [] : ['payload'])], {
      type: constant(spec.type),
      id: { type: 'string', description: 'repeated in the ack; without it the ack carries an empty id' },
      payload
    })
  })
}

export function asyncapiAck(spec: FrameSpec, copy: Copy): Message {
  const success = { code: { type: 'integer', const: 0 }, msg: constant('success'), payload: copy(spec.ack) }
  const failures = failuresOf(spec)
  const codes = failures.map(({ code, message }) => `${code} ${message}`).join('; ')
  const refused = { type: 'integer', enum: failures.map(({ code }) => code), description: codes }
  const failure = { code: refused, msg: text, payload: {}, details: ofFailure }
  const answer = (title: string, told: object) => titled(title, objectOf(ackFields, { type: constant('ack'), id: text, ...told }))
  const name = typeName(spec.type)
  return message(`${spec.type}_ack`, `Answer to ${spec.type}`, {
    correlationId,
    payload: { anyOf: [answer(`${name}Accepted`, success), answer(`${name}Refused`, failure)] }
  })
}

/** Answer to what no frame type stands for. */
export function asyncapiRefusal(): Message {
  return message('refused_ack', 'Answer to a message that is no frame, or to a request of a type that nobody knows', {
    payload: objectOf([...ackFields, 'details'], {
      type: constant('ack'),
      id: { type: 'string', description: 'empty when none could be read' },
      code: { type: 'integer', const: ValidationFailed.code },
      msg: text,
      payload: { type: 'object' },
      details
    })
  })
}

/** `stamped`: the frame has a `timestamp` for certain. */
export function asyncapiOutFrame(spec: OutFrameSpec, copy: Copy, stamped = false): Message {
  const own = Object.entries(spec.fields ?? {})
  const needed = own.flatMap(([name, field]) => (OptionalKind in field ? [] : [name]))
  const fields = { type: constant(spec.type), timestamp, ...Object.fromEntries(own.map(([name, field]) => [name, copy(field)])) }
  const required = ['type', ...(stamped ? ['timestamp'] : []), ...needed, 'payload']
  const payload = objectOf(required, { ...fields, payload: copy(spec.payload) })
  return message(spec.type, spec.summary, { ...binary(spec), payload })
}

/** `subject`: the payload field that names whom an event is about. */
export function asyncapiEvent(spec: EventSpec, copy: Copy, subject: string | undefined): Message {
  const { type, scope, durable } = spec
  const fields: Record<string, DocumentSchema> = {
    type: constant(type),
    seq: { type: 'integer', minimum: durable ? 1 : 0, description: durable ? 'own number' : 'number of the last durable event' },
    epoch: { type: 'string', description: 'incarnation of the journal' },
    session_id: scope === 'global' ? constant(globalStream) : text,
    timestamp,
    ...(durable ? {} : { volatile: { type: 'boolean', const: true } }),
    payload: eventPayload(spec, copy(spec.payload), subject === undefined ? [] : [subject])
  }
  const offset = { type: 'integer', minimum: 0, description: 'length of the streamed text before this chunk, UTF-16 units' }
  return message(type, spec.summary, {
    payload: objectOf(Object.keys(fields), spec.offset ? { ...fields, offset } : fields),
    'x-scope': scope,
    'x-durable': durable,
    ...(spec.deliver === undefined ? {} : { 'x-deliver': spec.deliver }),
    ...(spec.once ? { 'x-once': true } : {})
  })
}

/** Adds what the kernel puts into every event payload; a field that the owner declares itself stays as declared, but `type`. */
function eventPayload(spec: EventSpec, own: DocumentSchema, subject: readonly string[]): DocumentSchema {
  const base = {
    ...Object.fromEntries(subject.map(field => [field, text])),
    sessionId: text,
    time: { type: 'integer', description: 'instant of the fact, ms since 1970; then equal to timestamp' }
  }
  const required = ['type', ...subject, 'sessionId']
  const plain = own.type === 'object' && !('allOf' in own) && !('$ref' in own)
  if (!plain) return { allOf: [objectOf(required, { type: constant(spec.type), ...base }), own] }
  const { properties, required: ownRequired = [], ...rest } = own as DocumentSchema & { required?: string[]; properties?: object }
  return { ...rest, ...objectOf([...new Set([...required, ...ownRequired])], { ...base, ...properties, type: constant(spec.type) }) }
}

/** JSON describes the frame; the bytes follow it. */
function binary(spec: { readonly binary?: boolean }): object {
  return spec.binary
    ? { 'x-binary': true, description: 'With bytes: a binary message of the frame as one line of JSON, a newline, and the bytes' }
    : {}
}

/** Titles are what generators call their types; without one they number them. */
function message(name: string, summary: string | undefined, { payload, ...rest }: Message & { payload: DocumentSchema }): Message {
  const type = typeName(name)
  const properties = payload.properties as { payload?: DocumentSchema } | undefined
  const inner = properties?.payload
  const own = inner && !('$ref' in inner) ? { properties: { ...properties, payload: titled(`${type}Payload`, inner) } } : {}
  return { name, ...(summary === undefined ? {} : { summary }), ...rest, payload: titled(`${type}Message`, { ...payload, ...own }) }
}

/** `EventNoteAdded` of `event.note.added`. */
function typeName(name: string): string {
  return name.replace(/(?:^|[^A-Za-z0-9]+)([A-Za-z0-9])/g, (_, letter: string) => letter.toUpperCase())
}

function titled(title: string, schema: DocumentSchema): DocumentSchema {
  return { title, ...schema }
}

function objectOf(required: readonly string[], properties: object): DocumentSchema {
  return { type: 'object', required, properties }
}

function constant(value: string): DocumentSchema {
  return { type: 'string', const: value }
}

/** Those of its own, and those that every request may meet. */
function failuresOf({ errors = [], invalid }: FrameSpec): ErrorSpec[] {
  const all = [
    ValidationFailed,
    ScopeMissing,
    InternalError,
    PersistenceFailed,
    OwnerSilent,
    PackAway,
    ...(invalid ? [invalid] : []),
    ...errors
  ]
  return [...new Map(all.map(spec => [spec.code, spec])).values()]
}
