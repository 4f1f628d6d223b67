/** Events of turns, steps, streamed text, tool calls and prompts (contract 3, WebSocket events). */
import { type Connection, defineEvent, named, oneOf, type Static, type TObject, Type } from '../../kernel/index.ts'
import { ContentPart } from '../history/index.ts'
import { TokenUsage } from '../llm/index.ts'

const Count = Type.Integer({ minimum: 0 })
const turn = { turnId: Count }
const step = { ...turn, step: Count, stepId: Type.Optional(Type.String()) }
const Loose = Type.Object({}, { additionalProperties: true })
const Origin = Type.Object({ kind: Type.String() }, { additionalProperties: true, description: 'why the turn runs' })
const Display = Type.Object({ kind: Type.String() }, { additionalProperties: true })
/** Live output of a tool. */
export const ToolProgressUpdate = named(
  'ToolProgressUpdate',
  Type.Object({
    kind: oneOf(['stdout', 'stderr', 'progress', 'status', 'custom']),
    text: Type.Optional(Type.String()),
    percent: Type.Optional(Type.Number()),
    customKind: Type.Optional(Type.String()),
    customData: Type.Optional(Type.Unknown()),
    replace: Type.Optional(Type.Boolean())
  })
)
const errorFields = {
  code: Type.String(),
  message: Type.String(),
  name: Type.Optional(Type.String()),
  details: Type.Optional(Loose),
  retryable: Type.Boolean(),
  cause: Type.Optional(Type.Unknown())
}

/** Engine error of events; never a REST code. */
export const ErrorInfo = named('EngineError', Type.Object(errorFields))
export type ErrorInfo = Static<typeof ErrorInfo>

const durable = <P extends TObject>(type: string, payload: P) => defineEvent({ type, scope: 'session', durable: true, payload })

export const turnStarted = durable(
  'turn.started',
  Type.Object({ ...turn, origin: Origin, prompt: Type.Optional(Type.String()), promptId: Type.Optional(Type.String()) })
)
export const turnEnded = durable(
  'turn.ended',
  Type.Object({
    ...turn,
    reason: oneOf(['completed', 'cancelled', 'failed', 'blocked']),
    error: Type.Optional(ErrorInfo),
    durationMs: Type.Optional(Type.Number()),
    interruptReason: Type.Optional(Type.String())
  })
)
export const stepStarted = durable('turn.step.started', Type.Object(step))
export const stepCompleted = durable(
  'turn.step.completed',
  Type.Object({
    ...step,
    usage: Type.Optional(TokenUsage),
    finishReason: Type.Optional(Type.String()),
    providerFinishReason: Type.Optional(Type.String()),
    rawFinishReason: Type.Optional(Type.String()),
    llmFirstTokenLatencyMs: Type.Optional(Type.Number()),
    llmStreamDurationMs: Type.Optional(Type.Number())
  })
)
export const stepInterrupted = durable(
  'turn.step.interrupted',
  Type.Object({ ...step, reason: oneOf(['aborted', 'max_steps', 'error']), message: Type.Optional(Type.String()) })
)
export const stepRetrying = durable(
  'turn.step.retrying',
  Type.Object({
    ...step,
    failedAttempt: Count,
    nextAttempt: Count,
    maxAttempts: Count,
    delayMs: Type.Number(),
    errorName: Type.String(),
    errorMessage: Type.String(),
    statusCode: Type.Optional(Type.Integer())
  })
)

const Delta = Type.Object({ ...turn, delta: Type.String() })
/** The frame carries `offset`: length of this kind of text in the turn before this chunk, UTF-16 units (config `delta_offset`). */
export const assistantDelta = defineEvent({
  type: 'assistant.delta',
  scope: 'session',
  durable: false,
  payload: Delta,
  merge: { by: ['agentId', 'turnId'], append: 'delta' }
})
export const thinkingDelta = defineEvent({
  type: 'thinking.delta',
  scope: 'session',
  durable: false,
  payload: Delta,
  merge: { by: ['agentId', 'turnId'], append: 'delta' }
})

