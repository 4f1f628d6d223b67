/** What the model reads about a goal. */
import { asData } from '../history/index.ts'
import type { GoalSnapshot } from './contract.ts'

function progress({ turnsUsed, tokensUsed, wallClockMs, budget }: GoalSnapshot): string {
  const lines = [
    `Turns: ${turnsUsed}${budget.turnBudget === null ? '' : ` of ${budget.turnBudget}`}`,
    `Output tokens: ${tokensUsed}${budget.tokenBudget === null ? '' : ` of ${budget.tokenBudget}`}`,
    `Time: ${Math.round(wallClockMs / 1000)} s${budget.wallClockBudgetMs === null ? '' : ` of ${Math.round(budget.wallClockBudgetMs / 1000)} s`}`
  ]
  if (budget.costBudgetUsd !== null) lines.push(`Cost budget: ${budget.costBudgetUsd} USD, left: ${budget.remainingCostUsd} USD`)
  return lines.join('\n')
}

const rules = `Rules:
- Work in bounded slices: after each turn you are called again as long as the goal is active.
- Call UpdateGoal with status "complete" only when the objective is reached and you have verified it; say honestly what you checked.
- Call UpdateGoal with status "blocked" when the same obstacle has held you up for at least 3 turns, or at once when the goal is impossible
  or unsafe. Say what is missing.
- A message of the user comes first; afterwards go on with the goal.`

export function goalReminder(goal: GoalSnapshot): string {
  const criterion = goal.completionCriterion === undefined ? '' : `\nIt is complete when: ${goal.completionCriterion}`
  return `This session has an active goal.\nObjective: ${goal.objective}${criterion}\n${progress(goal)}\n${rules}`
}

export function continuation(goal: GoalSnapshot): string {
  const criterion = goal.completionCriterion === undefined ? '' : `\nIt is complete when: ${goal.completionCriterion}`
  return `Go on with the goal.\n${asData(`Objective: ${goal.objective}${criterion}`)}\n\nDo one bounded slice of work towards it. Check honestly where you stand before you end the turn.\n${rules}`
}

export const progressReminder = (goal: GoalSnapshot): string => `Where the goal stands:\n${progress(goal)}`
export const restingReminder = (status: string): string =>
  `The goal of this session is ${status}: do not work on it by yourself, unless the user asks for it.`
export const goneReminder = 'The session has no goal any more. Do not go on with the earlier one unless the user asks for it.'
export const graceReminder = (limit: string): string =>
  `The goal ends here: ${limit}. No more tools run. Write a final status for the user: what is done, what is verified, what is left.`
export const graceRefusal = (limit: string): string => `Not run: ${limit}. Write a final status for the user now.`
