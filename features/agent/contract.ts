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

/** Tokens that an agent has spent: of its present or last turn, and of its life. */
export const AgentUsage = named(
  'AgentUsage',
  Type.Object({
    byModel: Type.Optional(Type.Record(Type.String(), TokenUsage)),
    currentTurn: Type.Optional(TokenUsage),
    total: Type.Optional(TokenUsage)
  })
)

const durable = <P extends TObject>(type: string, summary: string, payload: P) =>
  defineEvent({ type, scope: 'session', durable: true, summary, payload })

const end = (of: string) =>
  Type.Optional(Type.Integer({ minimum: 0, description: `where the ${of} of the step ends: the offset behind it` }))
/** On the first durable event behind the texts of a step. */
const ends = { assistantEnd: end('answer'), thinkingEnd: end('thinking') }
const TextEnds = Type.Object(ends)
export type TextEnds = Static<typeof TextEnds>
export const turnStarted = durable(
  'turn.started',
  'An agent begins to work on a prompt, or on what else `origin` names',
  Type.Object({ ...turn, origin: Origin, prompt: Type.Optional(Type.String()), promptId: Type.Optional(Type.String()) })
)
export const turnEnded = durable(
  'turn.ended',
  'The turn is over',
  Type.Object({
    ...turn,
    reason: oneOf(['completed', 'cancelled', 'failed', 'blocked']),
    error: Type.Optional(ErrorInfo),
    durationMs: Type.Optional(Type.Number()),
    interruptReason: Type.Optional(Type.String())
  })
)
export const stepStarted = durable('turn.step.started', 'A request to the model, and the tool calls that it asks for', Type.Object(step))
export const stepCompleted = durable(
  'turn.step.completed',
  'The model has answered, and its tool calls are over',
  Type.Object({
    ...step,
    usage: Type.Optional(TokenUsage),
    finishReason: Type.Optional(Type.String()),
    providerFinishReason: Type.Optional(Type.String()),
    rawFinishReason: Type.Optional(Type.String()),
    llmFirstTokenLatencyMs: Type.Optional(Type.Number()),
    llmStreamDurationMs: Type.Optional(Type.Number()),
    ...ends
  })
)
export const stepInterrupted = defineEvent({
  ...durable(
    'turn.step.interrupted',
    'The step was cut off or failed',
    Type.Object({
      ...step,
      reason: oneOf(['aborted', 'max_steps', 'error']),
      message: Type.Optional(Type.String()),
      lost: Type.Optional(
        Type.Boolean({ description: 'what was streamed of it is in no message: the server ended while it came, or the disk refused it' })
      ),
      ...ends
    })
  ),
  resync: 'lost'
})
export const stepRetrying = durable(
  'turn.step.retrying',
  'The request to the model failed and is sent again after `delayMs`',
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
  summary: 'The next piece of the answer that the model writes',
  scope: 'session',
  durable: false,
  payload: Delta,
  offset: true
})
export const thinkingDelta = defineEvent({
  type: 'thinking.delta',
  summary: 'The next piece of what the model thinks',
  scope: 'session',
  durable: false,
  payload: Delta,
  offset: true
})

const call = { ...turn, toolCallId: Type.String() }
export const toolCallDelta = defineEvent({
  type: 'tool.call.delta',
  summary: 'The next piece of the arguments that the model writes',
  scope: 'session',
  durable: false,
  payload: Type.Object({ ...call, name: Type.Optional(Type.String()), argumentsPart: Type.Optional(Type.String()) })
})
export const toolCallStarted = durable(
  'tool.call.started',
  'The arguments are complete; what the call waits for, and its result, follow',
  Type.Object({
    ...call,
    name: Type.String(),
    args: Loose,
    description: Type.Optional(Type.String()),
    display: Type.Optional(Display),
    ...ends
  })
)
export const toolProgress = defineEvent({
  type: 'tool.progress',
  summary: 'What a running call tells of itself',
  scope: 'session',
  durable: false,
  payload: Type.Object({ ...call, update: ToolProgressUpdate })
})
export const toolResult = durable(
  'tool.result',
  'What the model gets as the answer of a call',
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
  'A prompt was accepted: `content` is what the user sent. One that waited is told again when its turn begins, a step takes it, or it is blocked',
  Type.Object({
    ...prompt,
    userMessageId: Type.String(),
    status: oneOf(['running', 'queued', 'blocked']),
    content: Type.Array(ContentPart),
    createdAt: At
  })
)
export const promptQueued = durable(
  'prompt.queued',
  'The prompt waits for the end of what runs; also one that was steered into a turn which ended before it took it',
  Type.Object({ ...prompt, content: Type.Array(ContentPart), queueLength: Count })
)
export const promptSteered = durable(
  'prompt.steered',
  'Queued prompts are for the running turn, whose next step takes them; then they have no end of their own',
  Type.Object({ activePromptId: Type.String(), promptIds: Type.Array(Type.String()), content: Type.Array(ContentPart), steeredAt: At })
)
export const promptCompleted = durable(
  'prompt.completed',
  'The turn of a prompt is over, or a hook refused the prompt',
  Type.Object({ ...prompt, finishedAt: At, reason: Type.Optional(oneOf(['completed', 'failed', 'blocked'])) })
)
export const promptAborted = durable(
  'prompt.aborted',
  'The prompt was cancelled, in its turn or in the queue',
  Type.Object({ ...prompt, abortedAt: At })
)

export const agentStatusUpdated = defineEvent({
  type: 'agent.status.updated',
  summary: 'Model, context, usage and modes together, or only `phase`',
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
    usage: Type.Optional(AgentUsage),
    phase: Type.Optional(Display)
  })
})

export const errorRaised = durable('error', 'A turn failed, or work beside one', Type.Object(errorFields))
export const warningRaised = durable(
  'warning',
  'Something is not as configured; work goes on',
  Type.Object({ message: Type.String(), code: Type.Optional(Type.String()) })
)

export const hookResult = durable(
  'hook.result',
  'What a hook of the user said about a prompt',
  Type.Object({
    turnId: Type.Optional(Type.Integer({ minimum: 0 })),
    hookEvent: Type.String({ description: '`UserPromptSubmit`' }),
    content: Type.String(),
    blocked: Type.Optional(Type.Boolean({ description: 'the prompt does not run' }))
  })
)

export const turnsUndone = defineEvent({
  type: 'context.undone',
  summary: 'The newest turns of the user are taken back: the conversation is another one',
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
