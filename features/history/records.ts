/** The records of a conversation, as the journal of an agent keeps them. */
import { oneOf, Type } from '../../kernel/index.ts'
import { type LlmToolCall, TokenUsage } from '../llm/index.ts'
import { defineRecord, type RecordOf, type RecordSpec } from './define.ts'
import type { Origin as OriginValue, WirePart } from './types.ts'

const Id = Type.String()
const Count = Type.Integer({ minimum: 0 })
const Ids = Type.Unsafe<readonly string[]>(Type.Array(Type.String()))
const Origin = Type.Unsafe<OriginValue>(
  Type.Object({ kind: Type.String() }, { additionalProperties: true, description: 'why a turn or a message exists' })
)
const Content = Type.Unsafe<readonly WirePart[]>(
  Type.Array(Type.Object({ type: Type.String() }, { additionalProperties: true }), { description: 'content parts of the wire' })
)
const Loose = Type.Unsafe<Readonly<Record<string, unknown>>>(Type.Object({}, { additionalProperties: true }))
const Display = Type.Unsafe<{ readonly kind: string } & Readonly<Record<string, unknown>>>(
  Type.Object({ kind: Type.String() }, { additionalProperties: true })
)
const Calls = Type.Unsafe<readonly LlmToolCall[]>(
  Type.Array(
    Type.Object(
      { id: Id, name: Type.String(), arguments: Type.String({ description: 'JSON as the model wrote it' }) },
      { additionalProperties: true }
    )
  )
)
const turn = { turn_id: Count }
/** Of records that are messages: stamped when they are appended, so that a message keeps its id whatever becomes of others. */
const numbered = { number: Type.Optional(Type.Integer({ minimum: 0, description: 'messages ever made before it' })) }
const step = { ...turn, step: Count }

