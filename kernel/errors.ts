/**
 * Two kinds of errors with codes. Expected failures (`AppError`): one code, one owner, one spec; they reach clients. Mistakes of whoever
 * writes or deploys a pack (`DeveloperError`): one table; they reach the log, `meta.features` and the console. Everything else is a bug
 * and answers 50001.
 */

import { basename } from 'node:path'
import { type TSchema, Type } from '@sinclair/typebox'
import { shellWord, shortened } from './text.ts'

/** What an answer with this error holds beside its text. */
export interface ErrorShapes {
  /** Default: null. */
  readonly data?: TSchema
  /** Of some answers; default: of none. */
  readonly details?: TSchema
}

/** Declared once by its owner; routes list those that they can answer. */
export interface ErrorSpec extends ErrorShapes {
  /** snake_case, unique: `bookmark_limit`. */
  readonly name: string
  /** Envelope code, unique (contract 1, Errors). */
  readonly code: number
  /** Default text: short, lower case, names the thing. */
  readonly message: string
  /** HTTP status; 200 unless the contract names another. */
  readonly status: number
}

/** One field of a validation failure; `path` is joined with dots (`content.0.type`, `body.label`), empty at the root. */
export interface Detail {
  readonly path: string
  readonly message: string
}

/** Declares an expected failure. The kernel refuses two different specs with one code. */
export function errorSpec(name: string, code: number, message: string, status = 200, shapes: ErrorShapes = {}): ErrorSpec {
  return { name, code, message, status, ...shapes }
}

/** What one occurrence adds to its spec. */
export interface AppErrorOptions {
  /** Replaces the default text; never a secret. */
  readonly message?: string | undefined
  /** Non-null `data` of the error envelope, for example `{ resolved: false }`. */
  readonly data?: unknown
  /** Structured `details`: an array of fields for 40001, an object elsewhere. */
  readonly details?: readonly Detail[] | Readonly<Record<string, unknown>> | undefined
  readonly cause?: unknown
}

const brand = Symbol.for('kernel.AppError')

/** Messages and paths repeat what they are about, and that may be as long as a body. */
const told = (text: string): string => shortened(text, 2000)

/** An expected failure on its way to the envelope. */
export class AppError extends Error {
  readonly spec: ErrorSpec
  readonly data: unknown
  readonly details: AppErrorOptions['details']
  readonly [brand] = true

