/** The status of an agent as `agent.status.updated` tells it. */
import type { History } from '../history/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import type { AgentBinding } from './binding.ts'
import type { AgentEventPayload } from './contract.ts'
import type { AgentDeps } from './deps.ts'
import { toldTokens } from './told-tokens.ts'
import type { Turn } from './turn.ts'

interface StatusSource {
  readonly host: AgentHost
  readonly history: History
  readonly binding: AgentBinding
  readonly deps: Pick<AgentDeps, 'facts' | 'tokenStrategy'>
  readonly turn: Turn | undefined
}

export function statusOf({ host, history, binding, deps, turn }: StatusSource): AgentEventPayload<'agentStatusUpdated'> {
  const max = binding.maxTokens()
  const tokens = toldTokens(history.contextSize(), deps.tokenStrategy())
  const { model } = binding.settings
  return {
    ...deps.facts(host),
    ...(model === undefined ? {} : { model }),
    ...(max === undefined ? {} : { thinkingEffort: binding.effort(), maxContextTokens: max }),
    contextTokens: tokens,
    ...(max === undefined ? {} : { contextUsage: Math.min(1, tokens / max) }),
    usage: { byModel: { ...history.usageByModel() }, total: history.usage(), ...(turn ? { currentTurn: turn.usage() } : {}) }
  }
}
