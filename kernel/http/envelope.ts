/** The envelope of every JSON reply and the HTTP status rules (contract 1, Response envelope). */
import type { ServerResponse } from 'node:http'
import { AppError, InternalError, ValidationFailed } from '../errors.ts'
import { jsonText } from './json-text.ts'

export interface Envelope {
  readonly code: number
  readonly msg: string
  readonly data: unknown
  readonly request_id: string
  readonly details?: unknown
}

/** JSON text of a success; `code` is 0 unless the route has its own success code. Undefined fields are dropped, undefined data is null. */
export function successText(data: unknown, request_id: string, code = 0): string {
  return jsonText({ code, msg: 'success', data: data === undefined ? null : data, request_id })
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

/** Writes one JSON reply with its length. The connection layer drops the body of a HEAD. */
export function sendJson(res: ServerResponse, status: number, text: string, end = true): void {
  res.writeHead(status, { 'content-type': 'application/json; charset=utf-8', 'content-length': Buffer.byteLength(text) })
  if (end) res.end(text)
  else res.write(text)
}
