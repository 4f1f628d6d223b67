/**
 * A model that needs no key and no network: a third-party pack that speaks through the same port as real providers.
 * It follows simple requests ("list the files", "read X", "run Y", "call Tool {...}", joined by "then") by calling the agent's tools.
 */
import { setTimeout as wait } from 'node:timers/promises'
import { LlmAdapters, LlmModels, type LlmPart, type LlmRequest } from '../../features/llm/index.ts'
import { definePack, Type } from '../../kernel/index.ts'
import { nextMove } from './moves.ts'

const protocol = 'demo'

async function* speak(request: LlmRequest, delayMs: number, signal: AbortSignal): AsyncIterable<LlmPart> {
  const move = nextMove(request.messages)
  for (const word of move.text.match(/\S+\s*|\s+/g) ?? []) {
    if (signal.aborted) return
    if (delayMs > 0) await wait(delayMs, undefined, { signal }).catch(() => undefined) // an abort ends the stream above
    yield { type: 'text', text: word }
  }
  if (move.tool) {
    yield { type: 'tool_call', id: move.tool.id, name: move.tool.name }
    yield { type: 'tool_arguments', id: move.tool.id, text: JSON.stringify(move.tool.args) }
  }
  const input = Math.ceil(JSON.stringify(request.messages).length / 4)
  yield { type: 'usage', usage: { inputOther: input, output: Math.ceil(move.text.length / 4), inputCacheRead: 0, inputCacheCreation: 0 } }
  yield { type: 'finish', reason: move.tool ? 'tool_calls' : 'completed', raw_reason: move.tool ? 'tool_calls' : 'stop' }
}

export default definePack({
  name: 'demo-model',
  description: 'A model for trying things out: no key, no network',
  config: Type.Object({ chunk_delay_ms: Type.Integer({ minimum: 0, maximum: 1000, default: 15, description: 'pause between words, ms' }) }),
  setup(ctx) {
    ctx.contribute(LlmAdapters, {
      protocol,
      needs_credential: false,
      stream: (request, signal) => speak(request, ctx.config.chunk_delay_ms, signal)
    })
    ctx.contribute(LlmModels, {
      alias: 'demo/demo',
      provider_id: 'demo',
      protocol,
      name: 'demo',
      display_name: 'Demo model',
      max_context_size: 32_000,
      capabilities: ['tool_use'],
      fallback_default: true
    })
  }
})
