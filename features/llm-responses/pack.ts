/** Contributes the adapter of the responses wire. */
import { definePack } from '../../kernel/index.ts'
import { createUpstream, LlmAdapters } from '../llm/index.ts'
import { responsesAdapter } from './adapter.ts'

export default definePack({
  name: 'llm-responses',
  description: 'Model adapter for the responses protocol: compat_responses',
  area: 'Models',
  setup(ctx) {
    const upstream = createUpstream()
    ctx.own(() => upstream.close())
    ctx.contribute(LlmAdapters, responsesAdapter(upstream))
  }
})
