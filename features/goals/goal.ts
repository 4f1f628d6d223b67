/** A goal as it is on record, what follows from its journal, and how clients see it. Pure. */
import { nullable, type Static, Type } from '../../kernel/index.ts'
import {
  coreRecord,
  defineRecord,
  type HistoryRecord,
  type RecordEvent,
  recordTypes,
  type StateSpec,
  sessionForked
} from '../history/index.ts'
import { addUsage, type ModelPrice, TokenUsage, totalCost } from '../llm/index.ts'
import { Actor, GoalChange, type GoalSnapshot, GoalStatus, goalUpdated } from './contract.ts'

const Count = Type.Integer({ minimum: 0 })

/** Limits; absent: none. */
export const Budget = Type.Object({
  turns: Type.Optional(Count),
  tokens: Type.Optional(Count),
  wall_clock_ms: Type.Optional(Count),
  cost_usd: Type.Optional(Type.Number({ minimum: 0 }))
})
export type Budget = Static<typeof Budget>

const Goal = Type.Object({
  goal_id: Type.String(),
  objective: Type.String(),
  criterion: Type.Optional(Type.String()),
  status: GoalStatus,
  turns: Count,
  usage: Type.Record(Type.String(), TokenUsage, { description: 'tokens of its turns by model alias' }),
  wall_clock_ms: Type.Integer({ minimum: 0, description: 'without the time since `since`' }),
  since: Type.Optional(Type.Integer({ description: 'active since this instant, ms' })),
  cost_usd: Type.Optional(Type.Number({ description: 'as far as prices were known when it was recorded' })),
  budget: Budget,
  reason: Type.Optional(Type.String())
})
export type Goal = Static<typeof Goal>

/** The goal from now on; null: there is none. */
export const goalRecord = defineRecord(
  'goal.updated',
  Type.Object({ goal: nullable(Goal), change: Type.Optional(GoalChange), actor: Type.Optional(Actor) })
)
/** From here on a turn works on the goal. `counts`: against its budget of turns. `goal`: as it is then, for those who watch it. */
export const goalTurn = defineRecord(
  'goal.turn',
  Type.Object({ goal_id: Type.String(), turn_id: Count, counts: Type.Boolean(), goal: Type.Optional(Goal) })
)

export interface GoalState {
  goal?: Goal
  /** The last turn that worked on a goal. */
  turn?: { readonly turn_id: number; readonly goal_id: string }
  /** The step whose tokens count since its answer. */
  counted?: string
  /** Time of the last record of work, ms. */
  seen: number
}

/** Written by a process that works. What closes a journal that was cut off has the time of the next process. */
const work = recordTypes(goalRecord, goalTurn, 'turn.started', 'step.begin', 'step.message', 'step.end')
const isWork = (record: HistoryRecord): boolean => work.has(record.type) && (record.type !== 'step.end' || record.reason !== 'interrupted')

export const goalState: StateSpec<GoalState> = {
  name: 'goals',
  version: 2,
  records: recordTypes(...work, sessionForked),
  initial: () => ({ seen: 0 }),
  reduce(state, record) {
    const next: GoalState = isWork(record) ? { ...state, seen: record.time ?? state.seen } : state
    if (goalRecord.is(record)) {
      const { goal: _goal, ...rest } = next
      return record.goal ? { ...rest, goal: record.goal } : rest
    }
    // The goal is that of the session from which this one was copied.
    if (sessionForked.is(record)) return { seen: next.seen }
    const { goal, turn } = state
    if (!goal) return next
    if (goalTurn.is(record) && record.goal_id === goal.goal_id) {
      const { turn_id, goal_id, counts } = record
      return { ...next, turn: { turn_id, goal_id }, goal: counts ? { ...goal, turns: goal.turns + 1 } : goal }
    }
    const core = coreRecord(record)
    if (
      (core?.type !== 'step.message' && core?.type !== 'step.end') ||
      !core.usage ||
      turn?.goal_id !== goal.goal_id ||
      turn.turn_id !== core.turn_id
    )
      return next
    const counted = `${core.turn_id}.${core.step}`
    if (state.counted === counted) return next
    return { ...next, counted, goal: { ...goal, usage: addUsage(goal.usage, core.model ?? '', core.usage) } }
  }
}

/** The event of a record. */
export function eventsOf(record: HistoryRecord): readonly RecordEvent[] {
  const { goal, change } = goalRecord.is(record) ? record : { goal: goalTurn.is(record) ? record.goal : undefined, change: undefined }
  if (goal === undefined) return []
  const { time = 0 } = record
  const payload: Static<typeof goalUpdated.payload> = {
    snapshot: goal ? snapshotOf(goal, time, goal.cost_usd) : null,
    ...(change ? { change } : {})
  }
  return [{ type: goalUpdated.type, payload, at: new Date(time) }]
}

const tokensOf = ({ usage }: Goal): number => Object.values(usage).reduce((sum, { output }) => sum + output, 0)
export const wallClockOf = ({ wall_clock_ms, since }: Goal, now: number): number =>
  wall_clock_ms + (since === undefined ? 0 : Math.max(0, now - since))
export const costOfGoal = ({ usage }: Goal, price: (alias: string) => ModelPrice | undefined): number | undefined => totalCost(usage, price)

/** `cost`: USD, undefined when no price is known. */
export function snapshotOf(goal: Goal, now: number, cost: number | undefined): GoalSnapshot {
  const { budget, criterion, reason } = goal
  const wall = wallClockOf(goal, now)
  const used = { turns: goal.turns, tokens: tokensOf(goal), wall_clock_ms: wall, cost_usd: cost ?? 0 }
  const left = (name: keyof Budget) => (budget[name] === undefined ? null : Math.max(0, budget[name] - used[name]))
  const reached = (name: keyof Budget) => budget[name] !== undefined && used[name] >= budget[name]
  const marks = {
    tokenBudgetReached: reached('tokens'),
    turnBudgetReached: reached('turns'),
    wallClockBudgetReached: reached('wall_clock_ms'),
    costBudgetReached: reached('cost_usd')
  }
  return {
    goalId: goal.goal_id,
    objective: goal.objective,
    ...(criterion === undefined ? {} : { completionCriterion: criterion }),
    status: goal.status,
    turnsUsed: used.turns,
    tokensUsed: used.tokens,
    wallClockMs: wall,
    budget: {
      tokenBudget: budget.tokens ?? null,
      turnBudget: budget.turns ?? null,
      wallClockBudgetMs: budget.wall_clock_ms ?? null,
      costBudgetUsd: budget.cost_usd ?? null,
      remainingTokens: left('tokens'),
      remainingTurns: left('turns'),
      remainingWallClockMs: left('wall_clock_ms'),
      remainingCostUsd: left('cost_usd'),
      ...marks,
      overBudget: Object.values(marks).some(Boolean)
    },
    ...(reason === undefined ? {} : { terminalReason: reason })
  }
}

/** Which limit is reached, for people; undefined: none. */
export function reachedLimit({ budget }: GoalSnapshot, { midTurn }: { readonly midTurn: boolean }): string | undefined {
  if (budget.tokenBudgetReached) return `the budget of ${budget.tokenBudget} tokens is used up`
  if (budget.costBudgetReached) return `the budget of ${budget.costBudgetUsd} USD is used up`
  if (budget.wallClockBudgetReached) return `the time budget of ${Math.round((budget.wallClockBudgetMs ?? 0) / 1000)} s is used up`
  // The last turn that the budget allows is worked through.
  if (budget.turnBudgetReached && !midTurn) return `the budget of ${budget.turnBudget} turns is used up`
  return undefined
}
