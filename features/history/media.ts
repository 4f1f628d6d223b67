/**
 * Media inside messages. What is larger than 4 KB lies in a file beside the journal, named by its content, and the record refers to it: the
 * file is on disk first, then the record. Whoever needs the bytes reads them from there.
 */
import { webcrypto } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { BlobMissing, type BlobStore, defineStore, type Logger, Type } from '../../kernel/index.ts'
import type { Session } from '../sessions/index.ts'
import { type Attachments, AttachmentsSlot, attachmentOf, fileNotice, isAttachmentId } from './attachments.ts'
import type { HistoryRecord } from './define.ts'
import type { SessionMedium, Takes } from './service.ts'
import type { WirePart } from './types.ts'

/** `agents/<id>/blobs/<SHA-256 of the bytes>` */
export const blobStore = defineStore({ name: 'blobs', kind: 'blob', value: Type.Unknown() })
const blobOf = (id: string): string => `blobs/${id}`

/** Smaller media stay in the record, bytes. */
const keepAbove = 4096
/** Base64 that is kept in memory for the next request, UTF-16 units of all agents together. */
const cacheChars = 50 * 1024 * 1024

/** How a part refers to its medium: inline, or as media of the session whose id is the SHA-256 of the bytes. */
interface Source {
  readonly kind?: unknown
  readonly media_type?: unknown
  readonly data?: unknown
  readonly file_id?: unknown
}
const sourceOf = (part: WirePart): Source | undefined =>
  part.type === 'image' || part.type === 'video' ? ((part.source ?? undefined) as Source | undefined) : undefined
const isDigest = (id: unknown): id is string => typeof id === 'string' && /^[0-9a-f]{64}$/.test(id)
const isKept = (source: Source | undefined): source is Source & { readonly file_id: string } =>
  source?.kind === 'session_media' && isDigest(source.file_id)

/** Base64 by digest; what was read least recently goes first. */
export class MediaCache {
  readonly #texts = new Map<string, string>()
  readonly #limit: number
  #chars = 0

  constructor(limit = cacheChars) {
    this.#limit = limit
  }