export const promptAccepted = defineRecord(
  'prompt.accepted',
  Type.Object({
    prompt_id: Id,
    content: Content,
    origin: Type.Optional(Origin),
    starts: Type.Optional(Type.Boolean({ description: 'its turn begins with it' })),
    queue_length: Type.Optional(Type.Integer({ description: 'prompts that wait with it, when it does not start at once' }))
  })
)
/** Handed to the running turn; each becomes a message at the next step, or waits again when the turn ends first. */
export const promptSteered = defineRecord('prompt.steered', Type.Object({ ...turn, prompt_ids: Ids, active_prompt_id: Type.Optional(Id) }))
/** With `turn_id`: the prompt of that turn, and those that were steered into it. Without: prompts that never ran. */
export const promptSettled = defineRecord(
  'prompt.settled',
  Type.Object({
    prompt_ids: Ids,
    status: oneOf(['completed', 'failed', 'aborted', 'blocked']),
    turn_id: Type.Optional(Count)
  })
)
/** A message that is no answer of the model. Without `content` it has that of its accepted prompt. */
export const message = defineRecord(
  'message',
  Type.Object({
    ...numbered,
    id: Type.Optional(Id),
    role: oneOf(['user', 'system', 'assistant'], { description: 'assistant: the program answered in place of the model' }),
    content: Type.Optional(Content),
    origin: Type.Optional(Origin),
    prompt_id: Type.Optional(Id),
    turn_id: Type.Optional(Count),
    blocked: Type.Optional(Type.Boolean({ description: 'a hook blocked the prompt: clients read it, the model never does' }))
  })
)
export const turnStarted = defineRecord(
  'turn.started',
  Type.Object({
    ...turn,
    origin: Origin,
    prompt_id: Type.Optional(Id),
    waited: Type.Optional(Type.Boolean({ description: 'its prompt had been accepted before' }))
  })
)
export const turnEnded = defineRecord(
  'turn.ended',
  Type.Object({
    ...turn,
    reason: oneOf(['completed', 'cancelled', 'failed', 'blocked']),
    interrupt_reason: Type.Optional(Type.String()),
    provider_id: Type.Optional(Type.String({ description: 'with an error: whom the last request was for' })),
    model: Type.Optional(Type.String({ description: 'as provider_id' })),
    error: Type.Optional(
      Type.Unsafe<{ readonly code: string; readonly message: string } & Readonly<Record<string, unknown>>>(
        Type.Object({ code: Type.String(), message: Type.String() }, { additionalProperties: true, description: 'engine error of events' })
      )
    ),
    duration_ms: Type.Optional(Type.Number()),
    steps: Type.Optional(Count)
  })
)
export const stepBegin = defineRecord('step.begin', Type.Object({ ...step, step_id: Id }))
/** The answer of the model, sealed. */
export const stepMessage = defineRecord(
  'step.message',
  Type.Object({
    ...step,
    ...numbered,
    content: Content,
    tool_calls: Calls,
    cut: Type.Optional(Type.Boolean({ description: 'the answer broke off inside a tool call, which is not among the calls' })),
    model: Type.Optional(Type.String({ description: 'with `usage`' })),
    /** Counts from here on; the end of the step says it again. */
    usage: Type.Optional(TokenUsage),
    told: Type.Optional(
      Type.Object(
        { text: Type.Optional(Count), thinking: Type.Optional(Count) },
        { description: 'of what it says, in deltas: the offset behind the last one, by kind' }
      )
    )
  })
)
/** A call as it was decided on and shown. */
export const toolBegin = defineRecord(
  'tool.begin',
  Type.Object({
    ...step,
    tool_call_id: Id,
    tool_name: Type.String(),
    args: Loose,
    description: Type.Optional(Type.String()),
    display: Type.Optional(Display),
    changed_by: Type.Optional(Ids),
    refused: Type.Optional(Type.Boolean({ description: 'it was decided that the call does not run' }))
  })
)
export const toolResult = defineRecord(
  'tool.result',
  Type.Object({
    ...step,
    ...numbered,
    tool_call_id: Id,
    tool_name: Type.String(),
    content: Content,
    is_error: Type.Optional(Type.Boolean()),
    note: Type.Optional(Type.String({ description: 'for the model alone' })),
    synthetic: Type.Optional(Type.Boolean({ description: 'made up, because the call never answered' }))
  })
)
export const stepEnd = defineRecord(
  'step.end',
  Type.Object({
    ...step,
    step_id: Type.Optional(Id),
    reason: Type.String({ description: '`end_turn`, `tool_use`, ..., `interrupted`, `error`' }),
    provider_reason: Type.Optional(Type.String()),
    raw_reason: Type.Optional(Type.String()),
    model: Type.Optional(Type.String()),
    provider_id: Type.Optional(Type.String({ description: 'of an attempt that failed' })),
    usage: Type.Optional(TokenUsage),
    first_token_ms: Type.Optional(Type.Number()),
    stream_ms: Type.Optional(Type.Number()),
    interrupted: Type.Optional(oneOf(['aborted', 'max_steps', 'error'], { description: 'the step did not come to its end' })),
    message: Type.Optional(Type.String({ description: 'why, for people' })),
    lost: Type.Optional(
      Type.Boolean({ description: 'the process died while its texts came, or the disk refused them: they are in no message' })
    ),
    retry: Type.Optional(
      Type.Object({
        failed_attempt: Count,
        max_attempts: Count,
        delay_ms: Type.Number(),
        error_name: Type.String(),
        error_message: Type.String(),
        code: Type.Optional(Type.String({ description: 'engine error of events' })),
        status: Type.Optional(Type.Integer())
      })
    )
  })
)
/** Something that people should know of a turn. */
export const warning = defineRecord('warning', Type.Object({ code: Type.String(), message: Type.String() }))
/** Something failed that no turn's end tells; an engine error of events. */
export const failed = defineRecord(
  'failed',
  Type.Object({
    code: Type.String(),
    message: Type.String(),
    name: Type.Optional(Type.String()),
    details: Type.Optional(Loose),
    retryable: Type.Boolean()
  })
)
/**
 * From here on the model sees these messages in place of everything before (the kept inputs of the user, then the summary), and behind them
 * what `rest` says. The message log keeps what was there and shows the last of them, the summary.
 */
