/** Reads a multipart form whose file goes straight to its place while it arrives; nothing but short fields stays in memory. */
import type { EventEmitter } from 'node:events'
import type { Readable } from 'node:stream'
import type { BusboyInstance } from '@fastify/busboy'
import { AppError, invalid, PersistenceFailed, type RequestInfo } from '../../kernel/index.ts'

/** Of the form, without its file. */
const limits = { files: 1, parts: 1000, fieldNameSize: 200, fieldSize: 4096, headerPairs: 50, headerSize: 16 * 1024 }

export interface Form<T> {
  /** What `store` answered. */
  readonly stored: T
  /** As its part says, without directories; undefined where it says nothing. */
  readonly filename: string | undefined
  readonly media_type: string
  /** The fields that are asked for, also those behind the file. */
  readonly fields: ReadonlyMap<string, string>
}

/**
 * Resolves when the whole form has been read and its file stored. Throws 40001 when there is no file part, when the form breaks off or
 * has more than 1000 parts, or when a wanted field is too long; rejects with what `store` rejects with, and then leaves the rest of the body unread.
 */
export async function readForm<T>(
  request: RequestInfo,
  wanted: readonly string[],
  store: (file: Readable) => Promise<T>
): Promise<Form<T>> {
  const { stream: source } = request
  const busboy = await parserOf(request)
  const isTyped = typesOf(busboy)
  const fields = new Map<string, string>()
  let file:
    | { readonly part: Readable; readonly stored: Promise<T>; readonly filename: string | undefined; readonly media_type: string }
    | undefined
  let stop = () => {}
  try {
    await new Promise<void>((resolve, reject) => {
      const broken = () => reject(invalid([{ path: 'body', message: 'the form ended early' }]))
      const closed = () => {
        if (!source.readableEnded) broken()
      }
      stop = () => {
        source.unpipe(busboy)
        source.off('close', closed)
        source.off('error', broken)
      }
      busboy.on('file', (_field: string, part: Readable, filename: string | undefined, _encoding: string, type: string) => {
        part.on('error', () => undefined) // whoever stores it hears of it
        const stored = store(part)
        stored.catch(reject)
        file = { part, stored, filename, media_type: mediaType(isTyped() ? type : '') }
      })
      busboy.on('field', (field: string, value: string, _nameCut: boolean, cut: boolean) => {
        if (!wanted.includes(field)) return
        if (cut) reject(invalid([{ path: `body.${field}`, message: `is longer than ${limits.fieldSize} bytes` }]))
        fields.set(field, value)
      })
      busboy.on('partsLimit', () => reject(invalid([{ path: 'body', message: `has more than ${limits.parts} parts` }])))
      busboy.on('error', broken)
      busboy.on('finish', resolve)
      if (source.destroyed) return closed() // its 'close' may be over, and would be waited for in vain
      source.on('error', broken)
      source.on('close', closed)
      source.pipe(busboy)
    })
    if (!file) throw noFile()
    return { stored: await file.stored, filename: file.filename, media_type: file.media_type, fields }
  } catch (error) {
    file?.part.destroy(new Error('the form was given up'))
    await file?.stored.catch(() => undefined) // nothing of it is left on disk when the answer goes out
    throw error
  } finally {
    stop()
  }
}

const noFile = (message = 'a file part is required') => invalid([{ path: 'body.file', message }])

async function parserOf({ headers }: RequestInfo): Promise<BusboyInstance> {
  const type = headers['content-type'] ?? ''
  if (!/^multipart\/form-data\s*(;|$)/i.test(type)) throw noFile('a file part is required, in a multipart/form-data body')
  const { Busboy } = await import('@fastify/busboy')
  try {
    return new Busboy({ headers: { ...headers, 'content-type': type }, limits })
  } catch (cause) {
    throw invalid([{ path: 'body', message: 'the content type names no usable boundary' }], cause)
  }
}

/** Tells whether the part that comes in names its type: the library answers `text/plain` where it does not. */
function typesOf(busboy: BusboyInstance): () => boolean {
  const { parser } = (busboy as unknown as { readonly _parser: { readonly parser: EventEmitter } })._parser
  let typed = false
  parser.prependListener('part', (part: EventEmitter) => {
    part.on('header', (header: Readonly<Record<string, readonly string[]>>) => {
      typed = (header['content-type']?.[0] ?? '').trim() !== ''
    })
  })
  return () => typed
}

/** Type and subtype in lower case; what is none counts as bytes. */
function mediaType(given: string): string {
  const type = given.trim().toLowerCase()
  return type.length <= 200 && /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+$/.test(type) ? type : 'application/octet-stream'
}

/** Failures of the disk answer HTTP 500 here. */
export async function onDisk<T>(spec: AppError['spec'], work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (AppError.is(error) && error.code === PersistenceFailed.code) throw new AppError(spec, { message: error.message, cause: error })
    throw error
  }
}
