/** Media of prompts: uploads become media of the agent that gets them, and images that models do not take as they are get another form. */
import { open, readFile } from 'node:fs/promises'
import { AppError, invalid } from '../../kernel/index.ts'
import { FileMissing, type Upload, type Uploads } from '../files/index.ts'
import type { Histories, NewAttachment, WirePart } from '../history/index.ts'
import type { PromptMedia } from '../prompts/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import { fullBytes } from './contract.ts'
import { imageHeader, measured, mediaTypeOf, shownTypes } from './image-header.ts'
import { type Bounds, decodedBytes, fits, ImageProblem, type Recoder } from './recode.ts'

/** Where the size of an image stands, whatever metadata comes before. */
const headBytes = 512 * 1024

export interface PromptMediaParts {
  readonly histories: Histories
  readonly uploads: () => Uploads | undefined
  readonly recoder: Recoder
  /** Longest edge of images, pixels. */
  readonly edge: () => number
  readonly newId: () => string
}

interface Source {
  readonly kind?: string
  readonly file_id?: string
  readonly media_type?: string
  readonly data?: string
  readonly url?: string
}

/** Where a part comes from; what stands in its address comes inline. */
function sourceOf(part: WirePart): Source {
  const source = (part.source ?? {}) as Source
  if (source.kind !== 'url' || !source.url?.startsWith('data:')) return source
  const [, head = '', rest = ''] = /^data:([^,]*),(.*)$/s.exec(source.url) ?? []
  const [media_type = '', ...marks] = head.split(';')
  const text = decoded(rest)
  if (marks.at(-1)?.trim().toLowerCase() === 'base64') return { kind: 'base64', media_type, data: text }
  return { kind: 'base64', media_type, data: Buffer.from(text, 'utf8').toString('base64') }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text // percent signs that mean nothing stand for themselves
  }
}

/** How an image becomes a medium. */
type Form = Pick<NewAttachment, 'media_type' | 'shown' | 'note' | 'unfit'>

/** Of addresses that some provider reads. */
const schemes = ['https:', 'http:', 'gs:']

/** Also in the alphabet of URLs, without padding, over several lines. */
const base64 = /^[\w+/\-\s]+={0,2}$/

/** Throws 40001 for what no model could look at: it would be sent with every later request of the session. */
function checkSource(part: WirePart, path: string): void {
  const { kind, data = '', url = '' } = sourceOf(part)
  const where = (part.source as Source | undefined)?.kind === 'url' ? 'url' : 'data'
  if (kind === 'base64' && !base64.test(data.trim())) throw invalid([{ path: `${path}.${where}`, message: 'expected base64' }])
  if (kind === 'url' && !(URL.canParse(url) && schemes.includes(new URL(url).protocol)))
    throw invalid([{ path: `${path}.url`, message: 'expected an address on the network, or a data URL' }])
}

/** As models read it. */
const plain = (source: Source): Source => ({ ...source, data: Buffer.from(source.data ?? '', 'base64').toString('base64') })

const isShown = (type: string): boolean => (shownTypes as readonly string[]).includes(type)

