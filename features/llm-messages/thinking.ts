/** How hard the model thinks, in the words of the messages wire. */
import { canThink, type LlmRequest } from '../llm/index.ts'
import { betas, budgets, clearThinking, type Family, SMALLEST_BUDGET } from './names.ts'

/** What an effort becomes on the wire. */
export interface Thinking {
  /** Fields of the request body. */
  readonly fields: Readonly<Record<string, unknown>>
  readonly betas: readonly string[]
  /** True when the model is asked to think. */
  readonly on: boolean
}

const nothing: Thinking = { fields: {}, betas: [], on: false }

/**
 * `limit` is the output limit of the request in tokens; a budget takes at most three quarters of it. What a server does not know is asked for
 * neither in the body nor in the header.
 */
export function thinkingOf({ model, effort, left_out = [] }: LlmRequest, family: Family, limit: number): Thinking {
  if (family.thinks === 'never') return nothing
  const able = family.known || canThink(model)
  const disabled: Thinking = able ? { ...nothing, fields: { thinking: { type: 'disabled' } } } : nothing
  if (effort === 'off' || effort === '') return disabled
  const keep = left_out.includes('context_management') ? { fields: {}, betas: [] } : keepOf(model.thinking_keep, family)
  const interleaved = left_out.includes('interleaved-thinking') ? [] : [betas.interleaved]
  const named = Object.hasOwn(budgets, effort) ? budgets[effort]! : undefined
  if (model.adaptive_thinking ?? (family.thinks === 'adaptive' || named === undefined)) {
    const thinking = { type: 'adaptive', display: 'summarized' }
    return { fields: { thinking, ...(effort !== 'on' && { output_config: { effort } }), ...keep.fields }, betas: keep.betas, on: true }
  }
  const budget_tokens = Math.min(named ?? budgets.high!, Math.floor(limit * 0.75))
  if (budget_tokens < SMALLEST_BUDGET) return disabled
  return { fields: { thinking: { type: 'enabled', budget_tokens }, ...keep.fields }, betas: [...interleaved, ...keep.betas], on: true }
}

/**
 * Which earlier thinking the provider leaves in the context: all, or that of the last n turns. Servers of others are only told when the
 * user said so.
 */
function keepOf(configured: string | undefined, { known }: Family): Pick<Thinking, 'fields' | 'betas'> {
  const keep = configured ?? (known ? 'all' : 'off')
  if (keep === 'off') return { fields: {}, betas: [] }
  const value = /^[1-9]\d{0,5}$/.test(keep) ? { type: 'thinking_turns', value: Number(keep) } : keep
  return { fields: { context_management: { edits: [{ type: clearThinking, keep: value }] } }, betas: [betas.context] }
}
