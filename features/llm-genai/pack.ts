/** Contributes the adapters of the generate-content wire. */
import { definePack } from '../../kernel/index.ts'
import { createUpstream, LlmAdapters } from '../llm/index.ts'
import { genaiAdapter } from './adapter.ts'
import { cloud, genai } from './endpoint.ts'
import { KeyTokens } from './key-tokens.ts'

export default definePack({
  name: 'llm-genai',
  description: 'Model adapters for content generation: compat_genai and compat_cloud',
  area: 'Models',
  setup(ctx) {
    const upstream = createUpstream()
    ctx.own(() => upstream.close())
    const tokens = new KeyTokens({ upstream, now: ctx.now })
    ctx.own(() => tokens.close())
    ctx.contribute(LlmAdapters, genaiAdapter(genai, upstream))
    ctx.contribute(LlmAdapters, genaiAdapter(cloud, upstream, { tokens }))
  }
})
