/**
 * Uploads that became media of an agent: `agents/<id>/attachments/<file id>-<name>`, what is known of each in `<file id>.json`, and where
 * the model gets another form of an image, that in `<file id>.shown`. The facts come last: an attachment is whole or not there.
 */
import { createReadStream } from 'node:fs'
import { join } from 'node:path'
import { type BlobStore, type DocumentStore, defineSlot, defineStore, type Static, Type } from '../../kernel/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import type { Attachment, NewAttachment } from './service.ts'
import type { WirePart } from './types.ts'

const Facts = Type.Object({
  file_id: Type.String(),
  name: Type.String(),
  media_type: Type.String(),
  size: Type.Integer({ description: 'bytes' }),
  shown: Type.Optional(Type.String({ description: 'media type of the form that the model gets' })),
  note: Type.Optional(Type.String({ description: 'what the model is told beside it, or instead of it' })),
  unfit: Type.Optional(Type.Boolean({ description: 'no model gets the image; the note says why' }))
})
type Facts = Static<typeof Facts>

const attachmentFacts = defineStore({ name: 'attachments', kind: 'document', value: Facts })
const attachmentBytes = defineStore({ name: 'attachments', kind: 'blob', value: Type.Unknown() })
const dir = 'attachments'

/** Ids of uploads, which the ids of other media (digests) never look like. */
export const isAttachmentId = (id: unknown): id is string => typeof id === 'string' && /^f_[0-9A-HJKMNP-TV-Z]{26}$/.test(id)

/** Name of the file: begins with the id, ends as the upload does, and is safe in a shell. */
function attachmentName(file_id: string, name: string): string {
  const safe = name.replace(/[^A-Za-z0-9._-]+/g, '_').slice(-100)
  return `${file_id}-${safe}`
}

/** The attachments of one agent. */
export class Attachments {
  readonly #agent: Pick<AgentHost, 'dir' | 'store'>
  readonly #facts: DocumentStore<Facts>
  readonly #bytes: BlobStore
  readonly #known = new Map<string, Attachment>()

  constructor(agent: Pick<AgentHost, 'dir' | 'store'>) {
    this.#agent = agent
    this.#facts = agent.store(attachmentFacts)
    this.#bytes = agent.store(attachmentBytes)
  }

  async find(file_id: string): Promise<Attachment | undefined> {
    if (!isAttachmentId(file_id)) return undefined
    const known = this.#known.get(file_id)
    if (known) return known
    const facts = await this.#facts.get(`${dir}/${file_id}`)
    return facts && this.#remember(facts)
  }

  /** On disk when it resolves; what is there already stays as it is. */
  async add({ file_id, name, media_type, source, shown, note, unfit }: NewAttachment): Promise<Attachment> {
    const there = await this.find(file_id)
    if (there) return there
    const { size } = await this.#bytes.put(`${dir}/${attachmentName(file_id, name)}`, bytesOf(source))
    if (shown) await this.#bytes.put(`${dir}/${file_id}.shown`, bytesOf(shown.data))
    const facts: Facts = {
      file_id,
      name,
      media_type,
      size,
      ...(shown ? { shown: shown.media_type } : {}),
      ...(note === undefined ? {} : { note }),
      ...(unfit ? { unfit } : {})
    }
    await this.#facts.put(`${dir}/${file_id}`, facts)
    return this.#remember(facts)
  }

  #remember({ shown, ...facts }: Facts): Attachment {
    const at = (name: string) => join(this.#agent.dir, dir, name)
    const attachment = {
      ...facts,
      file: at(attachmentName(facts.file_id, facts.name)),
      ...(shown === undefined ? {} : { shown: { file: at(`${facts.file_id}.shown`), media_type: shown } })
    }
    this.#known.set(facts.file_id, attachment)
    return attachment
  }
}

const bytesOf = (source: string | Uint8Array) =>
  typeof source === 'string' ? createReadStream(source, { highWaterMark: 256 * 1024 }) : source

export const AttachmentsSlot = defineSlot<Attachments, AgentHost>('attachments', agent => new Attachments(agent))

/** The upload that a part of a message refers to. */
export function attachmentOf(part: WirePart): string | undefined {
  if (part.type === 'file') return isAttachmentId(part.file_id) ? part.file_id : undefined
  const source = part.source as { readonly kind?: unknown; readonly file_id?: unknown } | undefined
  return source?.kind === 'session_media' && isAttachmentId(source.file_id) ? source.file_id : undefined
}

/** How the model is told of a file that it does not get to see. */
export function fileNotice({ name, media_type, size, file }: Attachment): string {
  return `Attached file "${name}" (${media_type}, ${size} bytes): ${file} - open it with the Read tool, or with a command if it is no text`
}
