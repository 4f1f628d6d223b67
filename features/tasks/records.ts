/** Tasks in the journal of their agent: begun in the background, over, reported; what is known of them by it; the events that follow. */
import { type Static, Type } from '../../kernel/index.ts'
import { noticeDropped } from '../agent/index.ts'
import {
  defineRecord,
  givenNumber,
  type HistoryRecord,
  messageTypes,
  type RecordEvent,
  recordTypes,
  type StateSpec
} from '../history/index.ts'
import { TaskInfo, taskNotified, taskStarted, taskTerminated } from './contract.ts'

/** Bytes of the output in a terminal record. */
export const TAIL_BYTES = 4096

/** It runs in the background from here on. */
export const startedRecord = defineRecord(
  'task.started',
  Type.Object({
    session_id: Type.String({ description: 'a fork has the records, not the task' }),
    agent_id: Type.String(),
    info: TaskInfo,
    tool_call_id: Type.Optional(Type.String())
  })
)
export const terminatedRecord = defineRecord(
  'task.terminated',
  Type.Object({
    info: TaskInfo,
    tail: Type.String({ description: 'end of its output, at most 4 KiB' }),
    output_size: Type.Integer({ description: 'bytes of all of its output' }),
    saved: Type.Boolean({ description: 'all of it is in its file' }),
    elsewhere: Type.Optional(Type.Boolean({ description: 'for this journal alone, which was copied: the task is that of another agent' })),
    quiet: Type.Optional(Type.Boolean({ description: 'the agent is told with its next turn; no turn begins for it' })),
    hint: Type.Optional(Type.String({ description: 'for the agent: how to go on' }))
  })
)
/** It goes on without the server. */
export const leftRecord = defineRecord('task.left', Type.Object({ task_id: Type.String() }))
/** The result of this call tells the agent of the ends. */
export const reportedRecord = defineRecord(
  'task.reported',
  Type.Object({ task_ids: Type.Array(Type.String()), tool_call_id: Type.String() })
)

/** A task that ever ran in the background. */
export interface TaskEntry {
  /** Whose it is: a copied journal has tasks of others. */
  readonly session_id: string
  readonly agent_id: string
  readonly info: TaskInfo
  readonly tool_call_id?: string
  /** Compactions of the context before it began. */
  readonly compactions: number
  readonly left?: boolean
  readonly end?: {
    readonly tail: string
    readonly output_size: number
    readonly saved: boolean
    readonly quiet?: boolean
    readonly hint?: string
  }
  /** Number of the newest message when it began. */
  readonly begun: number
  /** The turn that began it was taken back: the agent knows nothing of it, and is told nothing. */
  readonly undone?: boolean
  /** Number of the message that told the agent of its end. */
  readonly told?: number
  /** The call whose result will. */
  readonly reported_by?: string
}

export interface TaskState {
  /** In the order in which they began. */
  readonly entries: readonly TaskEntry[]
  /** Compactions of the context so far. */
  readonly compactions: number
  /** Number of the newest message. */
  readonly newest: number
}

/** Tasks that are over and told of; older ones are forgotten. */
const kept = 100

/** Of the message that tells of an end. */
export const noticeId = (task_id: string) => `msg_${task_id}`

/** The end is told with the next turn; no turn begins for it. */
const quiet = (entry: TaskEntry): TaskEntry => (entry.end ? { ...entry, end: { ...entry.end, quiet: true } } : entry)

/** Its end is on record, and the agent was not told of it and is to be. */
export const isUntold = ({ info, end, told, reported_by, undone }: TaskEntry): boolean =>
  end !== undefined && !undone && told === undefined && reported_by === undefined && info.terminalNotificationSuppressed !== true

export const taskState: StateSpec<TaskState> = {
  name: 'tasks',
  version: 3,
  records: recordTypes(...messageTypes, 'context.undone', noticeDropped, startedRecord, terminatedRecord, reportedRecord, leftRecord),
  initial: () => ({ entries: [], compactions: 0, newest: -1 }),
  reduce(given, record) {
    const number = givenNumber(record)
    const state = number === undefined ? given : { ...given, newest: number }
    const { compactions, newest } = state
    if (record.type === 'context.compacted') return { ...state, compactions: compactions + 1 }
    if (startedRecord.is(record)) {
      const { session_id, agent_id, info, tool_call_id } = record
      const entry = { session_id, agent_id, info, compactions, begun: newest, ...(tool_call_id === undefined ? {} : { tool_call_id }) }
      return { ...state, entries: [...state.entries, entry] }
    }
    if (state.entries.length === 0) return state
    const change = changeBy(record)
    if (!change) return state
    const entries = state.entries.map(change)
    return entries.every((entry, at) => entry === state.entries[at]) ? state : { ...state, entries: trimmed(entries) }
  }
}

