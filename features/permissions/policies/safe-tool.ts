/** Tools that only read, or that ask on their own. */
import { approve, type Policy } from '../policy.ts'

const safe = new Set([
  'Read',
  'Grep',
  'Glob',
  'ReadMediaFile',
  'TodoList',
  'TaskList',
  'TaskOutput',
  'WaitFor',
  'CronList',
  'WebSearch',
  'FetchURL',
  'Agent',
  'AgentSwarm',
  'AskUserQuestion',
  'Skill',
  'EnterPlanMode',
  'ExitPlanMode',
  'CreateGoal',
  'GetGoal',
  'SetGoalBudget',
  'UpdateGoal',
  'select_tools'
])

export const safeTool: Policy = ({ tool }) => (safe.has(tool) ? approve : undefined)