  async get(id: string, read: () => Promise<string>): Promise<string> {
    const text = this.#texts.get(id) ?? (await read())
    if (this.#texts.delete(id)) this.#chars -= text.length
    if (text.length > this.#limit) return text
    this.#texts.set(id, text)
    this.#chars += text.length
    for (const [oldest, { length }] of this.#texts) {
      if (this.#chars <= this.#limit) break
      this.#texts.delete(oldest)
      this.#chars -= length
    }
    return text
  }
}

/** The media of one agent. */
export class Media {
  readonly #blobs: BlobStore
  readonly #cache: MediaCache
  readonly #log: Pick<Logger, 'error'>
  readonly #attachments: Pick<Attachments, 'find'> | undefined

  constructor(blobs: BlobStore, cache: MediaCache, log: Pick<Logger, 'error'>, attachments?: Pick<Attachments, 'find'>) {
    this.#blobs = blobs
    this.#cache = cache
    this.#log = log
    this.#attachments = attachments
  }

  /** The records, with large media in files; these are on disk when it resolves. Rejects when the disk refuses. */
  async keep<R extends HistoryRecord>(records: readonly R[]): Promise<R[]> {
    const kept: R[] = []
    for (const record of records) kept.push(await this.#kept(record))
    return kept
  }

  /** Content with its media inline. A text stands for a file that cannot be read. */
  async inline(content: readonly WirePart[]): Promise<readonly WirePart[]> {
    const parts: WirePart[] = []
    for (const part of content) parts.push(await this.#inlined(part))
    return parts
  }

  /** What a model that takes these kinds gets of a part whose bytes lie in a file. */
  async forModel(part: WirePart, takes: Takes): Promise<readonly WirePart[]> {
    const id = attachmentOf(part)
    if (id === undefined) return [await this.#inlined(part)]
    const attachment = await this.#attachments?.find(id)
    if (!attachment) return [missing(part)]
    const { file, media_type, name, note, unfit, size, shown = { file, media_type } } = attachment
    const told = note === undefined ? [] : [text(`<system>${note} The file is ${file}.</system>`)]
    const seen = part.type === 'image' ? takes.images : part.type === 'video' && takes.videos && size <= inlineVideoBytes
    if (part.type === 'file') return [text(fileNotice(attachment))]
    if (unfit) return told
    if (!seen)
      return [
        text(
          `[${part.type} "${name}": this model cannot see ${part.type === 'video' && takes.videos ? 'videos above 20 MiB' : `${part.type}s`}; the file is ${file}]`
        )
      ]
    try {
      const data = await this.#cache.get(shown.file, async () => (await readFile(shown.file)).toString('base64'))
      const where = part.type === 'video' ? [text(`Video "${name}": ${file}`)] : []
      return [...where, { ...part, source: { kind: 'base64', media_type: shown.media_type, data } }, ...told]
    } catch (err) {
      this.#log.error({ err, file_id: id }, 'a medium of a message could not be read')
      return [missing(part)]
    }
  }

  async #kept<R extends HistoryRecord>(record: R): Promise<R> {
    const { content, messages } = record as { readonly content?: unknown; readonly messages?: unknown }
    if (Array.isArray(content)) return { ...record, content: await this.#keptParts(content as WirePart[]) }
    return Array.isArray(messages) ? { ...record, messages: await this.keep(messages as HistoryRecord[]) } : record
  }

  async #keptParts(content: readonly WirePart[]): Promise<WirePart[]> {
    const parts: WirePart[] = []
    for (const part of content) {
      const bytes = isLarge(part) ? bytesOf(part) : undefined
      if (!bytes) parts.push(part)
      else {
        const file_id = Buffer.from(await webcrypto.subtle.digest('SHA-256', bytes)).toString('hex')
        if ((await this.#blobs.stat(blobOf(file_id)))?.size !== bytes.length) await this.#blobs.put(blobOf(file_id), bytes)
        const { data, media_type } = sourceOf(part) ?? {}
        await this.#cache.get(file_id, async () => String(data)) // the model is asked about it next
        parts.push({ ...part, source: { kind: 'session_media', file_id, media_type } })
      }
    }
    return parts
  }

  async #inlined(part: WirePart): Promise<WirePart> {
    const source = sourceOf(part)
    if (!isKept(source)) return part
    try {
      const data = await this.#cache.get(source.file_id, async () => (await readAll(this.#blobs, source.file_id)).toString('base64'))
      return { ...part, source: { kind: 'base64', media_type: source.media_type, data } }
    } catch (err) {
      if (!(err instanceof BlobMissing)) this.#log.error({ err, file_id: source.file_id }, 'a medium of a message could not be read')
      return missing(part)
    }
  }
}

const text = (content: string): WirePart => ({ type: 'text', text: content })
const missing = (part: WirePart): WirePart => text(`[${part.type}: its file is missing]`)

/** Larger ones are in no request: the model is told where they are. */
const inlineVideoBytes = 20 * 1024 * 1024

/** Whether `keep` may have something to do. */
export function hasLargeMedia(records: readonly HistoryRecord[]): boolean {
  return records.some(({ content, messages }) =>
    Array.isArray(content) ? content.some(part => isLarge(part as WirePart)) : Array.isArray(messages) && hasLargeMedia(messages)
  )
}

/** Whether the bytes of a part lie in a file: what the model gets of it, `forModel` says. */
export const isElsewhere = (part: WirePart): boolean => isKept(sourceOf(part)) || attachmentOf(part) !== undefined

/** Whether something of the content is shown inline and lies in a file. */
export const hasKeptMedia = (content: readonly WirePart[]): boolean => content.some(part => isKept(sourceOf(part)))

function isLarge(part: WirePart): boolean {
  const source = sourceOf(part)
  return source?.kind === 'base64' && typeof source.data === 'string' && source.data.length > keepAbove
}

/** The bytes of a large medium; undefined also where base64 would not come back letter by letter. */
function bytesOf(part: WirePart): Buffer<ArrayBuffer> | undefined {
  const data = String(sourceOf(part)?.data)
  const bytes = Buffer.from(data, 'base64')
  return bytes.length > keepAbove && bytes.toString('base64') === data ? bytes : undefined
}

async function readAll(blobs: BlobStore, id: string, range?: { readonly start: number; readonly end: number }): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of await blobs.open(blobOf(id), range)) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

/** A medium that records of a session refer to, in the directory of whichever of its agents. */
export async function findMedium(session: Session, file_id: string): Promise<SessionMedium | undefined> {
  if (isAttachmentId(file_id)) return await findAttachment(session, file_id)
  if (!isDigest(file_id)) return undefined
  for (const agent of session.agents()) {
    const blobs = agent.store(blobStore)
    const info = await blobs.stat(blobOf(file_id))
    if (!info) continue
    const media_type = mediaType(await readAll(blobs, file_id, { start: 0, end: 15 }))
    return { file: join(agent.dir, blobOf(file_id)), size: info.size, media_type, read: () => readAll(blobs, file_id) }
  }
  return undefined
}

async function findAttachment(session: Session, file_id: string): Promise<SessionMedium | undefined> {
  for (const agent of session.agents()) {
    const attachment = await agent.get(AttachmentsSlot).find(file_id)
    if (!attachment) continue
    const { file, size, media_type } = attachment
    return { file, size, media_type, attachment, read: () => readFile(file) }
  }
  return undefined
}

/** By the first bytes; nobody else's word makes a browser take a file for a page. */
function mediaType(head: Buffer): string {
  const text = head.toString('latin1')
  if (text.startsWith('\x89PNG')) return 'image/png'
  if (text.startsWith('\xff\xd8\xff')) return 'image/jpeg'
  if (text.startsWith('GIF8')) return 'image/gif'
  if (text.startsWith('RIFF') && text.startsWith('WEBP', 8)) return 'image/webp'
  if (text.startsWith('ftyp', 4)) return 'video/mp4'
  return text.startsWith('\x1a\x45\xdf\xa3') ? 'video/webm' : 'application/octet-stream'
}
