/** How much of its context an agent uses: the journal knows the tokens, the configuration the window of the model. */
import type { Llm } from '../llm/index.ts'
import type { Meta, Op } from './shapes.ts'

type AgentMeta = NonNullable<Meta['agent']>
type Limits = Pick<AgentMeta, 'maxContextTokens' | 'contextUsage'>

function limitsOf({ model, contextTokens }: AgentMeta, llm: Llm | undefined): Limits {
  if (model === undefined || !llm) return {}
  try {
    const { max_input_size, max_context_size } = llm.resolve(model)
    const maxContextTokens = max_input_size ?? max_context_size
    return { maxContextTokens, ...(contextTokens === undefined ? {} : { contextUsage: Math.min(1, contextTokens / maxContextTokens) }) }
  } catch {
    return {} // a model that is gone has no window
  }
}

export const withLimits = (meta: Meta, llm: Llm | undefined): Meta =>
  meta.agent ? { ...meta, agent: { ...meta.agent, ...limitsOf(meta.agent, llm) } } : meta

/** `meta`: as it is after the operation. */
export function opWithLimits(op: Op, meta: Meta, llm: Llm | undefined): Op {
  if (op.op !== 'meta.merge' || !op.meta.agent || !meta.agent) return op
  if (op.meta.agent.model === undefined && op.meta.agent.contextTokens === undefined) return op
  return { ...op, meta: { ...op.meta, agent: { ...op.meta.agent, ...limitsOf(meta.agent, llm) } } }
}
