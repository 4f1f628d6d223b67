/** What the records say of plan mode: whether it is on, what the model was told of it, and how often each plan was put up for review. */
import { coreRecord, type StateSpec } from '../history/index.ts'
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
  initial: () => ({ told: false, due: false, sinceFull: 0, sinceAny: 0 }),
  reduce(state, record) {
    if (planEntered.is(record)) return record.by === 'default' ? state : { ...state, active: true, id: record.id, due: true }
    if (planLeft.is(record)) return { ...state, active: false, id: record.id }
    const core = coreRecord(record)
    if (core?.type === 'message' && core.origin?.variant === reminderVariant) {
      const { form } = core.origin
      if (form === 'short') return { ...state, sinceAny: 0 }
      return { ...state, told: form === 'full', due: false, sinceFull: 0, sinceAny: 0 }
    }
    // Whoever does not plan keeps nothing.
    if (!state.told || state.active === false) return state
    if (core?.type === 'step.message') return { ...state, sinceFull: state.sinceFull + 1, sinceAny: state.sinceAny + 1 }
    const isPrompt = core?.type === 'message' && core.role === 'user' && (core.origin?.kind ?? 'user') === 'user'
    return isPrompt && !state.due ? { ...state, due: true } : state
  }
}

/** The plan with which the session began in plan mode. Undo does not take that back. */
export const beginState: StateSpec<{ id?: string }> = {
  name: 'plan.begin',
  version: 1,
  initial: () => ({}),
  reduce: (state, record) => (planEntered.is(record) && record.by === 'default' ? { id: record.id } : state)
}

/** The newest version of each plan. Undo does not take them back: a kept revision is never replaced. */
export const revisionState: StateSpec<Record<string, number>> = {
  name: 'plan.revisions',
  version: 1,
  initial: () => ({}),
  reduce(versions, record) {
    if (planRevised.is(record)) versions[record.id] = record.version
    return versions
  }
}
