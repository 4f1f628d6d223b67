/**
 * Bookmarks: a third-party pack. Keeps at most `max_per_session` named marks per session.
 *
 * Routes: POST and GET /api/v1/sessions/{session_id}/bookmarks. Event: event.bookmark.added.
 */
import { AppError, defineEvent, definePack, defineRoute, defineStore, errorSpec, Type } from '../../kernel/index.ts'
import { SessionMissing, Sessions } from '../../features/sessions/index.ts'

const Bookmark = Type.Object({
  id: Type.String({ description: 'ULID' }),
  session_id: Type.String(),
  label: Type.String({ minLength: 1, maxLength: 80 }),
  created_at: Type.String({ description: 'ISO 8601, UTC' })
})

export const BookmarkLimit = errorSpec('bookmark_limit', 40960, 'too many bookmarks in this session')

const params = Type.Object({ session_id: Type.String({ minLength: 1 }) })
const path = '/api/v1/sessions/{session_id}/bookmarks'
export const addBookmark = defineRoute({
  method: 'POST', path, summary: 'Add a bookmark', params,
  body: Type.Pick(Bookmark, ['label']), data: Bookmark, errors: [SessionMissing, BookmarkLimit]
})
export const listBookmarks = defineRoute({
  method: 'GET', path, summary: 'List bookmarks, oldest first', params,
  data: Type.Object({ items: Type.Array(Bookmark) }), errors: [SessionMissing]
})
export const bookmarkAdded = defineEvent({ type: 'event.bookmark.added', scope: 'session', durable: true, payload: Bookmark })
const bookmarkStore = defineStore({ name: 'bookmarks', value: Bookmark })

export default definePack({
  name: 'bookmarks',
  needs: { sessions: Sessions },
  config: Type.Object({ max_per_session: Type.Integer({ minimum: 1, default: 100 }) }),
  setup(ctx, { sessions }) {
    const bookmarks = ctx.store(bookmarkStore)
    const emitAdded = ctx.event(bookmarkAdded)

    /** All marks of one session. Throws SessionMissing (40401). */
    async function marksOf(session_id: string) {
      if (!(await sessions.exists(session_id))) throw new AppError(SessionMissing)
      return (await bookmarks.values()).filter(mark => mark.session_id === session_id)
    }

    ctx.route(addBookmark, async ({ params: { session_id }, body: { label } }) => {
      if ((await marksOf(session_id)).length >= ctx.config.max_per_session) throw new AppError(BookmarkLimit)
      const mark = { id: ctx.newId(), session_id, label, created_at: ctx.now().toISOString() }
      await bookmarks.put(mark.id, mark)
      emitAdded(mark, session_id)
      return mark
    })
    ctx.route(listBookmarks, async ({ params }) => ({ items: await marksOf(params.session_id) }))
  }
})