export function promptMedia({ histories, uploads, recoder, edge, newId }: PromptMediaParts): PromptMedia {
  const bounds = (): Bounds => ({ edge: edge(), bytes: fullBytes })
  const find = async (file_id: string): Promise<Upload> => {
    const upload = await uploads()?.find(file_id)
    if (!upload) throw new AppError(FileMissing, { message: `file not found: ${file_id}` })
    return upload
  }

  /** Throws 40001 when an image is too large as it is, and nothing can be done about it. */
  const checkSize = (head: Buffer, declared: string, size: number, path: string) => {
    if (!isShown(mediaTypeOf(head) ?? declared) || fits(imageHeader(head), size, bounds())) return
    if (size <= decodedBytes && recoder.isAble()) return
    const why = size > decodedBytes ? 'images above 64 MiB are not decoded' : 'the optional package sharp is not installed'
    const most = `at most ${bounds().edge} px an edge and ${fullBytes} bytes`
    throw invalid([
      { path, message: `the image is too large (${measured(imageHeader(head), size)}; ${most}) and cannot be made smaller: ${why}` }
    ])
  }

  const formOf = async (bytes: Buffer, declared: string): Promise<Form> => {
    const media_type = mediaTypeOf(bytes.subarray(0, headBytes)) ?? declared
    if (!isShown(media_type)) {
      return {
        media_type,
        unfit: true,
        note: `An image in a format that models do not take (${media_type}); convert it to PNG or JPEG to look at it.`
      }
    }
    const header = imageHeader(bytes)
    if (fits(header, bytes.length, bounds())) return { media_type }
    try {
      const { data, original, ...shown } = await recoder.shrink(bytes, bounds())
      const note = `The image above was made smaller: ${measured(original, bytes.length)} became ${measured(shown, data.length)}.`
      return { media_type, shown: { data, media_type: shown.media_type }, note }
    } catch (error) {
      if (!(error instanceof ImageProblem)) throw error
      return { media_type, unfit: true, note: `An image that cannot be shown: ${error.message}.` }
    }
  }

  /** Work on an upload: one that is deleted meanwhile is missing, whatever the disk calls it. */
  const present = async <T>(id: string, work: () => Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (error) {
      await find(id)
      throw error
    }
  }

  const commitUpload = async (agent: AgentHost, part: WirePart): Promise<WirePart> => {
    const { id, name, size, file, media_type: declared } = await find(String(part.file_id ?? sourceOf(part).file_id))
    return await present(id, async () => {
      const form =
        part.type === 'image'
          ? await formOf(await readFile(file), declared)
          : { media_type: (part.type === 'video' ? mediaTypeOf(await readHead(file)) : undefined) ?? declared }
      const { media_type } = await histories.attach(agent, { file_id: id, name, source: file, ...form })
      if (part.type === 'file') return { type: 'file', file_id: id, name, media_type, size }
      return { ...part, source: { kind: 'session_media', file_id: id, media_type } }
    })
  }

  const commitInline = async (agent: AgentHost, part: WirePart): Promise<WirePart> => {
    const { data = '', media_type: declared = '' } = sourceOf(part)
    const bytes = Buffer.from(data, 'base64')
    const form = await formOf(bytes, declared)
    const { media_type } = form
    if (!form.shown && !form.unfit) return { ...part, source: { kind: 'base64', media_type, data: bytes.toString('base64') } }
    const file_id = `f_${newId()}`
    await histories.attach(agent, { file_id, name: `image.${/\/(\w+)/.exec(media_type)?.[1] ?? 'bin'}`, source: bytes, ...form })
    return { ...part, source: { kind: 'session_media', file_id, media_type } }
  }

  return {
    async check(content, field) {
      for (const [at, part] of content.entries()) {
        const { kind, file_id = '', data = '', media_type = '' } = sourceOf(part)
        const path = `${field}.${at}`
        checkSource(part, `${path}.source`)
        if (part.type === 'file') await find(String(part.file_id))
        else if (kind === 'file') {
          const upload = await find(file_id)
          const head = await present(file_id, () => readHead(upload.file))
          const type = mediaTypeOf(head) ?? upload.media_type
          if (!type.startsWith(`${part.type}/`))
            throw new AppError(FileMissing, { message: `file ${file_id} is no ${part.type} but ${type}` })
          if (part.type === 'image') checkSize(head, type, upload.size, path)
        } else if (kind === 'base64' && part.type === 'image') {
          const bytes = Buffer.from(data, 'base64')
          checkSize(bytes.subarray(0, headBytes), media_type, bytes.length, path)
        }
      }
    },

    async commit(agent, content) {
      const parts: WirePart[] = []
      for (const part of content) {
        const { kind } = sourceOf(part)
        if (part.type === 'file' || kind === 'file') parts.push(await commitUpload(agent, part))
        else if (kind !== 'base64') parts.push(part)
        else parts.push(part.type === 'image' ? await commitInline(agent, part) : { ...part, source: plain(sourceOf(part)) })
      }
      return parts
    }
  }
}

/** The beginning of a file. */
async function readHead(file: string): Promise<Buffer> {
  const handle = await open(file, 'r')
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(headBytes), 0, headBytes, 0)
    return buffer.subarray(0, bytesRead)
  } finally {
    await handle.close()
  }
}
