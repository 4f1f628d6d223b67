/** Wire shapes, routes, events and errors of questions (contract 2, Question request, Approvals and questions), and the tool's parameters. */
import { defineEvent, defineRoute, errorSpec, named, oneOf, type Static, Time, Type } from '../../kernel/index.ts'
import { AlreadyResolved, NotResolved } from '../interactions/index.ts'
import { SessionBusy, SessionMissing } from '../sessions/index.ts'

export const QuestionMissing = errorSpec('question_missing', 40405, 'question not found')
export const QuestionExpired = errorSpec('question_expired', 41002, 'the question timed out', 200, NotResolved)
/** The envelope code of a dismissal that went through; no failure (contract 2, `:dismiss`). */
export const dismissedCode = 40909

const Option = named(
  'QuestionOption',
  Type.Object({
    id: Type.String({ description: '`opt_<item>_<option>`, from 0' }),
    label: Type.String(),
    description: Type.Optional(Type.String())
  })
)

const Item = named(
  'QuestionItem',
  Type.Object({
    id: Type.String({ description: '`q_<item>`, from 0' }),
    question: Type.String(),
    header: Type.Optional(Type.String()),
    body: Type.Optional(Type.String()),
    options: Type.Array(Option, { minItems: 2, maxItems: 4 }),
    multi_select: Type.Optional(Type.Boolean()),
    allow_other: Type.Optional(Type.Boolean({ description: 'a text of the user is an answer, too' })),
    other_label: Type.Optional(Type.String()),
    other_description: Type.Optional(Type.String())
  })
)
export type QuestionItem = Static<typeof Item>

/** The agent waits for the user to choose. */
export const QuestionRequest = named(
  'Question',
  Type.Object({
    question_id: Type.String({ description: 'question_<uuid>' }),
    session_id: Type.String(),
    turn_id: Type.Optional(Type.Integer({ minimum: 0, description: '0-based turn number' })),
    tool_call_id: Type.Optional(Type.String()),
    questions: Type.Array(Item, { minItems: 1, maxItems: 4 }),
    created_at: Time,
    expires_at: Type.Optional(Type.String({ format: 'date-time', description: 'the question is withdrawn at this instant' }))
  })
)
export type QuestionRequest = Static<typeof QuestionRequest>

const id = Type.String({ minLength: 1 })
const ids = Type.Array(id, { minItems: 1, maxItems: 100 })
const text = Type.String({ maxLength: 100_000 })

/** How one item was answered. */
export const ItemAnswer = named(
  'QuestionItemAnswer',
  Type.Union([
    Type.Object({ kind: Type.Literal('single'), option_id: id }),
    Type.Object({ kind: Type.Literal('multi'), option_ids: ids }),
    Type.Object({ kind: Type.Literal('other'), text }),
    Type.Object({ kind: Type.Literal('multi_with_other'), option_ids: ids, other_text: text }),
    Type.Object({ kind: Type.Literal('skipped') })
  ])
)
export type ItemAnswer = Static<typeof ItemAnswer>

const Method = oneOf(['enter', 'space', 'number_key', 'click'])
const Texts = Type.Record(Type.String(), Type.String(), { description: 'question text to answer text; skipped items are absent' })

/** The end of a question that somebody answered, as it is on record. */
export const QuestionAnswer = Type.Union([
  Type.Object({ answers: Texts, method: Type.Optional(Method), note: Type.Optional(Type.String()) }),
  Type.Object({ dismissed: Type.Literal(true) })
])
export type QuestionAnswer = Static<typeof QuestionAnswer>

const session = { session_id: Type.String({ minLength: 1 }) }
const path = '/api/v1/sessions/{session_id}/questions' as const
const one = Type.Object({ ...session, question_id: Type.String({ minLength: 1 }) })
const failures = [SessionMissing, SessionBusy, QuestionMissing, AlreadyResolved, QuestionExpired]

/** Open questions of a session, oldest first. Loads a cold session. */
export const listQuestions = defineRoute({
  method: 'GET',
  path,
  summary: 'List pending questions',
  params: Type.Object(session),
  query: Type.Object({ status: oneOf(['pending']) }),
  data: Type.Object({ items: Type.Array(QuestionRequest) }),
  errors: [SessionMissing]
})

/** Answers a question. An id that is not open is said before a body that does not fit. */
export const answerQuestion = defineRoute({
  method: 'POST',
  operationId: 'answerQuestion',
  path: `${path}/{question_id}`,
  summary: 'Answer a question',
  params: one,
  body: Type.Object({
    answers: Type.Record(Type.String(), ItemAnswer, { description: 'item id to answer' }),
    method: Type.Optional(Method),
    note: Type.Optional(Type.String({ maxLength: 100_000, description: 'handed to the agent beside the answers' }))
  }),
  bodyCheck: 'late',
  data: Type.Object({ resolved: Type.Literal(true), resolved_at: Time }),
  errors: failures
})

export const dismissQuestion = defineRoute({
  method: 'POST',
  operationId: 'dismissQuestion',
  path: `${path}/{question_id}:dismiss`,
  summary: 'Dismiss a question; success has the code 40909',
  params: one,
  data: Type.Object({ dismissed: Type.Literal(true), dismissed_at: Time }),
  successCode: dismissedCode,
  errors: failures
})

const durable = { scope: 'session', durable: true } as const

export const questionRequested = defineEvent({
  type: 'event.question.requested',
  ...durable,
  payload: QuestionRequest,
  summary: 'The agent asks the user; `event.session.work_changed` was sent before'
})

export const questionAnswered = defineEvent({
  type: 'event.question.answered',
  ...durable,
  payload: Type.Object({ question_id: Type.String(), answers: Texts, resolved_at: Time }),
  summary: 'A question was answered'
})

export const questionDismissed = defineEvent({
  type: 'event.question.dismissed',
  ...durable,
  payload: Type.Object({ question_id: Type.String(), dismissed_at: Time }),
  summary: 'A question was dismissed, withdrawn with its turn, or expired'
})

const closed = { additionalProperties: false } as const

export const askParameters = Type.Object(
  {
    questions: Type.Array(
      Type.Object(
        {
          question: Type.String({ minLength: 1, maxLength: 2000, description: 'The whole question, as a sentence' }),
          header: Type.Optional(Type.String({ maxLength: 80, description: 'One or two words that name it, about 12 characters' })),
          options: Type.Array(
            Type.Object(
              {
                label: Type.String({ minLength: 1, maxLength: 200, description: 'The choice in a few words' }),
                description: Type.Optional(Type.String({ maxLength: 2000, description: 'What choosing it means' }))
              },
              closed
            ),
            { minItems: 2, maxItems: 4 }
          ),
          multi_select: Type.Optional(Type.Boolean({ description: 'Several options may be chosen; default false' }))
        },
        closed
      ),
      { minItems: 1, maxItems: 4 }
    ),
    background: Type.Optional(
      Type.Boolean({ description: 'Do not wait for the answer: it comes as a notification, and you go on meanwhile; default false' })
    )
  },
  closed
)
export type AskArguments = Static<typeof askParameters>