export const contextCompacted = defineRecord(
  'context.compacted',
  Type.Object({
    ...numbered,
    messages: Type.Array(Type.Object({ role: oneOf(['user', 'system']), content: Content, origin: Type.Optional(Origin) }), {
      minItems: 1
    }),
    rest: Type.Optional(
      Type.Object(
        { from: Count, tokens: Type.Integer({ minimum: 0, description: 'estimated' }) },
        { description: 'messages from this number on, which the summary does not know: they stay' }
      )
    ),
    result: Type.Optional(
      Type.Object({
        summary: Type.String({ description: 'as the model wrote it' }),
        compacted_count: Type.Integer({ minimum: 0, description: 'messages that the context had' }),
        tokens_before: Count,
        tokens_after: Count,
        kept_user_message_count: Count,
        kept_head_user_message_count: Type.Optional(Count),
        dropped_count: Type.Optional(Type.Integer({ minimum: 0, description: 'messages that the model was not given to summarise' }))
      })
    )
  })
)
/** Messages from number `from` on are taken back: neither the model nor clients see them any more. Their numbers are not given again. */
export const contextUndone = defineRecord(
  'context.undone',
  Type.Object({
    from: Count,
    context_tokens: Type.Integer({ minimum: 0, description: 'where `from` does not open a turn of the user' }),
    turns: Type.Optional(Count),
    last_prompt: Type.Optional(Type.String({ description: 'text of the newest prompt that is left' }))
  })
)
/** Tokens of a request to a model that is no step of a turn. */
export const tokensSpent = defineRecord('tokens.spent', Type.Object({ model: Type.String(), usage: TokenUsage }))
/**
 * The records before it are copies of those of another session, which goes on by itself. States of what must not exist twice (a goal, a
 * schedule, running work) end here.
 */
export const sessionForked = defineRecord('session.forked', Type.Object({ from: Type.String({ description: 'id of that session' }) }))
/** Events of all records before the position `at` are in the event journal, up to `seq` of `epoch`. */
export const told = defineRecord('told', Type.Object({ at: Count, seq: Count, epoch: Type.String() }))
/** States as they follow from all records before it, so that opening reads from here. */
export const checkpoint = defineRecord(
  'checkpoint',
  Type.Object({
    told: Type.Optional(Type.Object({ seq: Count, epoch: Type.String() })),
    states: Type.Record(
      Type.String(),
      Type.Object({ version: Type.Integer(), at: Type.Optional(Count), value: Type.Unknown() }, { additionalProperties: true })
    )
  })
)

const core = [
  promptAccepted,
  promptSteered,
  promptSettled,
  message,
  turnStarted,
  turnEnded,
  stepBegin,
  stepMessage,
  toolBegin,
  toolResult,
  stepEnd,
  warning,
  failed,
  contextCompacted,
  contextUndone,
  tokensSpent,
  sessionForked
] as const
type Spec = (typeof core)[number]
type OfSpec<S> = S extends RecordSpec<infer T, infer F> ? RecordOf<T, F> : never
/** The records of a conversation; other packs add their own. */
export type CoreRecord = OfSpec<Spec>

const byType = new Map<string, RecordSpec>(core.map(spec => [spec.type, spec as unknown as RecordSpec])) // each checks its own fields

/** What was asked about last: all states take a record in one after the other. */
let last: { readonly record: object; readonly core: CoreRecord | undefined } | undefined

/** The record, when it is one of a conversation and whole. */
export function coreRecord(record: { readonly type: string }): CoreRecord | undefined {
  if (last?.record !== record) last = { record, core: byType.get(record.type)?.is(record) ? (record as CoreRecord) : undefined }
  return last.core
}
