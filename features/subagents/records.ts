/** What an agent's journal says of the agents it started, the events that follow, and the list of those of its present turn. Pure. */
import { headOf, Type } from '../../kernel/index.ts'
import {
  contextCompacted,
  coreRecord,
  defineRecord,
  givenNumber,
  type HistoryRecord,
  messageTypes,
  type RecordEvent,
  recordTypes,
  type StateSpec,
  sessionForked
} from '../history/index.ts'
import {
  Completed,
  Failed,
  Spawned,
  type Subagent,
  Suspended,
  subagentCompleted,
  subagentFailed,
  subagentSpawned,
  subagentStarted,
  subagentSuspended
} from './contract.ts'

export const spawned = defineRecord('subagent.spawned', Spawned)
export const started = defineRecord('subagent.started', Type.Object({ subagentId: Type.String() }))
export const suspended = defineRecord('subagent.suspended', Suspended)
export const completed = defineRecord('subagent.completed', Completed)
export const failed = defineRecord('subagent.failed', Failed)
/** It is over, and whoever waited knows: nothing is told. */
export const stopped = defineRecord(
  'subagent.stopped',
  Type.Object({
    subagentId: Type.String(),
    with_turn: Type.Optional(Type.Boolean({ description: 'the turn that waited for it was cut, and ends next' }))
  })
)
/** It goes on in the background. */
export const detached = defineRecord('subagent.detached', Type.Object({ subagentId: Type.String() }))

const told = [
  [spawned, subagentSpawned],
  [started, subagentStarted],
  [suspended, subagentSuspended],
  [completed, subagentCompleted],
  [failed, subagentFailed]
] as const

/** Those that have events. */
export const toldTypes = recordTypes(...told.map(([spec]) => spec))

export function eventsOf(record: HistoryRecord): readonly RecordEvent[] {
  for (const [spec, event] of told) {
    if (!spec.is(record)) continue
    const { type: _type, time = 0, ...payload } = record as HistoryRecord
    return [{ type: event.type, payload, at: new Date(time) }]
  }
  return []
}

/** Subagents of the present or last turn; those at work stay until they are over. */
export interface Roster {
  /** `cut`: it ended with its turn, whose end says how. */
  readonly entries: readonly (Omit<Subagent, 'session_id'> & { readonly over: boolean; readonly hidden: boolean; readonly cut?: true })[]
}

export const rosterState: StateSpec<Roster> = {
  name: 'subagents',
  version: 1,
  records: recordTypes(spawned, started, suspended, completed, failed, stopped, detached, sessionForked, 'turn.started', 'turn.ended'),
  initial: () => ({ entries: [] }),
  reduce(state, record) {
    const at = new Date(record.time ?? 0).toISOString()
    const change = (id: string, fields: Partial<Roster['entries'][number]>): Roster => ({
      entries: state.entries.map(entry => (entry.id === id ? { ...entry, ...fields } : entry))
    })
    if (spawned.is(record)) {
      const { subagentId: id, subagentName, parentToolCallId, description, swarmIndex, runInBackground, model, thinkingEffort } = record
      const entry: Roster['entries'][number] = {
        id,
        kind: 'subagent',
        description: description ?? subagentName,
        status: 'running',
        created_at: at,
        subagent_phase: 'queued',
        subagent_type: subagentName,
        ...(parentToolCallId === '' ? {} : { parent_tool_call_id: parentToolCallId }),
        ...(model === undefined ? {} : { model }),
        ...(thinkingEffort === undefined ? {} : { thinking_effort: thinkingEffort }),
        ...(swarmIndex === undefined ? {} : { swarm_index: swarmIndex }),
        run_in_background: runInBackground,
        over: false,
        hidden: runInBackground
      }
      // One that is taken up again in the turn keeps its place.
      const place = state.entries.findIndex(other => other.id === id && other.hidden === entry.hidden)
      if (place >= 0) return { entries: state.entries.with(place, entry) }
      const others = state.entries.filter(other => other.id !== id)
      // Those of a swarm begin side by side, and are on record as it happens.
      const behind = others.findIndex(
        ({ parent_tool_call_id, swarm_index = 0 }) =>
          parent_tool_call_id === entry.parent_tool_call_id && swarm_index > (swarmIndex ?? swarm_index)
      )
      return { entries: others.toSpliced(behind < 0 ? others.length : behind, 0, entry) }
    }
    if (started.is(record)) return change(record.subagentId, { subagent_phase: 'working', started_at: at })
    if (suspended.is(record)) return change(record.subagentId, { subagent_phase: 'suspended', suspended_reason: record.reason })
    if (completed.is(record)) {
      const end = { subagent_phase: 'completed', status: 'completed', completed_at: at, over: true } as const
      return change(record.subagentId, { ...end, output_preview: headOf(record.resultSummary, previewChars) })
    }
    if (failed.is(record)) {
      const end = { subagent_phase: 'failed', status: 'failed', completed_at: at, over: true } as const
      return change(record.subagentId, { ...end, output_preview: headOf(record.error, previewChars) })
    }
    if (stopped.is(record)) {
      if (record.with_turn) return change(record.subagentId, { over: true, cut: true })
      const end = { subagent_phase: 'failed', status: 'cancelled', completed_at: at, over: true } as const
      return change(record.subagentId, end)
    }
    if (detached.is(record)) return change(record.subagentId, { hidden: true, run_in_background: true })
    if (state.entries.length === 0) return state
    if (sessionForked.is(record)) return { entries: [] }
    const core = coreRecord(record)
    if (core?.type === 'turn.started') return { entries: state.entries.filter(({ over, hidden }) => !over && hidden) }
    if (core?.type === 'turn.ended' && core.reason !== 'completed') {
      const end = { subagent_phase: 'failed', status: 'failed', completed_at: at, output_preview: `Main turn ${core.reason}` } as const
      return {
        entries: state.entries.map(({ cut, ...entry }) => (entry.hidden || (entry.over && !cut) ? entry : { ...entry, ...end, over: true }))
      }
    }
    return state
  }
}

/** Agents that were started since the last compaction, with the number of the newest message then. */
export interface Begun {
  readonly newest: number
  readonly agents: readonly { readonly id: string; readonly begun: number }[]
}

export const begunState: StateSpec<Begun> = {
  name: 'subagents.begun',
  version: 1,
  records: recordTypes(...messageTypes, sessionForked, spawned),
  initial: () => ({ newest: -1, agents: [] }),
  reduce(given, record) {
    const number = givenNumber(record)
    const state = number === undefined ? given : { ...given, newest: number }
    // No undo reaches behind them.
    if (contextCompacted.is(record) || sessionForked.is(record)) return { ...state, agents: [] }
    if (!spawned.is(record)) return state
    return { ...state, agents: [...state.agents, { id: record.subagentId, begun: state.newest }] }
  }
}

const previewChars = 3000

/** As the snapshot shows them. */
export const shownOf = ({ entries }: Roster, session_id: string): readonly Subagent[] =>
  entries.flatMap(({ over: _over, cut: _cut, hidden, ...entry }) => (hidden ? [] : [{ ...entry, session_id }]))
