/** What goes to the model: what an agent is bound to, its context, its tools. */
import type { History } from '../history/index.ts'
import type { LlmRequest } from '../llm/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import type { TurnSetup } from './binding.ts'
import type { AgentDeps } from './deps.ts'

interface RequestSource {
  readonly host: AgentHost
  readonly history: History
  readonly deps: Pick<AgentDeps, 'runner'>
}

/** The next request, before the hooks. */
export async function requestOf({ host, history, deps }: RequestSource, turn_id: number, setup: TurnSetup): Promise<LlmRequest> {
  const { model, effort, system } = setup
  const max = model.max_output_size
  const context_tokens = history.contextTokens()
  return {
    model,
    system,
    messages: await history.project({ images: model.capabilities.includes('image_in'), videos: model.capabilities.includes('video_in') }),
    tools: deps.runner()?.list(host, turn_id) ?? [],
    cache_key: host.session.id,
    effort,
    context_tokens,
    ...(max === undefined ? {} : { max_output_tokens: Math.max(1, Math.min(max, model.max_context_size - context_tokens)) })
  }
}
