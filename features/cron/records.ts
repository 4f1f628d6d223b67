/** Scheduled prompts in the journal of the main agent, the jobs that there are by it, and the event of a fire. */
import { Type } from '../../kernel/index.ts'
import { defineRecord, type HistoryRecord, type RecordEvent, recordTypes, type StateSpec } from '../history/index.ts'
import { CronOrigin, cronFired } from './contract.ts'

const Ms = Type.Integer({ description: 'ms since 1970' })
export const createdRecord = defineRecord(
  'cron.created',
  Type.Object({
    session_id: Type.String({ description: 'a fork has the record, not the job' }),
    job_id: Type.String({ description: 'ULID' }),
    cron: Type.String(),
    prompt: Type.String(),
    recurring: Type.Boolean(),
    created_at: Ms
  })
)
export const deletedRecord = defineRecord('cron.deleted', Type.Object({ job_id: Type.String() }))
/** A job is due: its message follows. */
export const firedRecord = defineRecord(
  'cron.fired',
  Type.Object({
    session_id: Type.String(),
    job_id: Type.String(),
    notice_id: Type.String({ description: 'id of the message' }),
    cursor: Type.Integer({ description: 'times up to here are done, ms' }),
    last: Type.Boolean({ description: 'the job is over' }),
    origin: CronOrigin,
    prompt: Type.String()
  })
)

export interface Job {
  readonly session_id: string
  readonly job_id: string
  readonly cron: string
  readonly prompt: string
  readonly recurring: boolean
  readonly created_at: number
  /** Times up to here are done, ms. */
  readonly cursor: number
}

/** A fire whose message the agent does not have yet. */
export interface Fire {
  readonly session_id: string
  readonly notice_id: string
  readonly origin: CronOrigin
  readonly prompt: string
}

export interface CronState {
  readonly jobs: readonly Job[]
  readonly fires: readonly Fire[]
}

export const cronState: StateSpec<CronState> = {
  name: 'cron',
  version: 1,
  records: recordTypes(createdRecord, deletedRecord, firedRecord, 'message', 'notice.accepted'),
  initial: () => ({ jobs: [], fires: [] }),
  reduce(state, record) {
    if (createdRecord.is(record)) {
      const { type: _type, time: _time, ...job } = record
      return { ...state, jobs: [...state.jobs, { ...job, cursor: job.created_at }] }
    }
    if (state.jobs.length + state.fires.length === 0) return state
    if (deletedRecord.is(record)) return { ...state, jobs: state.jobs.filter(({ job_id }) => job_id !== record.job_id) }
    if (firedRecord.is(record)) {
      const { session_id, job_id, notice_id, origin, prompt, cursor, last } = record
      const jobs = state.jobs.flatMap(job => (job.job_id !== job_id ? [job] : last ? [] : [{ ...job, cursor }]))
      return { jobs, fires: [...state.fires, { session_id, notice_id, origin, prompt }] }
    }
    if (state.fires.length === 0) return state
    const taken = record.type === 'message' ? record.id : record.type === 'notice.accepted' ? record.notice_id : undefined
    return taken === undefined ? state : { ...state, fires: state.fires.filter(({ notice_id }) => notice_id !== taken) }
  }
}

/** Pure: the events of a record. */
export function eventsOf(record: HistoryRecord): readonly RecordEvent[] {
  if (!firedRecord.is(record)) return []
  const { origin, prompt } = record
  return [{ type: cronFired.type, payload: { origin, prompt }, at: new Date(record.time ?? 0) }]
}
