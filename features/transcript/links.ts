/** What records of other packs say of a tool call: the approval that gates it, its task, the agents it started. Pure. */
import type { HistoryRecord } from '../history/index.ts'
import { interactionRequested } from '../interactions/index.ts'
import { subagentRecords } from '../subagents/index.ts'
import { taskBegun } from '../tasks/index.ts'
import type { ToolFrame } from './shapes.ts'

export interface Link {
  readonly toolCallId: string
  readonly change: Pick<ToolFrame, 'approvalId' | 'taskId'> & { readonly agentRef?: NonNullable<ToolFrame['agentRefs']>[number] }
}

export function linksOf(record: HistoryRecord): readonly Link[] {
  switch (record.type) {
    case interactionRequested.type: {
      if (!interactionRequested.is(record)) return []
      const { tool_call_id } = (record.request ?? {}) as { readonly tool_call_id?: unknown }
      return typeof tool_call_id === 'string' ? [{ toolCallId: tool_call_id, change: { approvalId: record.id } }] : []
    }
    case taskBegun.type: {
      if (!taskBegun.is(record) || record.tool_call_id === undefined) return []
      return [{ toolCallId: record.tool_call_id, change: { taskId: record.info.taskId } }]
    }
    case subagentRecords.spawned.type: {
      if (!subagentRecords.spawned.is(record) || record.parentToolCallId === '') return []
      const role = record.swarmIndex === undefined ? ('child' as const) : ('member' as const)
      return [{ toolCallId: record.parentToolCallId, change: { agentRef: { agentId: record.subagentId, role } } }]
    }
    default:
      return []
  }
}
