/** What opened a turn, or came into it: its origin, text and attachments as a transcript shows them. Pure. */
import { isUserInput, type Origin, type WirePart } from '../history/index.ts'
import type { Attachment, TurnOrigin } from './shapes.ts'

export function originOf(origin: Origin): TurnOrigin {
  const payload = { ...origin }
  switch (origin.kind) {
    case 'user':
    case 'shell_command':
      return { kind: 'user', payload }
    case 'cron_job':
    case 'cron_missed':
      return { kind: 'cron', ...(typeof origin.jobId === 'string' ? { taskId: origin.jobId } : {}), payload }
    case 'task':
    case 'background_task':
      return typeof origin.taskId === 'string' ? { kind: 'task', taskId: origin.taskId, payload } : { kind: 'other', payload }
    case 'hook_result':
      return { kind: 'hook', payload }
    case 'compaction_summary':
      return { kind: 'compaction', payload }
    default:
      return { kind: 'other', payload }
  }
}

const isCron = ({ kind }: Origin): boolean => kind === 'cron_job' || kind === 'cron_missed'

/** Whether what opened the turn is shown as its prompt: what the user wrote or called, and scheduled prompts. */
export const isShownInput = (origin: Origin): boolean => isUserInput(origin) || origin.kind === 'shell_command' || isCron(origin)

/** Whether a message inside a turn is shown there. */
export const isShownInside = (origin: Origin | undefined): boolean =>
  origin === undefined || isShownInput(origin) || origin.kind === 'task' || origin.kind === 'background_task'

/** Media and files of an input, without their bytes. `whose`: before the numbers of the ids. */
export function attachmentsOf(content: readonly WirePart[], whose: string): Attachment[] {
  return content
    .flatMap((part): Omit<Attachment, 'attachmentId'>[] => {
      if (part.type === 'file') {
        const { file_id, name, media_type, size } = part
        const source = { kind: 'session_media' as const, fileId: String(file_id) }
        return [{ mediaType: String(media_type), name: String(name), size: Number(size), source }]
      }
      if (part.type !== 'image' && part.type !== 'video') return []
      const source = (part.source ?? {}) as Readonly<Record<string, unknown>>
      const mediaType = typeof source.media_type === 'string' ? source.media_type : `${part.type}/*`
      if (source.kind === 'url' && typeof source.url === 'string' && !source.url.startsWith('data:')) {
        return [{ mediaType, source: { kind: 'url', url: source.url } }]
      }
      const fileId = source.file_id
      if ((source.kind !== 'session_media' && source.kind !== 'file') || typeof fileId !== 'string') return [{ mediaType }]
      return [{ mediaType, source: { kind: source.kind, fileId } }]
    })
    .map((facts, at) => ({ attachmentId: `${whose}.att${at + 1}`, ...facts }))
}

/** Content without inline bytes: a word stands for the medium. */
export function withoutBytes(content: readonly WirePart[]): WirePart[] {
  return content.map(part => {
    const source = part.source as { readonly kind?: unknown; readonly url?: unknown } | undefined
    const inline = source?.kind === 'base64' || (source?.kind === 'url' && String(source.url).startsWith('data:'))
    return inline ? { type: 'text', text: `[${part.type}]` } : part
  })
}
