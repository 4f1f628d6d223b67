/** Wire shapes, routes, events and errors of tasks (contract 2, Background tasks; contract 3, WebSocket events). */
import { defineEvent, defineRoute, errorSpec, named, nullable, oneOf, type Static, Time, Type } from '../../kernel/index.ts'
import { SessionBusy, SessionMissing } from '../sessions/index.ts'

/** 40406; a session that is not loaded has no tasks. */
export const TaskMissing = errorSpec('task_missing', 40406, 'task not found')
/** 40904, data `{ cancelled: false }`, details `{ current_status }`. */
export const TaskFinished = errorSpec('task_finished', 40904, 'task already finished', 200, {
  data: Type.Object({ cancelled: Type.Literal(false) }),
  details: Type.Object({ current_status: Type.String() })
})

const Text = Type.Optional(Type.String())
const Ms = Type.Integer({ description: 'ms since 1970' })
const own = {
  taskId: Type.String({ description: '`bash-`, `agent-` or `question-` and 8 characters of [0-9a-z]' }),
  description: Type.String(),
  status: oneOf(['running', 'completed', 'failed', 'timed_out', 'killed', 'lost'], {
    description: 'lost: its process died with it, or left it behind'
  }),
  detached: Type.Optional(Type.Boolean({ description: 'no call waits for it' })),
  startedAt: Ms,
  endedAt: nullable(Ms),
  stopReason: Text,
  terminalNotificationSuppressed: Type.Optional(Type.Boolean({ description: 'the agent is not told of its end' })),
  timeoutMs: Type.Optional(Type.Integer({ description: 'time that it may take; absent: no limit' }))
}

/** A task as events tell it. */
export const TaskInfo = named(
  'TaskInfo',
  Type.Union([
    Type.Object({
      ...own,
      kind: Type.Literal('process'),
      command: Type.String(),
      pid: Type.Integer(),
      parentToolCallId: Text,
      exitCode: nullable(Type.Integer({ description: 'null: it runs, or a signal ended it' }))
    }),
    Type.Object({
      ...own,
      kind: Type.Literal('agent'),
      agentId: Text,
      subagentType: Text,
      parentToolCallId: Text,
      model: Text,
      thinkingEffort: Text
    }),
    Type.Object({ ...own, kind: Type.Literal('question'), questionCount: Type.Integer(), toolCallId: Text })
  ])
)
export type TaskInfo = Static<typeof TaskInfo>

const payload = Type.Object({ info: TaskInfo })
export const taskStarted = defineEvent({
  type: 'task.started',
  scope: 'session',
  durable: true,
  payload,
  summary: 'A task began in the background, or was moved there'
})
export const taskTerminated = defineEvent({
  type: 'task.terminated',
  scope: 'session',
  durable: true,
  payload,
  summary: 'A task in the background is over'
})
export const taskNotified = defineEvent({
  type: 'task.notified',
  scope: 'session',
  durable: true,
  payload: Type.Object({
    notificationType: Type.String({ description: '`task.` and the status' }),
    sourceKind: Type.Literal('background_task'),
    sourceId: Type.String({ description: 'the task' }),
    title: Type.String(),
    severity: oneOf(['info', 'warning']),
    body: Type.String({ description: 'how it ended' })
  }),
  summary: 'The end of a task was put to its agent'
})

const Status = oneOf(['running', 'completed', 'failed', 'cancelled'])
const Kind = oneOf(['bash', 'subagent', 'tool'])

export const TaskObject = named(
  'Task',
  Type.Object({
    id: Type.String(),
    session_id: Type.String(),
    kind: Kind,
    description: Type.String(),
    status: Status,
    created_at: Time,
    started_at: Type.Optional(Time),
    completed_at: Type.Optional(Time),
    command: Text,
    model: Text,
    thinking_effort: Text,
    agent_id: Text,
    subagent_type: Text,
    parent_tool_call_id: Type.Optional(Type.String({ description: 'the tool call that started it' })),
    run_in_background: Type.Boolean({ description: 'false: the call that started it waits for it, or waited to its end' }),
    output_preview: Type.Optional(Type.String({ description: 'end of its output' })),
    output_bytes: Type.Optional(Type.Integer({ minimum: 0, description: 'length of output_preview in UTF-8' }))
  })
)
export type TaskObject = Static<typeof TaskObject>

const session = { session_id: Type.String({ minLength: 1 }) }
const task = { ...session, task_id: Type.String({ minLength: 1 }) }
const path = '/api/v1/sessions/{session_id}/tasks' as const

/** Tasks of the main agent, and those of other agents that run in the background. Does not load the session. */
export const listTasks = defineRoute({
  method: 'GET',
  path,
  summary: 'List background tasks, oldest first',
  params: Type.Object(session),
  query: Type.Object({ status: Type.Optional(Status) }),
  data: Type.Object({ items: Type.Array(TaskObject) }),
  errors: [SessionMissing]
})

export const readTask = defineRoute({
  method: 'GET',
  path: `${path}/{task_id}`,
  summary: 'Read a task, also with the end of its output',
  params: Type.Object(task),
  query: Type.Object({
    with_output: Type.Boolean({ default: false }),
    output_bytes: Type.Integer({ minimum: 0, default: 32_768, description: 'how much of the output, from its end; at most 1 MiB is kept' })
  }),
  data: TaskObject,
  errors: [SessionMissing, TaskMissing]
})

/** Answers when the task is over. */
export const cancelTask = defineRoute({
  method: 'POST',
  path: `${path}/{task_id}:cancel`,
  summary: 'Stop a running task',
  params: Type.Object(task),
  data: Type.Object({ cancelled: Type.Literal(true) }),
  errors: [SessionMissing, SessionBusy, TaskMissing, TaskFinished]
})

export const detachTask = defineRoute({
  method: 'POST',
  path: `${path}/{task_id}:detach`,
  summary: 'Move a running foreground task to the background',
  params: Type.Object(task),
  data: Type.Object({ detached: Type.Boolean({ description: 'false: it was not in the foreground' }), status: Status }),
  errors: [SessionMissing, SessionBusy, TaskMissing]
})