  constructor(spec: ErrorSpec, options: AppErrorOptions = {}) {
    super(told(options.message ?? spec.message), options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'AppError'
    this.spec = spec
    this.data = options.data ?? null
    this.details = options.details
  }

  get code(): number {
    return this.spec.code
  }

  /** True also for an AppError of another copy of this module (a third-party pack with its own dependency). */
  static is(error: unknown): error is AppError {
    return typeof error === 'object' && error !== null && brand in error
  }
}

/** 40001: `details` lists each offending field (contract 1, Response envelope). */
export const ValidationFailed = errorSpec('validation_failed', 40001, 'validation failed')
/** 40101: no token, or a wrong one (contract 1, Authentication). */
export const Unauthorized = errorSpec('unauthorized', 40101, 'Unauthorized', 401)
/** The token in `client_hello` is wrong; also answered for the credential of a model provider that was refused for good. */
export const CredentialRejected = errorSpec('credential_rejected', 40112, 'the credential was rejected', 200, {
  details: Type.Object({ provider_id: Type.Optional(Type.String()), model_id: Type.Optional(Type.String()) })
})
/** Host header refused (DNS rebinding). */
export const HostRefused = errorSpec('host_refused', 40301, 'host not allowed', 403)
/** The principal lacks the scope that a route or frame asks for. The contract names no code for it; HTTP 403. */
export const ScopeMissing = errorSpec('scope_missing', 40302, 'the credential does not reach this', 403)
/** Unknown route, or a route of a pack that is not active. The contract names no code for it; HTTP 404 as everywhere. */
export const RouteMissing = errorSpec('route_missing', 40400, 'no such route', 404)
/** 42901: too many of them from one address. */
export const Banned = errorSpec('auth_banned', 42901, 'Too many failed auth attempts', 429)
/** 50001: a bug; its text stays in the log. */
export const InternalError = errorSpec('internal_error', 50001, 'internal error')
/** 50003: the disk refused. */
export const PersistenceFailed = errorSpec('persistence_failed', 50003, 'could not be saved')
/** 50005: another server of the home has the session and does not answer. The contract names no code for it. */
export const OwnerSilent = errorSpec('owner_silent', 50005, 'the server that has the session does not answer; try again')

/**
 * 50007: the pack behind a route, frame, tool or guard is being set up again, by itself or by an operator. The contract names no code for
 * it; HTTP 503.
 */
export const PackAway = errorSpec('pack_away', 50007, 'the pack that answers this is starting again; try again', 503, {
  details: Type.Object({
    pack: Type.String(),
    retry_after_ms: Type.Optional(Type.Integer({ minimum: 0, description: 'When it is set up again; absent: at once' }))
  })
})

export const generalErrors: readonly ErrorSpec[] = [
  ValidationFailed,
  Unauthorized,
  HostRefused,
  ScopeMissing,
  RouteMissing,
  Banned,
  InternalError,
  PersistenceFailed,
  OwnerSilent,
  PackAway
]

/** Entries of one 40001: who sends thousands of wrong fields is told of the first. */
export const mostDetails = 50

/**
 * A 40001 with one entry per offending field, its path from the root of the request (`body.label`); the message is `path: text` of the first. Of
 * more than `mostDetails` the others are left out.
 */
export function invalid(details: readonly Detail[], cause?: unknown): AppError {
  const first = details[0]
  const message = first ? (first.path ? `${first.path}: ${first.message}` : first.message) : undefined
  return new AppError(ValidationFailed, {
    message,
    details: details.slice(0, mostDetails).map(({ path, message: text }) => ({ path: told(path), message: told(text) })),
    cause
  })
}

/**
 * A service names the fields of its own arguments: a 40001 of one comes back with every path below `root` (`body.agent_config`),
 * where the caller had them from. Every other error is returned as it is.
 */
export function within(root: string, error: unknown): unknown {
  if (!AppError.is(error) || error.code !== ValidationFailed.code || !Array.isArray(error.details)) return error
  const details = error.details as readonly Detail[]
  return invalid(
    details.map(({ path, message }) => ({ path: path === '' ? root : `${root}.${path}`, message })),
    error
  )
}

/** Why a write was refused: another server has taken over the directory that it lies in. `spec`: what that means for who asked. */
export class LeaseLost extends AppError {
  constructor(dir: string, spec: ErrorSpec = PersistenceFailed) {
    super(spec, { message: `${basename(dir)} was taken over by another server` })
  }
}

/** Every mistake a pack or a deployment can make, by its code. Rows are added here and nowhere else. */
const mistakes = {
  pack_twice: (name: string) => `there are two packs named '${name}'`,
  pack_unknown: (name: string) => `no pack named '${name}'`,
  pack_there: (name: string) => `another pack named '${name}' is there already; reload replaces it`,
  pack_malformed: (name: string, text: string) => `pack ${name} is not what definePack takes: ${text}`,
  argument_odd: (call: string, needed: string, given: string) => `${call} needs ${needed}, not ${given}`,
  pack_inactive: (name: string) => `pack ${name} is not active any more`,
  pack_leaving: () => 'the pack is being unloaded',
  packs_required: (failed: readonly string[]) => `required packs are not active: ${failed.join('; ')}`,
  config_rejected: (pack: string, text: string) => `bad deployment config for pack ${pack}: ${text}`,
  setup_late: (ms: number) => `setup took longer than ${ms} ms`,
  faults_many: (count: number, ms: number, last: string) =>
    `failed ${count} times within ${ms / 1000} s, which is the limit; last: ${last}`,
  exception_escaped: (text: string) => `an exception escaped from a callback: ${text}`,
  needs_cycle: (names: readonly string[]) => `needs form a cycle: ${names.join(' -> ')}`,
  service_undeclared: (pack: string, id: string) => `pack ${pack} provides '${id}' without declaring it`,
  service_twice: (pack: string, id: string) => `pack ${pack} provides '${id}' twice`,
  service_late: (pack: string, id: string) => `pack ${pack} provides '${id}' after its setup`,
  service_absent: (id: string) => `setup did not provide '${id}'`,
  service_clash: (id: string, pack: string, owner: string) => `service '${id}' of ${pack} clashes with ${owner}`,
  wire_clash: (text: string) => text,
  shape_name_bad: (name: string) => `'${name}' is no usable name of a shape: PascalCase, at most 64 characters, not Error and digits`,
  event_withdrawn: (type: string) => `event '${type}' was taken back by its pack`,
  slot_withdrawn: (name: string) => `the pack that owns slot '${name}' is not active`,
  callback_late: (ms: number) => `took longer than ${ms} ms and was given up`,
  owner_closed: () => 'the owner of this resource is closed',
  event_sessionless: (type: string) => `event '${type}' needs a session`,
  event_durable: (type: string) => `event '${type}' is durable, so it cannot be for one client only`,
  session_id_bad: (id: string) => `'${id}' is no session id`,
  store_id_bad: (id: string) => `not a usable id of a store: ${JSON.stringify(id.slice(0, 200))}`,
  store_namespace_bad: (namespace: string) => `not a usable namespace of a store: ${JSON.stringify(namespace)}`,
  store_name_bad: (name: string) => `not a usable name of a store: ${JSON.stringify(name)}`,
  store_key_bad: (key: string) => `not a usable key of a store: ${JSON.stringify(key.slice(0, 200))}`,
  store_value_bad: (store: string, where: string) => `store ${store}: value misses its schema${where}`,
  store_value_long: (what: string, bytes: number, most: number) => `${what} of ${bytes} bytes; at most ${most}`,
  journals_closed: () => 'the event journals are closed',
  connection_storeless: () => 'a connection has no place for stores',
  server_stopping: () => 'the server is stopping',
  not_listening: () => 'the server is not listening',
  route_unusable: (what: string, why: string) => `${what}: ${why}`,
  schema_unusable: (what: string, why: string) => `${what} ${why}`,
  handler_deaf: () => 'did not end when its signal was aborted, and was given up',
  answer_large: (most: number) => `the answer has more than ${most} values: answer page by page, or with a stream of bytes`,
  setup_threw: (what: string) => what,
  shape_missed: (what: string, details: readonly Detail[]) =>
    `${what} misses its schema: ${details.map(({ path, message }) => (path ? `${path}: ${message}` : message)).join('; ')}`,
  error_undeclared: (what: string, spec: ErrorSpec) => `${what} answered ${spec.name} (${spec.code}), which it does not declare`,
  file_irregular: (path: string) => `${path} is not a regular file`,
  file_oversized: (path: string, most: number) => `${path} is larger than ${most} bytes`,
  stream_gone: () => 'the stream of the answer was destroyed before its end',
  request_unanswered: () => 'the request was not answered',
  client_gone: () => 'the client is gone',
  // What the one who starts the server reads.
  home_unusable: (home: string, why: string) => `the home ${home} cannot be made: ${why}; choose another one with --home`,
  home_unlinkable: (home: string, code: string) =>
    `the file system of the home ${home} has no hard links (${code}), which locks are made of; choose another home with --home`,
  directory_irregular: (path: string) => `${path} is not a directory`,
  token_exposed: (path: string, mode: string) => `${path} can be read by other users (mode ${mode}); run: chmod 600 ${shellWord(path)}`,
  token_empty: (path: string) => `${path} is empty; remove it and start again`,
  ports_taken: (range: string, host: string) => `${range} taken on ${host}; choose another one with --port`
} as const

/**
 * A pack cannot run now and may later: what it runs on went away. It is Failed with this message, and set up again `again_ms` after that,
 * unless somebody switched it meanwhile. Thrown by `setup`, or given to `ctx.fail`.
 */
export class PassingFailure extends Error {
  override readonly name: string = 'PassingFailure'
  readonly again_ms: number

  constructor(message: string, again_ms: number, options?: ErrorOptions) {
    super(message, options)
    this.again_ms = again_ms
  }
}

export type DeveloperCode = keyof typeof mistakes

/** A mistake of whoever writes or deploys a pack; `code` tells which. Made by `developerError`. */
export class DeveloperError extends Error {
  readonly code: DeveloperCode

  constructor(code: DeveloperCode, message: string) {
    super(message)
    this.name = 'DeveloperError'
    this.code = code
  }
}

/** `developerError('service_twice', pack, id)`: the row of the table with its words filled in. */
export function developerError<C extends DeveloperCode>(code: C, ...words: Parameters<(typeof mistakes)[C]>): DeveloperError {
  const text = mistakes[code] as (...words: Parameters<(typeof mistakes)[C]>) => string // the union of rows forgets that code and words belong together
  return new DeveloperError(code, text(...words))
}
