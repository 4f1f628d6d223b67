/** The shapes of a transcript: its timeline (turns, steps, frames, markers) and what stands beside it (contract 2, Transcript shapes). */

import { named, nullable, oneOf, type Static, Time, Type } from '../../kernel/index.ts'
import { AgentUsage, ToolProgressUpdate } from '../agent/index.ts'
import { TokenUsage } from '../llm/index.ts'

const Text = Type.Optional(Type.String())
const Count = Type.Integer({ minimum: 0 })
const At = Type.Optional(Time)
const Ids = Type.Array(Type.String())
const Loose = Type.Unsafe<Readonly<Record<string, unknown>>>(Type.Object({}, { additionalProperties: true }))
const Display = Type.Unsafe<{ readonly kind: string } & Readonly<Record<string, unknown>>>(
  Type.Object({ kind: Type.String() }, { additionalProperties: true })
)

const Origin = Type.Object({ kind: Type.String() }, { additionalProperties: true, description: 'the origin as it is on record' })
export const TurnOrigin = named(
  'TranscriptOrigin',
  Type.Object({
    kind: oneOf(['user', 'cron', 'task', 'hook', 'compaction', 'side', 'other']),
    taskId: Text,
    payload: Type.Optional(Origin)
  })
)

export const TurnState = oneOf(['queued', 'running', 'completed', 'failed', 'cancelled'])
const TurnUsage = named(
  'TranscriptTurnUsage',
  Type.Object({
    inputTokens: Type.Optional(Type.Number()),
    outputTokens: Type.Optional(Type.Number()),
    cachedTokens: Type.Optional(Type.Number()),
    cost: Type.Optional(Type.Number())
  })
)
const turnHead = {
  kind: Type.Literal('turn'),
  turnId: Type.String({ examples: ['t0'] }),
  ordinal: Count,
  state: TurnState,
  origin: TurnOrigin,
  prompt: Text,
  attachmentIds: Type.Optional(Ids),
  triggerPromptId: Type.Optional(Type.String({ description: 'the prompt that began it' })),
  startedAt: At,
  endedAt: At,
  usage: Type.Optional(TurnUsage),
  durationMs: Type.Optional(Type.Number()),
  error: Text
}

const Retry = named(
  'TranscriptRetry',
  Type.Object({
    failedAttempt: Count,
    nextAttempt: Count,
    maxAttempts: Count,
    delayMs: Type.Number(),
    errorName: Type.String(),
    errorMessage: Type.String(),
    statusCode: Type.Optional(Type.Integer())
  })
)
const stepHead = {
  kind: Type.Literal('step'),
  stepId: Type.String({ examples: ['t0.1'] }),
  turnId: Type.String(),
  ordinal: Count,
  state: oneOf(['running', 'completed', 'interrupted', 'failed']),
  startedAt: At,
  endedAt: At,
  usage: Type.Optional(TokenUsage),
  finishReason: Text,
  timing: Type.Optional(
    Type.Object({ llmFirstTokenLatencyMs: Type.Optional(Type.Number()), llmStreamDurationMs: Type.Optional(Type.Number()) })
  ),
  retry: Type.Optional(Retry),
  endReason: Text,
  endMessage: Text
}

const Progress = Type.Omit(ToolProgressUpdate, ['replace'])
const frame = { frameId: Type.String() }
export const Frame = named(
  'TranscriptFrame',
  Type.Union([
    Type.Object({
      kind: Type.Literal('text'),
      ...frame,
      role: oneOf(['assistant', 'user']),
      text: Type.String({ description: 'the whole text so far' }),
      attachmentIds: Type.Optional(Ids),
      origin: Type.Optional(Origin),
      taskId: Text
    }),
    Type.Object({ kind: Type.Literal('thinking'), ...frame, text: Type.String() }),
    Type.Object({
      kind: Type.Literal('tool'),
      ...frame,
      toolCallId: Type.String(),
      name: Type.String(),
      state: oneOf(['running', 'done', 'error']),
      input: Type.Optional(Type.Unknown({ description: 'arguments as they were parsed' })),
      inputText: Type.Optional(Type.String({ description: 'arguments as the model wrote them' })),
      output: Type.Optional(Type.Unknown({ description: 'a text, or content parts' })),
      display: Type.Optional(Display),
      error: Text,
      progress: Type.Optional(Progress),
      taskId: Text,
      approvalId: Text,
      todoId: Text,
      agentRefs: Type.Optional(Type.Array(Type.Object({ agentId: Type.String(), role: Type.Optional(oneOf(['child', 'member'])) })))
    })
  ])
)

