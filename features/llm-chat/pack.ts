/** Contributes the adapters of the chat completions wire. */
import { definePack } from '../../kernel/index.ts'
import { createUpstream, LlmAdapters } from '../llm/index.ts'
import { chatAdapter } from './adapter.ts'
import { compatChat, svc } from './dialect.ts'

export default definePack({
  name: 'llm-chat',
  description: 'Model adapters for chat completions: compat_chat and svc',
  area: 'Models',
  setup(ctx) {
    const upstream = createUpstream()
    ctx.own(() => upstream.close())
    ctx.contribute(LlmAdapters, chatAdapter(compatChat, upstream))
    ctx.contribute(LlmAdapters, chatAdapter(svc, upstream))
  }
})
