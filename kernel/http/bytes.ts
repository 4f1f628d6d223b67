/** Byte replies: files with single ranges and ETags, streams with back-pressure, and an end when the client goes away. */
import { once } from 'node:events'
import { type FileHandle, open } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { developerError } from '../errors.ts'
import { forReading } from '../storage/files.ts'

const brand = Symbol.for('kernel.BinaryReply')

/** Files up to this size are read before anything is sent. */
const WHOLE_BYTES = 64 * 1024

/** Without a word a cache takes a file with a date for fresh for a tenth of its age. */
const askFirst = 'private, no-cache'

export interface FileReply {
  /** Absolute path, already checked by the route. */
  readonly file: string
  /** Opens the file in place of the path, for one that could be swapped since it was checked; the reply closes it. */
  readonly open?: () => Promise<FileHandle>
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

/** Ends the answer, with its last bytes. */
type End = (last?: Buffer) => void

/**
 * Streams the reply and resolves to the HTTP status that was sent. Rejects before the headers when the file or stream cannot be
 * read (the caller answers an envelope); later failures cut the connection and reject too.
 */
export function sendBinary(
  reply: FileReply | StreamReply,
  req: IncomingMessage,
  res: ServerResponse,
  signal: AbortSignal,
  end: End
): Promise<number> {
  return 'file' in reply ? sendFile(reply, req, res, signal, end) : sendStream(reply, req, res, signal, end)
}

async function sendFile(reply: FileReply, req: IncomingMessage, res: ServerResponse, signal: AbortSignal, end: End): Promise<number> {
  const file = await (reply.open ? reply.open() : open(reply.file, forReading))
  try {
    const stat = await file.stat()
    if (!stat.isFile()) throw developerError('file_irregular', reply.file)
    const etag = reply.etag ?? fileEtag(stat)
    const cached = {
      etag,
      'last-modified': stat.mtime.toUTCString(),
      'cache-control': reply.headers?.['cache-control'] ?? askFirst
    }
    if (reply.conditional !== false && etagMatches(req.headers['if-none-match'], etag)) {
      res.writeHead(304, cached)
      end()
      return 304
    }
    const headers = { ...cached, ...(await headersOf(reply, reply.type ?? 'application/octet-stream')) }
    const whole = stat.size <= WHOLE_BYTES ? await wholeOf(file, stat.size) : undefined
    if (whole === 'more') {
      res.writeHead(200, headers)
      if (req.method !== 'HEAD') await pipeline(file.createReadStream({ start: 0, autoClose: false }), res, { signal, end: false })
      end()
      return 200
    }
    const size = whole?.length ?? stat.size
    const range = rangeApplies(req, etag, stat.mtime) ? parseRange(req.headers.range, size) : undefined
    const { start, end: last } = range ?? { start: 0, end: size - 1 }
    const part = range && { 'content-range': `bytes ${start}-${last}/${size}` }
    const status = range ? 206 : 200
    res.writeHead(status, { ...headers, ...part, 'content-length': last - start + 1 })
    if (req.method === 'HEAD') end()
    else if (whole) end(whole.subarray(start, last + 1))
    else if (await sentBytes(file, { start, end: last }, res, signal)) end()
    else res.destroy()
    return status
  } finally {
    await file.close()
  }
}

/**
 * All of a small file: what the system makes up as it is read (/proc, /sys) says a size that is not its own, and what is written anew meanwhile has
 * another one soon. `more`: there is more than it says, and only its end tells how much.
 */
async function wholeOf(file: FileHandle, said: number): Promise<Buffer | 'more'> {
  const bytes = Buffer.allocUnsafe((said || WHOLE_BYTES) + 1)
  let filled = 0
  while (filled < bytes.length) {
    const { bytesRead } = await file.read(bytes, filled, bytes.length - filled, filled)
    if (bytesRead === 0) return bytes.subarray(0, filled)
    filled += bytesRead
  }
  return 'more'
}

/** False for a file that shrank meanwhile and cannot fill the announced length: only a cut connection says so. */
async function sentBytes(file: FileHandle, range: Range, res: ServerResponse, signal: AbortSignal): Promise<boolean> {
  const source = file.createReadStream({ ...range, autoClose: false, highWaterMark: 256 * 1024 })
  await pipeline(source, res, { signal, end: false })
  return source.bytesRead > range.end - range.start
}

async function sendStream(reply: StreamReply, req: IncomingMessage, res: ServerResponse, signal: AbortSignal, end: End): Promise<number> {
  const { stream, size } = reply
  try {
    await firstByte(stream, signal)
    const headers = { 'cache-control': 'no-store', ...(await headersOf(reply, reply.type)) }
    if (stream.errored) throw stream.errored
    // Such a stream says nothing any more, not even that it is over.
    if (stream.destroyed && !stream.readableEnded) throw developerError('stream_gone')
    res.writeHead(200, size === undefined ? headers : { ...headers, 'content-length': size })
  } catch (error) {
    stream.destroy()
    throw error
  }
  if (req.method === 'HEAD') stream.destroy()
  else await pipeline(stream, res, { signal, end: false })
  end()
  return 200
}

/** Waits until the stream has something to say, or nothing any more, so that an early failure can still become an envelope. */
async function firstByte(stream: Readable, signal: AbortSignal): Promise<void> {
  if (stream.readableLength > 0 || stream.readableEnded || stream.destroyed || stream.errored) return
  await Promise.race([once(stream, 'readable', { signal }), once(stream, 'close', { signal })])
}

/** What the reply says of itself; those that it names win. */
async function headersOf({ filename, disposition, headers = {} }: FileReply | StreamReply, type: string): Promise<Record<string, string>> {
  const own: Record<string, string> = { 'content-type': type }
  if (filename !== undefined || disposition !== undefined) {
    const { create } = await import('content-disposition')
    // RFC 6266: a name that is not plain ASCII is there twice, readable and exact (RFC 8187), which half a surrogate pair cannot be.
    const value = create(filename?.replace(/\p{Surrogate}/gu, '\ufffd'), { type: disposition ?? 'attachment' })
    own['content-disposition'] = value.replace(/filename=([^";]+)/, 'filename="$1"') // many clients look for the quotes alone
  }
  for (const [name, value] of Object.entries(headers)) own[name.toLowerCase()] = value
  return own
}

interface Range {
  readonly start: number
  /** Inclusive. */
  readonly end: number
}

/** `<mtime ms>-<size>-<inode>`, each in base 36. */
export function fileEtag(stat: { readonly mtimeMs: number; readonly size: number; readonly ino: number }): string {
  return `${base36(Math.floor(stat.mtimeMs))}-${base36(stat.size)}-${base36(stat.ino)}`
}

/** Above what fits 32 bits a number takes ten times as long in one piece. */
const piece = 36 ** 5
const base36 = (n: number): string =>
  n < piece ? n.toString(36) : base36(Math.floor(n / piece)) + (n % piece).toString(36).padStart(5, '0')

/** One satisfiable range; undefined (send everything) for malformed, several, reversed or unsatisfiable ones: never a 416. */
export function parseRange(header: string | undefined, size: number): Range | undefined {
  const match = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i.exec(header ?? '')
  if (!match || size === 0) return undefined
  const [, from, to] = match
  if (from === '') {
    const length = Number(to)
    return to === '' || length === 0 ? undefined : { start: Math.max(0, size - length), end: size - 1 }
  }
  const start = Number(from)
  const end = to === '' ? size - 1 : Math.min(Number(to), size - 1)
  return start >= size || start > end ? undefined : { start, end }
}

/** If-Range (RFC 9110 §13.1.5): a range of another version of the file would be a mixture, so weak tags fit none. HEAD takes no ranges. */
function rangeApplies(req: IncomingMessage, etag: string, modified: Date): boolean {
  if (req.method !== 'GET') return false
  const condition = req.headers['if-range']
  return condition === undefined || typeof condition !== 'string' || bare(condition) === bare(etag) || condition === modified.toUTCString()
}

/** Exact text as sent, the quoted form, a list of them, or `*`. */
export function etagMatches(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false
  if (header === etag || header.trim() === '*') return true
  return header.split(',').some(entry => bare(entry.trim().replace(/^W\//, '')) === bare(etag))
}

/** A tag without its quotes. */
const bare = (tag: string): string => tag.trim().replace(/^"(.*)"$/, '$1')
