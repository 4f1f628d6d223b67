/** Tasks as a transcript shows them, from what is on record of commands, subagents and others. Pure. */
import type { HistoryRecord } from '../history/index.ts'
import { subagentRecords } from '../subagents/index.ts'
import type { TaskInfo } from '../tasks/index.ts'
import type { Task } from './shapes.ts'

const iso = (time: number | undefined): string => new Date(time ?? 0).toISOString()

const thinksWith = ({ model, thinkingEffort }: Pick<Task, 'model' | 'thinkingEffort'>): Pick<Task, 'model' | 'thinkingEffort'> => ({
  ...(model === undefined ? {} : { model }),
  ...(thinkingEffort === undefined ? {} : { thinkingEffort })
})

/** A task that began or ended; `known`: what was known of it. */
export function taskOf(info: TaskInfo, known: Task | undefined): Task {
  const { taskId, description, status, detached = false, startedAt, endedAt, stopReason } = info
  const kind = info.kind === 'process' ? 'shell' : info.kind === 'agent' ? 'subagent' : 'other'
  const agentId = info.kind === 'agent' ? info.agentId : undefined
  const thinking = info.kind === 'agent' ? thinksWith(info) : {}
  return {
    outputTail: '',
    ...known,
    taskId,
    kind,
    state: status,
    detached,
    description,
    ...(agentId === undefined ? {} : { agentId }),
    ...thinking,
    startedAt: iso(startedAt),
    ...(endedAt === null ? {} : { endedAt: iso(endedAt) }),
    ...(stopReason === undefined ? {} : { stateReason: stopReason })
  }
}

/** The task of a subagent after a record; undefined: the record is of no subagent, or of one that has no task. */
export function subagentTask(record: HistoryRecord, tasks: Iterable<Task>): Task | undefined {
  const { spawned, started, suspended, completed, failed, stopped, detached } = subagentRecords
  if (spawned.is(record)) {
    const { subagentId: agentId, taskId = agentId, description, subagentName, runInBackground, model, thinkingEffort } = record
    const begun = { state: 'running', detached: runInBackground, agentId, outputTail: '' } as const
    return { taskId, kind: 'subagent', ...begun, ...thinksWith({ model, thinkingEffort }), description: description ?? subagentName }
  }
  if (!record.type.startsWith('subagent.')) return undefined
  const task = [...tasks].findLast(({ agentId }) => agentId === record.subagentId)
  if (!task) return undefined
  const at = iso(record.time)
  if (started.is(record)) return { ...task, startedAt: task.startedAt ?? at }
  if (suspended.is(record)) return { ...task, stateReason: record.reason }
  if (completed.is(record)) {
    const { resultSummary, usage } = record
    return { ...task, state: 'completed', endedAt: at, resultSummary, ...(usage ? { usage } : {}) }
  }
  if (failed.is(record)) return { ...task, state: 'failed', endedAt: at, error: record.error }
  if (stopped.is(record)) return { ...task, state: 'killed', endedAt: at }
  return detached.is(record) ? { ...task, detached: true } : undefined
}