const call = { ...turn, toolCallId: Type.String() }
export const toolCallDelta = defineEvent({
  type: 'tool.call.delta',
  scope: 'session',
  durable: false,
  payload: Type.Object({ ...call, name: Type.Optional(Type.String()), argumentsPart: Type.Optional(Type.String()) })
})
export const toolCallStarted = durable(
  'tool.call.started',
  Type.Object({
    ...call,
    name: Type.String(),
    args: Loose,
    description: Type.Optional(Type.String()),
    display: Type.Optional(Display)
  })
)
export const toolProgress = defineEvent({
  type: 'tool.progress',
  scope: 'session',
  durable: false,
  payload: Type.Object({ ...call, update: ToolProgressUpdate })
})
export const toolResult = durable(
  'tool.result',
  Type.Object({
    ...call,
    output: Type.Union([Type.String(), Type.Array(ContentPart)]),
    isError: Type.Optional(Type.Literal(true)),
    synthetic: Type.Optional(Type.Literal(true))
  })
)

const prompt = { promptId: Type.String() }
const At = Type.String({ format: 'date-time' })
export const promptSubmitted = durable(
  'prompt.submitted',
  Type.Object({
    ...prompt,
    userMessageId: Type.String(),
    status: oneOf(['running', 'queued', 'blocked']),
    content: Type.Array(ContentPart),
    createdAt: At
  })
)
export const promptQueued = durable('prompt.queued', Type.Object({ ...prompt, content: Type.Array(ContentPart), queueLength: Count }))
export const promptSteered = durable(
  'prompt.steered',
  Type.Object({ activePromptId: Type.String(), promptIds: Type.Array(Type.String()), content: Type.Array(ContentPart), steeredAt: At })
)
export const promptCompleted = durable(
  'prompt.completed',
  Type.Object({ ...prompt, finishedAt: At, reason: Type.Optional(oneOf(['completed', 'failed', 'blocked'])) })
)
export const promptAborted = durable('prompt.aborted', Type.Object({ ...prompt, abortedAt: At }))

/** Two flavours: usage, context and model together, or only `phase`. */
export const agentStatusUpdated = defineEvent({
  type: 'agent.status.updated',
  scope: 'session',
  durable: false,
  payload: Type.Object({
    model: Type.Optional(Type.String()),
    thinkingEffort: Type.Optional(Type.String()),
    contextTokens: Type.Optional(Type.Number()),
    maxContextTokens: Type.Optional(Type.Number()),
    contextUsage: Type.Optional(Type.Number()),
    planMode: Type.Optional(Type.Boolean()),
    swarmMode: Type.Optional(Type.Boolean()),
    permission: Type.Optional(Type.String()),
    usage: Type.Optional(
      Type.Object({
        byModel: Type.Optional(Type.Record(Type.String(), TokenUsage)),
        currentTurn: Type.Optional(TokenUsage),
        total: Type.Optional(TokenUsage)
      })
    ),
    phase: Type.Optional(Display)
  })
})

export const errorRaised = durable('error', Type.Object(errorFields))
export const warningRaised = durable('warning', Type.Object({ message: Type.String(), code: Type.Optional(Type.String()) }))

export const hookResult = durable(
  'hook.result',
  Type.Object({
    turnId: Type.Optional(Type.Integer({ minimum: 0 })),
    hookEvent: Type.String({ description: '`UserPromptSubmit`' }),
    content: Type.String(),
    blocked: Type.Optional(Type.Boolean({ description: 'the prompt does not run' }))
  })
)

/** The newest turns of the user are taken back: the conversation is another one. */
export const turnsUndone = defineEvent({
  type: 'context.undone',
  scope: 'session',
  durable: true,
  resync: true,
  payload: Type.Object({ turns: Type.Integer({ minimum: 1, description: 'of the user' }) })
})

/** Every event of this pack by the name the engine uses. */
export const agentEvents = {
  turnStarted,
  turnEnded,
  stepStarted,
  stepCompleted,
  stepInterrupted,
  stepRetrying,
  assistantDelta,
  thinkingDelta,
  toolCallDelta,
  toolCallStarted,
  toolProgress,
  toolResult,
  promptSubmitted,
  promptQueued,
  promptSteered,
  promptCompleted,
  promptAborted,
  agentStatusUpdated,
  errorRaised,
  warningRaised,
  hookResult,
  turnsUndone
} as const
export type AgentEvents = typeof agentEvents
export type AgentEventName = keyof AgentEvents
export type AgentEventPayload<N extends AgentEventName> = Static<AgentEvents[N]['payload']>

/** Emits an event of one agent. */
export type AgentEmit = <N extends AgentEventName>(
  name: N,
  payload: AgentEventPayload<N>,
  target?: {
    /** On the frame of text deltas. */
    readonly offset?: number
    /** One client alone gets it. */
    readonly only?: Connection
    /** Instant of the fact; default now. */
    readonly at?: Date
  }
) => void
