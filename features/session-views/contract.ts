/** Wire shapes and routes of the snapshot and the status rollup of a session (contract 2). */
import { defineRoute, named, nullable, oneOf, openObject, page, type Static, Time, type TProperties, Type } from '../../kernel/index.ts'
import { ContentPart } from '../history/index.ts'
import { ApprovalRequest } from '../interactions/index.ts'
import { MessageObject } from '../messages/index.ts'
import { QuestionRequest } from '../questions/index.ts'
import { SessionMissing, SessionObject } from '../sessions/index.ts'
import { Subagent } from '../subagents/index.ts'

const params = Type.Object({ session_id: Type.String() })
const item = '/api/v1/sessions/{session_id}' as const

const InFlight = named(
  'InFlightTurn',
  Type.Object({
    turn_id: Type.Integer(),
    assistant_text: Type.String({ description: 'of the message that still streams; `messages` does not have it yet' }),
    assistant_offset: Type.Integer({ minimum: 0, description: 'where the text begins; with its length the offset of the next delta' }),
    thinking_text: Type.String({ description: 'as assistant_text' }),
    thinking_offset: Type.Integer({ minimum: 0, description: 'as assistant_offset' }),
    running_tools: Type.Array(
      Type.Object({
        tool_call_id: Type.String(),
        name: Type.String(),
        args: Type.Optional(Type.Unknown()),
        description: Type.Optional(Type.String()),
        display: Type.Optional(Type.Object({ kind: Type.String() }, { additionalProperties: true })),
        last_progress: Type.Optional(
          Type.Object({
            kind: oneOf(['stdout', 'stderr', 'progress', 'status']),
            text: Type.Optional(Type.String()),
            percent: Type.Optional(Type.Number())
          })
        )
      })
    ),
    current_prompt_id: Type.Optional(Type.String()),
    steered_prompts: Type.Optional(
      Type.Array(Type.Object({ prompt_id: Type.String(), content: Type.Array(ContentPart) }), {
        description: 'steered into the turn; messages of its next step'
      })
    )
  })
)

/** Of a kind that another pack shows as a question. */
const OtherRequest = Type.Object({}, { additionalProperties: true, description: 'a request of another kind' })

const LastFailure = named(
  'TurnFailure',
  Type.Object(
    {
      at: Time,
      turn_id: Type.Integer(),
      code: Type.String({ description: 'as in the event `error`' }),
      message: Type.String(),
      name: Type.Optional(Type.String()),
      retryable: Type.Boolean(),
      status: Type.Optional(Type.Integer({ description: 'HTTP status of the provider' })),
      provider_id: Type.Optional(Type.String()),
      model: Type.Optional(Type.String({ description: 'alias' })),
      retry: Type.Optional(
        Type.Object(
          { failed_attempt: Type.Integer(), max_attempts: Type.Integer(), delay_ms: Type.Number() },
          { description: 'the turn goes on with another attempt, `delay_ms` after `at`' }
        )
      )
    },
    { description: 'newest failure of the main agent; absent when a turn has completed since' }
  )
)

/** Packs bring further fields (`StatusFacts`). */
const withFacts = <P extends TProperties>(fields: P) => openObject(fields, { description: 'Packs may add fields' })

export const readSnapshot = defineRoute({
  method: 'GET',
  path: `${item}/snapshot`,
  summary: 'Consistent state for a client rebuild, with the position to subscribe from',
  params,
  data: named(
    'SessionSnapshot',
    withFacts({
      as_of_seq: Type.Integer(),
      epoch: Type.String(),
      session: SessionObject,
      messages: page(MessageObject),
      in_flight_turn: nullable(InFlight),
      subagents: Type.Array(Subagent, { description: 'in the foreground of the present or last turn' }),
      pending_approvals: Type.Array(ApprovalRequest),
      pending_questions: Type.Array(Type.Unsafe<unknown>(Type.Union([QuestionRequest, OtherRequest]))),
      last_failure: Type.Optional(LastFailure)
    })
  ),
  errors: [SessionMissing]
})

/** Contract 2, Status rollup. */
export const SessionStatus = named(
  'SessionStatus',
  withFacts({
    busy: Type.Boolean(),
    model: Type.Optional(Type.String()),
    thinking_level: Type.String({ description: 'empty until a model is bound' }),
    permission: Type.String(),
    plan_mode: Type.Boolean(),
    swarm_mode: Type.Boolean(),
    context_tokens: Type.Integer(),
    max_context_tokens: Type.Optional(Type.Integer()),
    context_usage: Type.Optional(Type.Number({ minimum: 0, maximum: 1 })),
    last_failure: Type.Optional(LastFailure)
  })
)
export type SessionStatus = Static<typeof SessionStatus>

export const readStatus = defineRoute({
  method: 'GET',
  path: `${item}/status`,
  summary: 'Status rollup of the main agent',
  params,
  data: SessionStatus,
  errors: [SessionMissing]
})
