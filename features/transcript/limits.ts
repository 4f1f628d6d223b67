/** What the configuration adds to the state of an agent: the window of its model, how much of it is used, how hard the model thinks. */
import { type Llm, windowOf } from '../llm/index.ts'
import type { Meta, Op } from './shapes.ts'

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
