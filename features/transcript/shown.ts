/**
 * What the journal of an agent does not know and a transcript shows: which session it is in, and what the configuration says of its model (window,
 * how much of it is used, how hard the model thinks).
 */
import { type Llm, windowOf } from '../llm/index.ts'
import { inSession } from './interaction-view.ts'
import type { Meta, Op } from './shapes.ts'
import type { Source } from './source.ts'

type AgentMeta = NonNullable<Meta['agent']>
type Limits = Pick<AgentMeta, 'maxContextTokens' | 'contextUsage' | 'thinkingEffort'>

function limitsOf({ model, contextTokens, thinkingEffort }: AgentMeta, llm: Llm | undefined): Limits {
  if (model === undefined || !llm) return {}
  try {
    const resolved = llm.resolve(model)
    const maxContextTokens = windowOf(resolved)
    return {
      thinkingEffort: llm.effort(resolved, thinkingEffort),
      maxContextTokens,
      ...(contextTokens === undefined ? {} : { contextUsage: Math.min(1, contextTokens / maxContextTokens) })
    }
  } catch {
    return {} // a model that is gone has no window
  }
}

export const withLimits = (meta: Meta, llm: Llm | undefined): Meta =>
  meta.agent ? { ...meta, agent: { ...meta.agent, ...limitsOf(meta.agent, llm) } } : meta

/** `meta`: as it is after the operation. */
export function opWithLimits(op: Op, meta: Meta, llm: Llm | undefined): Op {
  if (op.op !== 'meta.merge' || !op.meta.agent || !meta.agent) return op
  const { model, contextTokens, thinkingEffort } = op.meta.agent
  if (model === undefined && contextTokens === undefined && thinkingEffort === undefined) return op
  return { ...op, meta: { ...op.meta, agent: { ...op.meta.agent, ...limitsOf(meta.agent, llm) } } }
}

/** As pages and baselines of this session have it. */
export function shownIn(session_id: string, entities: Source['entities'], llm: Llm | undefined): Source['entities'] {
  return {
    ...entities,
    interactions: entities.interactions.map(each => inSession(session_id, each)),
    meta: withLimits(entities.meta, llm)
  }
}