const TurnHead = named('TranscriptTurnHead', Type.Object(turnHead))
const StepHead = named('TranscriptStepHead', Type.Object(stepHead))
const Step = named('TranscriptStep', Type.Object({ ...stepHead, frames: Type.Array(Frame) }))
const Turn = named('TranscriptTurn', Type.Object({ ...turnHead, steps: Type.Array(Step) }))
const Marker = named(
  'TranscriptMarker',
  Type.Object({
    kind: Type.Literal('marker'),
    markerId: Type.String(),
    marker: Type.String({
      description:
        'compaction, undo, goal, plan.enter, plan.exit, plan.revision, swarm.enter, swarm.exit, skill, cron.fired, notice, hook, interruption'
    }),
    payload: Type.Optional(Loose),
    at: At
  })
)
const TaskRef = named(
  'TranscriptTaskRef',
  Type.Object({ kind: Type.Literal('taskref'), refId: Type.String(), taskId: Type.String(), at: At })
)
export const Item = Type.Union([Turn, Marker, TaskRef])

export const Task = named(
  'TranscriptTask',
  Type.Object({
    taskId: Type.String(),
    kind: oneOf(['shell', 'subagent', 'tool', 'other']),
    state: oneOf(['running', 'completed', 'failed', 'timed_out', 'killed', 'lost']),
    detached: Type.Boolean(),
    description: Text,
    agentId: Text,
    model: Text,
    thinkingEffort: Text,
    outputTail: Type.String(),
    startedAt: At,
    endedAt: At,
    resultSummary: Text,
    error: Text,
    stateReason: Text,
    usage: Type.Optional(TokenUsage)
  })
)
export const Interaction = named(
  'TranscriptInteraction',
  Type.Object({
    interactionId: Type.String(),
    interactionKind: Type.String({ description: 'approval, question' }),
    toolCallId: Text,
    state: oneOf(['pending', 'approved', 'rejected', 'cancelled', 'answered', 'dismissed']),
    request: Type.Optional(Type.Unknown()),
    response: Type.Optional(Type.Unknown())
  })
)
export const Attachment = named(
  'TranscriptAttachment',
  Type.Object({
    attachmentId: Type.String(),
    mediaType: Type.String(),
    name: Text,
    size: Type.Optional(Type.Integer()),
    source: Type.Optional(Type.Object({ kind: oneOf(['url', 'file', 'session_media']), url: Text, fileId: Text })),
    placeholder: Text
  })
)
export const Todo = named(
  'TranscriptTodo',
  Type.Object({
    todoId: Type.String(),
    items: Type.Array(Type.Object({ title: Type.String(), status: oneOf(['pending', 'in_progress', 'done']) })),
    updatedAt: At
  })
)
export const Prompt = named(
  'TranscriptPrompt',
  Type.Object({
    promptId: Type.String(),
    status: oneOf(['running', 'queued', 'blocked', 'completed', 'failed', 'aborted']),
    userMessageId: Text,
    content: Type.Optional(Type.Array(Type.Object({ type: Type.String() }, { additionalProperties: true }))),
    createdAt: Time,
    finishedAt: At,
    steeredAt: At
  })
)
const Goal = named(
  'TranscriptGoal',
  Type.Object({
    objective: Type.String(),
    status: Type.String(),
    completionCriterion: Text,
    budgetUsed: Type.Optional(Type.Number()),
    budgetLimit: Type.Optional(Type.Number())
  })
)
const PlanMode = Type.Object({ reviewPath: Text, version: Type.Optional(Type.Integer()) })
const SwarmMode = Type.Object({ trigger: Text })
const Activity = Type.Optional(oneOf(['idle', 'turn'], { description: 'turn: one runs; absent: none ever did' }))
const AgentMeta = named(
  'TranscriptAgentState',
  Type.Object(
    {
      model: Text,
      thinkingEffort: Text,
      usage: Type.Optional(AgentUsage),
      contextTokens: Type.Optional(Type.Number()),
      maxContextTokens: Type.Optional(Type.Number()),
      contextUsage: Type.Optional(Type.Number()),
      permission: Text,
      phase: Type.Optional(Display)
    },
    { description: 'what the agent is set to, and what it does now' }
  )
)
export const Meta = named(
  'TranscriptMeta',
  Type.Object({
    goal: Type.Optional(Goal),
    modes: Type.Optional(Type.Object({ plan: Type.Optional(PlanMode), swarm: Type.Optional(SwarmMode) })),
    activity: Activity,
    agent: Type.Optional(AgentMeta)
  })
)
const MetaChange = Type.Object({
  goal: Type.Optional(nullable(Goal)),
  modes: Type.Optional(Type.Object({ plan: Type.Optional(nullable(PlanMode)), swarm: Type.Optional(nullable(SwarmMode)) })),
  activity: Activity,
  agent: Type.Optional(AgentMeta)
})
export const RosterEntry = named(
  'TranscriptAgent',
  Type.Object({
    agentId: Type.String(),
    type: Type.Optional(oneOf(['main', 'sub', 'independent'])),
    parentAgentId: Text,
    label: Text,
    createdAt: At,
    disposedAt: At
  })
)

