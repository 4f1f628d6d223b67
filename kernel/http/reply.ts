/** What a request is answered: bytes, or the envelope and its HTTP status (contract 1, Response envelope). */
import type { Readable } from 'node:stream'
import { AppError, InternalError, ValidationFailed } from '../errors.ts'

const brand = Symbol.for('kernel.BinaryReply')

export interface FileReply {
  /** Absolute path, already checked by the route. */
  readonly file: string
  readonly type?: string
  readonly filename?: string
  readonly disposition?: 'inline' | 'attachment'
  /** ETag as sent; default: derived from mtime, size and inode. */
  readonly etag?: string
  /** Honour If-None-Match (304); default true. */
  readonly conditional?: boolean
  readonly headers?: Readonly<Record<string, string>>
}

export interface StreamReply {
  readonly stream: Readable
  readonly type: string
  /** Bytes, when known. */
  readonly size?: number
  readonly filename?: string
  readonly disposition?: 'inline' | 'attachment'
  readonly headers?: Readonly<Record<string, string>>
}

export interface BinaryReply {
  readonly [brand]: true
  readonly reply: FileReply | StreamReply
}

/** Marks a handler's answer as bytes instead of an envelope. */
export function binary(reply: FileReply | StreamReply): BinaryReply {
  return { [brand]: true, reply }
}

export function isBinary(value: unknown): value is BinaryReply {
  return typeof value === 'object' && value !== null && brand in value
}

interface Envelope {
  readonly code: number
  readonly msg: string
  readonly data: unknown
  readonly request_id: string
  readonly details?: unknown
}

/** The envelope of a failure. Anything but an AppError becomes 50001 with a fixed text: no message, no stack. */
export function failure(error: unknown, request_id: string): { readonly status: number; readonly envelope: Envelope } {
  if (!AppError.is(error)) {
    return { status: InternalError.status, envelope: { code: InternalError.code, msg: InternalError.message, data: null, request_id } }
  }
  const { spec, data, message } = error
  // Every 40001 lists what was wrong, also when the thrower named no field (contract 1, Response envelope rule 3).
  const details = error.details ?? (spec.code === ValidationFailed.code ? [{ path: '', message }] : undefined)
  return {
    status: spec.status,
    envelope: { code: spec.code, msg: message, data: data ?? null, request_id, ...(details === undefined ? {} : { details }) }
  }
}
