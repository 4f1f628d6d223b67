/** Wires messages and the media in them. */
import { AppError, binary, definePack, invalid } from '../../kernel/index.ts'
import { passive, Uploads } from '../files/index.ts'
import { Histories, type History, type HistoryMessage } from '../history/index.ts'
import { Sessions } from '../sessions/index.ts'
import { listMessages, MediaSessionMissing, MediumMissing, MessageMissing, type MessageObject, readMedia, readMessage } from './contract.ts'
import { Messages } from './service.ts'
import { messageObject, startingMessage } from './view.ts'

export default definePack({
  name: 'messages',
  version: '1.0.0',
  description: 'Message history of a session, and the media in it',
  area: 'Sessions',
  needs: { sessions: Sessions, histories: Histories },
  optional: { uploads: Uploads },
  provides: [Messages],
  errors: [MessageMissing],
  setup(ctx, { sessions, histories, uploads }) {
    /** The main agent's history of a session, which is loaded; undefined before the first prompt: reading creates nothing. */
    const open = async (session_id: string) => {
      const host = (await sessions.load(session_id)).agent('main')
      return host && (await histories.of(host))
    }

    /** Messages as clients see them: media inline. */
    const objects = async (history: History | undefined, found: readonly HistoryMessage[], session_id: string) => {
      const shown: MessageObject[] = []
      for (const message of found) {
        const content = (await history?.inline(message.content)) ?? message.content
        shown.push(messageObject({ ...message, content }, session_id))
      }
      return shown
    }

    const messages: Messages = {
      async page(session_id, query) {
        const history = await open(session_id)
        const page = await history?.messages.page(query)
        return { items: (await objects(history, page?.messages ?? [], session_id)).reverse(), has_more: page?.has_more ?? false }
      },
      async newest(history, session_id, size, active) {
        const starting = startingMessage(history, active)
        const { messages: sealed, has_more } = await history.messages.page({ size: size - starting.length })
        return { items: await objects(history, [...sealed, ...starting], session_id), has_more }
      }
    }
    ctx.provide(Messages, messages)

    ctx.route(listMessages, async ({ params: { session_id }, query }) => {
      if (query.before_id !== undefined && query.after_id !== undefined) {
        throw invalid([{ path: 'query.before_id', message: 'before_id and after_id exclude each other' }])
      }
      const { before_id: before, after_id: after, page_size: size = 50, role } = query
      const { items, has_more } = await messages.page(session_id, { before, after, size })
      return { items: items.filter(message => role === undefined || message.role === role), has_more }
    })

    ctx.route(readMessage, async ({ params: { session_id, message_id } }) => {
      const history = await open(session_id)
      const found = await history?.messages.find(message_id)
      if (!found) throw new AppError(MessageMissing)
      return (await objects(history, [found], session_id))[0] as MessageObject
    })

    ctx.route(readMedia, async ({ params: { session_id, file_id } }) => {
      if (!(await sessions.exists(session_id))) throw new AppError(MediaSessionMissing)
      const medium = await histories.medium(await sessions.load(session_id), file_id)
      const staged = medium ? undefined : await uploads()?.find(file_id)
      const { file, media_type, size } = medium ?? staged ?? {}
      if (file === undefined || media_type === undefined) throw new AppError(MediumMissing)
      const name = (medium?.attachment ?? staged)?.name
      return binary({
        file,
        type: media_type,
        ...(name === undefined ? {} : { filename: name }),
        disposition: /^(?:image|video|audio)\//.test(media_type) || !name ? 'inline' : 'attachment',
        etag: `"${session_id}-${file_id}-${size}"`,
        conditional: false,
        headers: passive
      })
    })
  }
})