/** What stands beside the timeline, never in pages. */
export const entityFields = {
  tasks: Type.Array(Task),
  interactions: Type.Array(Interaction),
  attachments: Type.Array(Attachment),
  todos: Type.Array(Todo),
  prompts: Type.Array(Prompt),
  meta: Meta
}
export const Snapshot = named(
  'TranscriptSnapshot',
  Type.Object({
    items: Type.Array(Item),
    ...entityFields,
    hasMoreOlder: Type.Boolean({ description: 'there are turns before these items' })
  })
)

const op = <const N extends string>(name: N) => ({ op: Type.Literal(name) })
const place = { turnId: Type.String(), stepId: Type.String() }
export const Op = named(
  'TranscriptOp',
  Type.Union([
    Type.Object({ ...op('turn.upsert'), turn: TurnHead }, { description: 'replaces the head of a turn and keeps its steps' }),
    Type.Object({ ...op('step.upsert'), turnId: Type.String(), step: StepHead }, { description: 'replaces the head of a step' }),
    Type.Object({ ...op('frame.upsert'), ...place, frame: Frame }),
    Type.Object(
      {
        ...op('append'),
        target: Type.Union([
          Type.Object({ type: Type.Literal('frame'), ...place, ...frame }),
          Type.Object({ type: Type.Literal('task'), taskId: Type.String() })
        ]),
        offset: Type.Integer({ minimum: 0, description: 'length of the text before it, UTF-16 units' }),
        text: Type.String()
      },
      { description: 'an offset beyond the text is a gap: read the transcript again' }
    ),
    Type.Object({ ...op('marker.upsert'), item: Marker }),
    Type.Object({ ...op('taskref.upsert'), item: TaskRef }),
    Type.Object({ ...op('task.upsert'), task: Task }),
    Type.Object({ ...op('interaction.upsert'), interaction: Interaction }),
    Type.Object({ ...op('attachment.upsert'), attachment: Attachment }),
    Type.Object({ ...op('todo.upsert'), todo: Todo }),
    Type.Object({ ...op('prompt.upsert'), prompt: Prompt }),
    Type.Object(
      { ...op('meta.merge'), meta: MetaChange },
      { description: 'null clears, what is absent stays; `agent` is merged by field' }
    ),
    Type.Object(
      { ...op('items.remove'), ids: Ids },
      {
        description:
          'of turns, markers, task references and interactions; those of the tool calls of such a turn go with it, and are named, too'
      }
    )
  ])
)

export type Frame = Static<typeof Frame>
export type ToolFrame = Extract<Frame, { kind: 'tool' }>
export type Step = Static<typeof Step>
export type Turn = Static<typeof Turn>
export type TurnHead = Static<typeof TurnHead>
export type StepHead = Static<typeof StepHead>
export type Item = Static<typeof Item>
export type Op = Static<typeof Op>
export type Task = Static<typeof Task>
export type Interaction = Static<typeof Interaction>
export type Attachment = Static<typeof Attachment>
export type Todo = Static<typeof Todo>
export type Prompt = Static<typeof Prompt>
export type Meta = Static<typeof Meta>
export type MetaChange = Static<typeof MetaChange>
export type RosterEntry = Static<typeof RosterEntry>
export type Snapshot = Static<typeof Snapshot>
export type TurnOrigin = Static<typeof TurnOrigin>
