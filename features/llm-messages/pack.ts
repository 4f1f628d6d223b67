/** Contributes the adapter of the messages wire. */
import { definePack } from '../../kernel/index.ts'
import { createUpstream, LlmAdapters } from '../llm/index.ts'
import { messagesAdapter } from './adapter.ts'

export default definePack({
  name: 'llm-messages',
  description: 'Model adapter for the messages protocol: compat_messages',
  area: 'Models',
  setup(ctx) {
    const upstream = createUpstream()
    ctx.own(() => upstream.close())
    ctx.contribute(LlmAdapters, messagesAdapter(upstream))
  }
})
