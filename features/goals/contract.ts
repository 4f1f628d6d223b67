/** Wire shapes, route, event and errors of goals (contract 2, Goal snapshot; GET goal; profile update). */
import { defineEvent, defineRoute, errorSpec, named, nullable, oneOf, type Static, Type } from '../../kernel/index.ts'
import { SessionMissing } from '../sessions/index.ts'

export const GoalExists = errorSpec('goal_exists', 40913, 'the session has a goal already')
export const GoalMissing = errorSpec('goal_missing', 40914, 'the session has no goal')
export const GoalNotPausable = errorSpec('goal_not_pausable', 40915, 'the goal cannot be paused in its present state')
export const GoalNotResumable = errorSpec('goal_not_resumable', 40916, 'the goal cannot be resumed in its present state')
export const GoalEmpty = errorSpec('goal_empty', 40917, 'the objective of a goal must not be blank')
export const GoalTooLong = errorSpec('goal_too_long', 40918, 'the objective of a goal has at most 4000 characters')

/** Characters of an objective, after trimming; a completion criterion is cut there. */
export const MAX_OBJECTIVE = 4000

const Count = Type.Integer({ minimum: 0 })
const limit = nullable(Type.Number({ minimum: 0 }))

export const GoalStatus = oneOf(['active', 'paused', 'blocked', 'complete'])

export const GoalSnapshot = named(
  'Goal',
  Type.Object({
    goalId: Type.String(),
    objective: Type.String(),
    completionCriterion: Type.Optional(Type.String()),
    status: GoalStatus,
    turnsUsed: Count,
    tokensUsed: Type.Integer({ minimum: 0, description: 'output tokens of turns that worked on the goal' }),
    wallClockMs: Type.Integer({ minimum: 0, description: 'time in which the goal was active' }),
    budget: Type.Object(
      {
        tokenBudget: limit,
        turnBudget: limit,
        wallClockBudgetMs: limit,
        costBudgetUsd: limit,
        remainingTokens: limit,
        remainingTurns: limit,
        remainingWallClockMs: limit,
        remainingCostUsd: limit,
        tokenBudgetReached: Type.Boolean(),
        turnBudgetReached: Type.Boolean(),
        wallClockBudgetReached: Type.Boolean(),
        costBudgetReached: Type.Boolean(),
        overBudget: Type.Boolean({ description: 'any of them is reached' })
      },
      { description: 'null: no such limit' }
    ),
    terminalReason: Type.Optional(Type.String({ description: 'why it is paused, blocked or complete' }))
  })
)
export type GoalSnapshot = Static<typeof GoalSnapshot>

/** Who changed a goal. */
export const Actor = oneOf(['user', 'model', 'runtime', 'system'])
export type Actor = Static<typeof Actor>

export const GoalChange = named(
  'GoalChange',
  Type.Object({
    kind: oneOf(['lifecycle', 'completion']),
    status: Type.Optional(GoalStatus),
    reason: Type.Optional(Type.String()),
    stats: Type.Optional(Type.Object({ turnsUsed: Count, tokensUsed: Count, wallClockMs: Count })),
    actor: Type.Optional(Actor)
  })
)
export type GoalChange = Static<typeof GoalChange>

/** Goal of the main agent; null when it has none. */
export const readGoal = defineRoute({
  method: 'GET',
  path: '/api/v1/sessions/{session_id}/goal',
  summary: 'Read the goal of a session',
  params: Type.Object({ session_id: Type.String({ minLength: 1 }) }),
  data: nullable(GoalSnapshot),
  errors: [SessionMissing]
})

export const goalUpdated = defineEvent({
  type: 'goal.updated',
  scope: 'session',
  durable: true,
  payload: Type.Object({ snapshot: nullable(GoalSnapshot), change: Type.Optional(GoalChange) }),
  summary: 'A goal was created or goes on with a turn (no change), was paused, resumed, blocked, completed, or cleared (null)'
})
