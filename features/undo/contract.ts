/** Wire shape of undo (contract 2, session actions). */
import { defineRoute, errorSpec, oneOf, page, Type } from '../../kernel/index.ts'
import { MessageObject } from '../messages/index.ts'
import { SessionStatus } from '../session-views/index.ts'
import { SessionBusy, SessionMissing } from '../sessions/index.ts'

export const UndoRefusal = Type.Object({
  reason: oneOf(['empty', 'insufficient', 'compaction_boundary', 'checkpoint_lost']),
  requestedCount: Type.Integer(),
  undoableCount: Type.Integer()
})

/**
 * 40911. data `{ reason, requestedCount, undoableCount }`. `empty`: there is no turn of the user. `insufficient`: not so many.
 * `compaction_boundary`: the others are part of a summary. `checkpoint_lost`: the others are too long ago.
 */
export const UndoUnavailable = errorSpec('undo_unavailable', 40911, 'that many turns cannot be undone', 200, { data: UndoRefusal })

export const undoSession = defineRoute({
  method: 'POST',
  path: '/api/v1/sessions/{session_id}:undo',
  summary: 'Take back the newest turns of the user on the main agent',
  description: 'Answers with the messages that are left, newest first.',
  params: Type.Object({ session_id: Type.String() }),
  body: Type.Optional(
    Type.Object({
      count: Type.Optional(Type.Integer({ minimum: 1, description: 'turns; default 1' })),
      page_size: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, description: 'messages in the answer; default 50' }))
    })
  ),
  data: Type.Object({ messages: page(MessageObject), status: SessionStatus }),
  errors: [SessionMissing, SessionBusy, UndoUnavailable]
})
