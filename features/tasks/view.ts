/** Tasks as clients of the API see them (contract 2, Background task). */
import type { TaskInfo, TaskObject } from './contract.ts'
import type { TaskView } from './service.ts'

const kinds = { process: 'bash', agent: 'subagent', question: 'tool' } as const
const statuses = {
  running: 'running',
  completed: 'completed',
  failed: 'failed',
  timed_out: 'failed',
  lost: 'failed',
  killed: 'cancelled'
} as const

export const statusOf = ({ status }: TaskInfo): TaskObject['status'] => statuses[status]

const iso = (ms: number) => new Date(ms).toISOString()

export function taskObject({ info, agent, tool_call_id }: TaskView): TaskObject {
  const started = iso(info.startedAt)
  const caller = tool_call_id ?? (info.kind === 'agent' ? info.parentToolCallId : info.kind === 'question' ? info.toolCallId : undefined)
  return {
    id: info.taskId,
    session_id: agent.session.id,
    kind: kinds[info.kind],
    description: info.description,
    status: statusOf(info),
    created_at: started,
    started_at: started,
    completed_at: info.endedAt === null ? undefined : iso(info.endedAt),
    ...(info.kind === 'process' ? { command: info.command } : {}),
    ...(info.kind === 'agent'
      ? { model: info.model, thinking_effort: info.thinkingEffort, agent_id: info.agentId, subagent_type: info.subagentType }
      : {}),
    parent_tool_call_id: caller,
    run_in_background: info.detached ?? false
  }
}

/** The same with the end of its output; nothing is added when there is none. */
export async function withOutput(task: TaskView, bytes: number): Promise<TaskObject> {
  const text = bytes === 0 ? '' : await task.output(bytes)
  const shown = taskObject(task)
  return text === '' ? shown : { ...shown, output_preview: text, output_bytes: Buffer.byteLength(text) }
}
