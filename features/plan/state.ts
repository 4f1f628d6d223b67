/** What the records say of plan mode: whether it is on, what the model was told of it, and how often each plan was put up for review. */
import { type CoreRecord, coreRecord, recordTypes, type StateSpec } from '../history/index.ts'
import { planEntered, planLeft, planRevised } from './contract.ts'

export const reminderVariant = 'plan_mode'

export interface PlanState {
  /** Undefined: as the session began. */
  readonly active?: boolean
  /** The plan, also after plan mode was left; undefined: as the session began. */
  readonly id?: string
  /** The model was told that plan mode is on. */
  readonly told: boolean
  /** Plan mode began, or somebody wrote, since the model was told everything about it. */
  readonly due: boolean
  /** Answers of the model since it was told everything, and since it was told anything. */
  readonly sinceFull: number
  readonly sinceAny: number
}

/** Undo takes it back. */
export const planState: StateSpec<PlanState> = {
  name: 'plan',
  version: 1,
  rewinds: true,
  records: recordTypes(planEntered, planLeft, 'step.message', 'message'),
  initial: () => ({ told: false, due: false, sinceFull: 0, sinceAny: 0 }),
  reduce(state, record) {
    // Called for every record: by its type first.
    switch (record.type) {
      case planEntered.type:
        return !planEntered.is(record) || record.by === 'default' ? state : { ...state, active: true, id: record.id, due: true }
      case planLeft.type:
        return planLeft.is(record) ? { ...state, active: false, id: record.id } : state
      case 'step.message':
        return reminds(state) ? { ...state, sinceFull: state.sinceFull + 1, sinceAny: state.sinceAny + 1 } : state
      case 'message':
        return heard(state, coreRecord(record))
      default:
        return state
    }
  }
}

/** Whoever does not plan keeps nothing. */
const reminds = ({ told, active }: PlanState): boolean => told && active !== false

function heard(state: PlanState, record: CoreRecord | undefined): PlanState {
  if (record?.type !== 'message') return state
  if (record.origin?.variant === reminderVariant) {
    const { form } = record.origin
    if (form === 'short') return { ...state, sinceAny: 0 }
    return { ...state, told: form === 'full', due: false, sinceFull: 0, sinceAny: 0 }
  }
  const isPrompt = record.role === 'user' && (record.origin?.kind ?? 'user') === 'user'
  return isPrompt && reminds(state) && !state.due ? { ...state, due: true } : state
}

/** The plan with which the session began in plan mode. Undo does not take that back. */
export const beginState: StateSpec<{ id?: string }> = {
  name: 'plan.begin',
  version: 1,
  records: recordTypes(planEntered),
  initial: () => ({}),
  reduce: (state, record) => (planEntered.is(record) && record.by === 'default' ? { id: record.id } : state)
}

/** The newest version of each plan. Undo does not take them back: a kept revision is never replaced. */
export const revisionState: StateSpec<Record<string, number>> = {
  name: 'plan.revisions',
  version: 1,
  records: recordTypes(planRevised),
  initial: () => ({}),
  reduce(versions, record) {
    if (planRevised.is(record)) versions[record.id] = record.version
    return versions
  }
}
