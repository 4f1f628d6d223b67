/** Wire shapes of compaction: its route (contract 2, session actions), its events (contract 3, `compaction.*`), its error. */
import { defineEvent, defineRoute, errorSpec, oneOf, type TObject, Type } from '../../kernel/index.ts'
import { SessionBusy, SessionMissing } from '../sessions/index.ts'

export const CompactionUnable = errorSpec('compaction_unable', 40910, 'the context cannot be compacted now')

export const compactSession = defineRoute({
  method: 'POST',
  path: '/api/v1/sessions/{session_id}:compact',
  summary: "Make the main agent's context smaller; answers when it has begun, events tell the rest",
  params: Type.Object({ session_id: Type.String() }),
  body: Type.Optional(
    Type.Object({ instruction: Type.Optional(Type.String({ description: 'what the summary should mind; blank: nothing' })) })
  ),
  data: Type.Object({}),
  errors: [SessionMissing, SessionBusy, CompactionUnable]
})

const Count = Type.Integer({ minimum: 0 })
const durable = <P extends TObject>(type: string, payload: P, summary: string) =>
  defineEvent({ type, scope: 'session', durable: true, payload, summary })

export const compactionStarted = durable(
  'compaction.started',
  Type.Object({ trigger: oneOf(['manual', 'auto']), instruction: Type.Optional(Type.String()) }),
  'The context is being made smaller'
)
export const compactionBlocked = durable('compaction.blocked', Type.Object({ turnId: Type.Optional(Count) }), 'A running turn waits for it')
export const compactionCancelled = durable('compaction.cancelled', Type.Object({}), 'It was aborted or failed: the context is as it was')
export const compactionCompleted = durable(
  'compaction.completed',
  Type.Object({
    result: Type.Object({
      summary: Type.String(),
      compactedCount: Type.Integer({ minimum: 0, description: 'messages that the context had' }),
      tokensBefore: Count,
      tokensAfter: Count,
      keptUserMessageCount: Count,
      keptHeadUserMessageCount: Type.Optional(Count),
      droppedCount: Type.Optional(Type.Integer({ minimum: 0, description: 'messages that the model was not given to summarise' }))
    })
  }),
  'The model sees what the user wrote and a summary of the rest'
)
