/** Byte replies: files with ranges and ETags, streams. */
import type { Readable } from 'node:stream'

const brand = Symbol.for('svc-code.BinaryReply')

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
