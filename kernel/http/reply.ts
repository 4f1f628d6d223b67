/** What a request is answered: bytes, or the envelope and its HTTP status (contract 1, Response envelope); and the end of a body that nobody read. */
import type { IncomingMessage, ServerResponse } from 'node:http'
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

/** JSON text of a success; `code` is 0 unless the route has its own success code. Undefined fields are dropped, undefined data is null. */
export function successText(data: unknown, request_id: string, code = 0): string {
  return JSON.stringify({ code, msg: 'success', data: data === undefined ? null : data, request_id })
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

/** Time within which an unread body that fits must have arrived, ms. */
const bodyMs = 300_000
/** How much of an unwanted body is swallowed, and how long, so that the client gets to read the reply before the connection ends. */
const lingerBytes = 16 * 1_048_576
const lingerMs = 2_000

/**
 * Sends the reply and takes care of a body that nobody read: a small one is swallowed and the connection lives on; otherwise the
 * connection closes after the client had time to read the reply.
 */
export function finish(req: IncomingMessage, res: ServerResponse, status: number, text: string, limit: number): void {
  const { 'content-length': announced, 'transfer-encoding': chunked } = req.headers
  if (req.complete || (chunked === undefined && Number(announced ?? 0) === 0)) {
    sendJson(res, status, text)
    return
  }
  const length = Number(announced ?? Number.POSITIVE_INFINITY)
  const keep = length <= limit
  if (!keep) res.setHeader('connection', 'close')
  let taken = 0
  const done = () => {
    clearTimeout(timer)
    req.off('data', count)
    if (keep) return
    res.end()
  }
  const count = (chunk: Buffer) => {
    taken += chunk.length
    if (taken > lingerBytes) done()
  }
  const timer = setTimeout(() => (keep ? req.destroy() : done()), keep ? bodyMs : lingerMs)
  timer.unref()
  req.on('error', () => undefined) // 'close' follows
  req.once('close', done)
  req.once('end', done)
  req.on('data', count)
  sendJson(res, status, text, keep)
}

/** Writes one JSON reply with its length. The connection layer drops the body of a HEAD. */
function sendJson(res: ServerResponse, status: number, text: string, end = true): void {
  res.writeHead(status, { 'content-type': 'application/json; charset=utf-8', 'content-length': Buffer.byteLength(text) })
  if (end) res.end(text)
  else res.write(text)
}
