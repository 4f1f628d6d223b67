/** Routes and frames of the transcript (contract 2, Messages and transcript; contract 3, Transcript protocol). */
import { defineFrame, defineOutFrame, defineRoute, errorSpec, named, oneOf, type Static, Time, Type } from '../../kernel/index.ts'
import { SessionMissing } from '../sessions/index.ts'
import { Attachment, entityFields, Item, Op, RosterEntry, Snapshot, TurnOrigin, TurnState } from './shapes.ts'

export const PlanMissing = errorSpec('plan_missing', 40416, 'no such ExitPlanMode call')
/** What clients of transcripts know as a payload that is none; all other frames answer 40001. */
const InvalidPayload = errorSpec('invalid_payload', 1, 'invalid subscribe_v2 payload, invalid unsubscribe_v2 payload')

const params = Type.Object({ session_id: Type.String({ minLength: 1 }) })
const path = '/api/v1/sessions/{session_id}/transcript' as const
/** Letters, digits, `.`, `_`, `-`; neither `.` nor `..`. */
const agent_id = Type.String({ pattern: '^(?!\\.{1,2}$)[A-Za-z0-9._-]{1,128}$', description: 'plain id', examples: ['main'] })

export const TranscriptPage = named(
  'TranscriptPage',
  Type.Object({
    agent_id: Type.String(),
    items: Type.Array(Item, { description: 'turns of the page with the markers and task references behind each, oldest first' }),
    has_more: Type.Boolean(),
    ...entityFields,
    agents: Type.Array(RosterEntry),
    pending_interactions: Type.Array(Type.String(), { description: 'ids' }),
    seq: Type.Optional(Type.Integer({ minimum: 0, description: 'everything up to this op batch is in it; of loaded sessions only' }))
  })
)
export type TranscriptPage = Static<typeof TranscriptPage>

/** Does not load the session. */
export const readTranscript = defineRoute({
  method: 'GET',
  path,
  summary: "One page of an agent's transcript",
  params,
  query: Type.Object({
    agent_id,
    before_turn: Type.Optional(Type.String({ description: 'turn id; exclusive' })),
    after_turn: Type.Optional(Type.String({ description: 'turn id; exclusive' })),
    page_size: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 100, default: 20, description: 'turns; fewer come when they take more than 8 MB' })
    )
  }),
  data: TranscriptPage,
  errors: [SessionMissing]
})

const Batch = named('TranscriptBatch', Type.Object({ seq: Type.Integer({ minimum: 1 }), ops: Type.Array(Op) }))

/** Does not load the session. */
export const readOps = defineRoute({
  method: 'GET',
  path: `${path}/ops`,
  summary: 'Op batches after a sequence number, oldest first',
  params,
  query: Type.Object({ agent_id, since_seq: Type.Integer({ minimum: 0 }) }),
  data: Type.Object({
    agent_id: Type.String(),
    batches: Type.Array(Batch),
    latest_seq: Type.Integer({ minimum: 0 }),
    complete: Type.Boolean({ description: 'false: the past is gone; read the transcript again' })
  }),
  errors: [SessionMissing]
})

const UserMessage = named(
  'TranscriptUserMessage',
  Type.Object({
    turn_id: Type.String(),
    ordinal: Type.Integer({ minimum: 0 }),
    state: TurnState,
    origin: TurnOrigin,
    prompt: Type.String({ description: 'empty when the prompt was attachments only' }),
    attachment_ids: Type.Optional(Type.Array(Type.String())),
    started_at: Type.Optional(Time)
  })
)
export type UserMessage = Static<typeof UserMessage>

/** Does not load the session. */
export const readUserMessages = defineRoute({
  method: 'GET',
  path: `${path}/user-messages`,
  summary: 'Inputs that opened turns, oldest first',
  params,
  query: Type.Object({ agent_id: Type.Optional(agent_id) }),
  data: Type.Object({
    agents: Type.Array(Type.Object({ agent_id: Type.String(), messages: Type.Array(UserMessage), attachments: Type.Array(Attachment) }))
  }),
  errors: [SessionMissing]
})