/** What a record changes in the tasks; undefined: nothing. */
function changeBy(record: HistoryRecord): ((entry: TaskEntry) => TaskEntry) | undefined {
  const { type } = record
  const number = record.number as number | undefined // stamped on messages
  if (type === 'message') {
    const { kind, taskId } = (record.origin ?? {}) as { readonly kind?: unknown; readonly taskId?: unknown }
    return kind === 'task' ? entry => (entry.info.taskId === taskId && entry.end ? { ...entry, told: number ?? 0 } : entry) : undefined
  }
  if (type === 'tool.result') {
    return entry => {
      if (entry.reported_by === undefined || entry.reported_by !== record.tool_call_id) return entry
      const { reported_by: _call, ...rest } = entry
      // A call that was cut off told nothing.
      return record.is_error || record.synthetic ? rest : { ...rest, told: number ?? 0 }
    }
  }
  if (type === 'context.undone') {
    const from = Number(record.from)
    return entry => {
      // The first message that goes is the one that opens the turn: its work begins behind it.
      if (entry.begun >= from) return { ...entry, undone: true }
      if (entry.told === undefined || entry.told < from) return entry
      const { told: _told, ...rest } = entry
      return quiet(rest)
    }
  }
  if (noticeDropped.is(record)) return entry => (record.notice_ids.includes(noticeId(entry.info.taskId)) ? quiet(entry) : entry)
  if (terminatedRecord.is(record)) {
    const { info, type: _type, time: _time, ...end } = record
    return entry => (entry.info.taskId === info.taskId ? { ...entry, info, end } : entry)
  }
  if (reportedRecord.is(record)) {
    return entry => (record.task_ids.includes(entry.info.taskId) ? { ...entry, reported_by: record.tool_call_id } : entry)
  }
  if (leftRecord.is(record)) return entry => (entry.info.taskId === record.task_id ? { ...entry, left: true } : entry)
  return undefined
}

function trimmed(entries: readonly TaskEntry[]): readonly TaskEntry[] {
  let many = entries.filter(entry => entry.end && !isUntold(entry)).length - kept
  return many <= 0 ? entries : entries.filter(entry => !(entry.end && !isUntold(entry) && many-- > 0))
}

/** Pure: the events of a record. */
export function eventsOf(record: HistoryRecord): readonly RecordEvent[] {
  const at = new Date(record.time ?? 0)
  if (record.type === 'message') return noticeOf(record).map(payload => ({ type: taskNotified.type, payload, at }))
  const spec = startedRecord.is(record) ? taskStarted : terminatedRecord.is(record) ? taskTerminated : undefined
  if (record.elsewhere) return []
  return spec ? [{ type: spec.type, payload: { info: record.info }, at }] : []
}

/** As `notification` (texts) writes it: title, severity, and how it ended. */
const noticeText = /^<notification [^\n]*\nTitle: ([^\n]*)\nSeverity: (info|warning)\n([^\n]*)/

/** The agent reads of the end of a task. */
export function noticeOf({ origin, content }: Readonly<Record<string, unknown>>): Static<typeof taskNotified.payload>[] {
  const { kind, taskId, status } = (origin ?? {}) as { readonly kind?: unknown; readonly taskId?: unknown; readonly status?: unknown }
  const [part] = Array.isArray(content) ? (content as { readonly text?: unknown }[]) : []
  const said = kind === 'task' && typeof part?.text === 'string' ? noticeText.exec(part.text) : null
  if (!said) return []
  const [, title = '', severity, body = ''] = said
  const about = { notificationType: `task.${status}`, sourceKind: 'background_task', sourceId: String(taskId) } as const
  return [{ ...about, title, severity: severity === 'info' ? 'info' : 'warning', body }]
}
