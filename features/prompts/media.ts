/** Media that users give beside a text: uploads, and media of messages of the session. */
import { AppError, lookAt } from '../../kernel/index.ts'
import { FileMissing } from '../files/index.ts'
import type { Histories, WirePart } from '../history/index.ts'
import type { AgentHost, Session } from '../sessions/index.ts'
import type { PromptMedia } from './service.ts'

export interface MediaPorts {
  readonly histories: Histories
  /** Undefined while no pack takes uploads. */
  readonly media: () => PromptMedia | undefined
}

/**
 * Looks at uploads and images before anything else is looked at. Throws FileMissing, or 40001 (details below `field`) for an image that does not
 * fit.
 */
export async function checkUploads(content: readonly WirePart[], ports: Pick<MediaPorts, 'media'>, field = 'body.content'): Promise<void> {
  const media = ports.media()
  const [upload] = references(content, 'file')
  if (upload !== undefined && !media) throw missing(upload)
  await media?.check(content, field)
}

/** Makes what the content refers to media of the agent: on disk when it resolves. Returns the content to record. Throws FileMissing. */
export async function commitMedia(agent: AgentHost, content: readonly WirePart[], ports: MediaPorts): Promise<readonly WirePart[]> {
  const again = await withMessageMedia(agent, content, ports)
  return (await ports.media()?.commit(agent, again)) ?? again
}

const missing = (file_id: string) => new AppError(FileMissing, { message: `file not found: ${file_id}` })

/** Media that messages of the session refer to. Throws FileMissing for what is none, or of another kind than the part says. */
export async function checkMessageMedia(session: Session, content: readonly WirePart[], { histories }: MediaPorts): Promise<void> {
  for (const part of content) {
    const [id] = references([part], 'session_media')
    if (id === undefined) continue
    const medium = await histories.medium(session, id)
    if (!medium?.media_type.startsWith(`${part.type}/`)) throw missing(id)
  }
}

/** Media of messages of this session are given again by their id; the agent that gets them keeps them as its own. */
async function withMessageMedia(agent: AgentHost, content: readonly WirePart[], { histories }: MediaPorts): Promise<readonly WirePart[]> {
  const parts: WirePart[] = []
  for (const part of content) {
    const [id] = references([part], 'session_media')
    if (id === undefined) {
      parts.push(part)
      continue
    }
    const medium = await histories.medium(agent.session, id)
    if (!medium) throw missing(id)
    const { attachment, media_type } = medium
    if (attachment) {
      const { file, shown, size: _size, ...facts } = attachment
      const given = { ...facts, source: file, ...(shown && { shown: { media_type: shown.media_type, data: shown.file } }) }
      await histories.attach(agent, given).catch(async (error: unknown) => {
        throw (await lookAt(file)) ? error : missing(id)
      })
      parts.push({ ...part, source: { kind: 'session_media', file_id: id, media_type } })
    } else parts.push({ ...part, source: { kind: 'base64', media_type, data: (await medium.read()).toString('base64') } })
  }
  return parts
}

/** Ids that the parts refer to in one way: uploads (`file`), or media of the session. */
function references(content: readonly WirePart[], kind: 'file' | 'session_media'): string[] {
  return content.flatMap(part => {
    if (part.type === 'file') return kind === 'file' ? [String(part.file_id)] : []
    const source = part.source as { readonly kind?: string; readonly file_id?: string } | undefined
    return source?.kind === kind ? [String(source.file_id)] : []
  })
}
