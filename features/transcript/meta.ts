/** Meta data of an agent in a transcript: its goal, modes, model, permission mode and usage, as records change them. Pure. */
import { agentSet } from '../agent/index.ts'
import { goalSet, goalTurn } from '../goals/index.ts'
import type { HistoryRecord } from '../history/index.ts'
import { addUsage, noUsage, sumUsage } from '../llm/index.ts'
import { permissionModeSet } from '../permissions/index.ts'
import { planEntered, planLeft, planRevised } from '../plan/index.ts'
import { swarmModeSet } from '../subagents/index.ts'
import type { Meta, MetaChange } from './shapes.ts'

type Usage = NonNullable<NonNullable<NonNullable<Meta['agent']>['usage']>['total']>

/** What a record of goals, modes or bindings changes; undefined: it is none of them, or damaged. */
export function metaChange(record: HistoryRecord): MetaChange | undefined {
  switch (record.type) {
    case goalSet.type:
      return goalSet.is(record) ? goalChange(record.goal) : undefined
    case goalTurn.type:
      return goalTurn.is(record) && record.goal ? goalChange(record.goal) : undefined
    case planEntered.type:
      return { modes: { plan: {} } }
    case planRevised.type:
      return planRevised.is(record) ? { modes: { plan: { reviewPath: record.path, version: record.version } } } : undefined
    case planLeft.type:
      return { modes: { plan: null } }
    case swarmModeSet.type:
      return swarmModeSet.is(record) ? { modes: { swarm: record.on ? { trigger: record.trigger } : null } } : undefined
    case agentSet.type: {
      if (!agentSet.is(record)) return undefined
      const { model, thinking } = record
      return { agent: { ...(model === undefined ? {} : { model }), ...(thinking === undefined ? {} : { thinkingEffort: thinking }) } }
    }
    case permissionModeSet.type:
      return permissionModeSet.is(record) ? { agent: { permission: record.mode } } : undefined
    default:
      return undefined
  }
}

function goalChange(goal: Parameters<typeof goalSet.of>[0]['goal']): MetaChange {
  if (!goal) return { goal: null }
  const { objective, status, criterion, budget, usage } = goal
  return {
    goal: {
      objective,
      status,
      ...(criterion === undefined ? {} : { completionCriterion: criterion }),
      budgetUsed: Object.values(usage).reduce((sum, { output }) => sum + output, 0),
      ...(budget.tokens === undefined ? {} : { budgetLimit: budget.tokens })
    }
  }
}

/** What spent tokens change. `isStep`: in a step of a turn, which tells the size of the context as well. */
export function spending({ agent, activity }: Meta, model: string, usage: Usage, isStep: boolean): MetaChange {
  const { byModel = {}, total, currentTurn } = agent?.usage ?? {}
  const inTurn = activity === 'turn' ? sumUsage(currentTurn ?? noUsage, usage) : currentTurn
  const spent = {
    byModel: addUsage(byModel, model, usage),
    total: sumUsage(total ?? noUsage, usage),
    ...(inTurn ? { currentTurn: inTurn } : {})
  }
  const contextTokens = usage.inputOther + usage.inputCacheRead + usage.inputCacheCreation + usage.output
  return { agent: { usage: spent, ...(isStep && contextTokens > 0 ? { contextTokens } : {}) } }
}

/** Null clears, what is absent stays, the fields of `agent` are merged. */
export function merged(meta: Meta, change: MetaChange): Meta {
  const { goal, modes, agent } = meta
  const activity = change.activity ?? meta.activity
  const plan = change.modes?.plan === undefined ? modes?.plan : (change.modes.plan ?? undefined)
  const swarm = change.modes?.swarm === undefined ? modes?.swarm : (change.modes.swarm ?? undefined)
  const nextGoal = change.goal === undefined ? goal : (change.goal ?? undefined)
  const nextModes = { ...(plan ? { plan } : {}), ...(swarm ? { swarm } : {}) }
  const nextAgent = change.agent ? { ...agent, ...change.agent } : agent
  return {
    ...(nextGoal ? { goal: nextGoal } : {}),
    ...(plan || swarm ? { modes: nextModes } : {}),
    ...(activity ? { activity } : {}),
    ...(nextAgent ? { agent: nextAgent } : {})
  }
}
