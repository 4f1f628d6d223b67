/** Events of subagents (contract 3, WebSocket events), and how the snapshot shows them. All carry the id of the agent that started them. */
import { defineEvent, named, oneOf, type Static, Time, type TObject, Type } from '../../kernel/index.ts'
import { TokenUsage } from '../llm/index.ts'

const durable = <P extends TObject>(type: string, payload: P, summary: string) =>
  defineEvent({ type, scope: 'session', durable: true, payload, summary })
const child = { subagentId: Type.String({ description: 'id of the agent' }) }

export const Spawned = Type.Object({
  ...child,
  subagentName: Type.String({ description: 'its profile' }),
  parentToolCallId: Type.String({ description: 'the call that started it; empty: none' }),
  parentAgentId: Type.String(),
  description: Type.Optional(Type.String()),
  swarmIndex: Type.Optional(Type.Integer({ minimum: 0, description: 'place among the agents of one swarm, from 1' })),
  runInBackground: Type.Boolean(),
  model: Type.Optional(Type.String()),
  thinkingEffort: Type.Optional(Type.String()),
  taskId: Type.Optional(Type.String())
})
export const Completed = Type.Object({
  ...child,
  resultSummary: Type.String(),
  usage: Type.Optional(TokenUsage),
  contextTokens: Type.Optional(Type.Integer({ minimum: 0 }))
})
export const Failed = Type.Object({ ...child, error: Type.String() })
export const Suspended = Type.Object({ ...child, reason: Type.String() })

export const subagentSpawned = durable('subagent.spawned', Spawned, 'An agent was made, or taken up again, to work for another one')
export const subagentStarted = durable('subagent.started', Type.Object(child), 'It is at work')
export const subagentSuspended = durable('subagent.suspended', Suspended, 'It waits, because the provider limits the rate of requests')
export const subagentCompleted = durable('subagent.completed', Completed, 'It has answered')
export const subagentFailed = durable(
  'subagent.failed',
  Failed,
  'It ended without an answer; not told when somebody aborted it, alone or with the turn that waited'
)

/** A subagent in the snapshot: a background task with its phase. */
export const Subagent = named(
  'Subagent',
  Type.Object({
    id: Type.String({ description: 'id of the agent' }),
    session_id: Type.String(),
    kind: Type.Literal('subagent'),
    description: Type.String(),
    status: oneOf(['running', 'completed', 'failed', 'cancelled']),
    created_at: Time,
    started_at: Type.Optional(Time),
    completed_at: Type.Optional(Time),
    output_preview: Type.Optional(Type.String()),
    model: Type.Optional(Type.String()),
    thinking_effort: Type.Optional(Type.String()),
    subagent_phase: oneOf(['queued', 'working', 'suspended', 'completed', 'failed']),
    subagent_type: Type.Optional(Type.String()),
    parent_tool_call_id: Type.Optional(Type.String()),
    suspended_reason: Type.Optional(Type.String()),
    swarm_index: Type.Optional(Type.Integer({ description: 'place among the agents of one swarm, from 1' })),
    run_in_background: Type.Optional(Type.Boolean())
  })
)
export type Subagent = Static<typeof Subagent>
