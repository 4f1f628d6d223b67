/** An agent with compaction, a model whose window and answers the test decides. */

import { compactSession } from '../../../features/compaction/index.ts'
import compaction from '../../../features/compaction/pack.ts'
import type { LlmPart, LlmRequest, TokenUsage } from '../../../features/llm/index.ts'
import type { TestContextLike } from '../../../kernel/testing.ts'
import { type Reply, type ScriptedLlm, scriptedLlm, testModel } from '../../helpers/scripted-llm.ts'
import { type Started, type StartOptions, startAgent } from '../agent/start.ts'

/** What the model is asked to summarise. */
export const isSummaryRequest = ({ messages }: LlmRequest): boolean => JSON.stringify(messages.at(-1)).includes('replaced by a note')

/** A model of a small window. `reply` is asked for steps, `summary` for summaries. */
export function windowed(size: number, reply: Reply, summary: Reply = 'the summary'): ScriptedLlm {
  const scripted = scriptedLlm(request => (isSummaryRequest(request) ? summary : reply))
  Object.assign(scripted.llm, { resolve: () => ({ ...testModel, max_context_size: size }) })
  return scripted
}

/** An answer after which the provider has counted so many tokens. */
export function counted(text: string, inputOther: number): LlmPart[] {
  const usage: TokenUsage = { inputOther, output: 0, inputCacheRead: 0, inputCacheCreation: 0 }
  return [
    { type: 'text', text },
    { type: 'usage', usage },
    { type: 'finish', reason: 'completed' }
  ]
}

export interface Compacting extends Started {
  compact(body?: { instruction?: string }): Promise<{ code: number; data: unknown }>
  /** Types of the events that are told of a compaction, with their payloads. */
  told(): [string, Record<string, unknown>][]
}

export async function startCompacting(t: TestContextLike, llm: ScriptedLlm, options: StartOptions = {}): Promise<Compacting> {
  const agent = await startAgent(t, llm, {
    ...options,
    packs: [compaction, ...(options.packs ?? [])],
    config: { compaction: { retry_base_ms: 1 }, ...options.config }
  })
  return {
    ...agent,
    compact: body => agent.call(compactSession, { params: { session_id: agent.session_id }, ...(body ? { body } : {}) }),
    told: () =>
      agent.events.flatMap(({ type, payload }) => (type.startsWith('compaction.') ? [[type, payload as Record<string, unknown>]] : []))
  }
}
