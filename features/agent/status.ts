/** The status of an agent as `agent.status.updated` tells it, and the size of its context as all who ask are told it. */
import type { ContextSize, History } from '../history/index.ts'
import type { TokenUsage } from '../llm/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import type { AgentBinding } from './binding.ts'
import type { AgentEventPayload } from './contract.ts'
import type { AgentDeps } from './deps.ts'

interface StatusSource {
  readonly host: AgentHost
  readonly history: History
  readonly binding: AgentBinding
  readonly deps: Pick<AgentDeps, 'facts' | 'tokenStrategy'>
  /** Spent by the turn that runs. */
  readonly spent: TokenUsage | undefined
}

export function statusOf({ host, history, binding, deps, spent }: StatusSource): AgentEventPayload<'agentStatusUpdated'> {
  const { max, effort } = binding.limits()
  const tokens = toldTokens(history.contextSize(), deps)
  const { model } = binding.settings
  return {
    ...deps.facts(host, 'event'),
    ...(model === undefined ? {} : { model }),
    ...(max === undefined ? {} : { thinkingEffort: effort, maxContextTokens: max }),
    contextTokens: tokens,
    ...(max === undefined ? {} : { contextUsage: Math.min(1, tokens / max) }),
    usage: { byModel: { ...history.usageByModel() }, total: history.usage(), ...(spent ? { currentTurn: spent } : {}) }
  }
}

/** The size of a context as it is told. With `measured+estimated` it is never below what was measured last. */
export function toldTokens({ measured, total, estimated }: ContextSize, { tokenStrategy }: Pick<AgentDeps, 'tokenStrategy'>): number {
  const strategy = tokenStrategy()
  return strategy === 'measured' ? measured : strategy === 'estimated' ? estimated : total
}