export const PlanEntry = named(
  'TranscriptPlan',
  Type.Object({
    tool_call_id: Type.String(),
    turn_id: Type.String(),
    source: oneOf(['interaction', 'display', 'output']),
    plan: Type.String(),
    path: Type.Optional(Type.String()),
    options: Type.Optional(Type.Array(Type.Object({ label: Type.String(), description: Type.Optional(Type.String()) }))),
    review: Type.Optional(
      Type.Object({
        state: oneOf(['pending', 'approved', 'rejected', 'cancelled']),
        selected_option: Type.Optional(Type.String()),
        feedback: Type.Optional(Type.String())
      })
    )
  })
)
export type PlanEntry = Static<typeof PlanEntry>

/** Does not load the session. */
export const readPlans = defineRoute({
  method: 'GET',
  path: `${path}/plan`,
  summary: 'Plans that were put up with ExitPlanMode, in timeline order',
  params,
  query: Type.Object({ agent_id, tool_call_id: Type.Optional(Type.String({ minLength: 1 })) }),
  data: Type.Object({ agent_id: Type.String(), plans: Type.Array(PlanEntry) }),
  errors: [SessionMissing, PlanMissing]
})

export const Grade = oneOf(['off', 'turn', 'block', 'delta'])
export type Grade = Static<typeof Grade>
const closed = { additionalProperties: false } as const
const session_id = Type.String({ minLength: 1 })
const Subscribed = named(
  'TranscriptSubscribed',
  Type.Object({
    accepted: Type.Array(Type.String()),
    not_found: Type.Array(Type.String()),
    resync_required: Type.Array(Type.String()),
    cursors: Type.Record(
      Type.String(),
      Type.Object({ seq: Type.Integer(), epoch: Type.String() }, { description: 'where the events of the session are' })
    )
  })
)

/** Loads the session. Baselines and missed batches come before the ack. */
export const subscribeTranscript = defineFrame({
  type: 'subscribe_v2',
  summary: 'Subscribe to transcript streams of a session, by agent id; `*` is the default of the others',
  payload: Type.Object({
    session_id,
    transcript: Type.Record(Type.String({ minLength: 1 }), Grade),
    transcript_since: Type.Optional(Type.Record(Type.String({ minLength: 1 }), Type.Integer({ minimum: 0 })))
  }),
  ack: Subscribed,
  invalid: InvalidPayload,
  subscribes: true,
  stands: 'anew'
})

export const unsubscribeTranscript = defineFrame({
  type: 'unsubscribe_v2',
  summary: 'Detach transcript streams; without agent_ids all of the session',
  payload: Type.Object({ session_id, agent_ids: Type.Optional(Type.Array(Type.String({ minLength: 1 }), { minItems: 1 })) }),
  ack: Type.Object({
    accepted: Type.Array(Type.String(), { minItems: 1, maxItems: 1, description: 'the session' }),
    not_found: Type.Array(Type.String(), { maxItems: 0 }),
    resync_required: Type.Array(Type.String(), { maxItems: 0 })
  }),
  invalid: InvalidPayload,
  stands: 'more'
})

const whose = { type: Type.String(), agent_id: Type.String(), seq: Type.Integer({ minimum: 0 }) }

const fields = {
  seq: Type.Integer({ minimum: 0, description: 'number of the last durable event of the session' }),
  epoch: Type.Optional(Type.String()),
  volatile: Type.Literal(true),
  session_id: Type.String()
}

export const transcriptReset = defineOutFrame({
  type: 'transcript.reset',
  fields,
  summary: 'Baseline of an agent: everything up to batch `seq` is in it, older turns come by REST',
  payload: Type.Object({ ...whose, snapshot: Snapshot, has_more_older: Type.Boolean() }, closed)
})

export const transcriptOps = defineOutFrame({
  type: 'transcript.ops',
  fields,
  summary: 'One batch of operations of an agent; `seq` rises by one with every batch, those that a grade leaves out count',
  payload: Type.Object({ ...whose, ops: Type.Array(Op, { minItems: 1 }) }, closed)
})
