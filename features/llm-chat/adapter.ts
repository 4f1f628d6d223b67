/** The chat completions wire as a model adapter. */
import {
  credentialHeader,
  type LlmAdapter,
  type LlmPart,
  type LlmRequest,
  type ResolvedModel,
  type StreamLimits,
  streamEvents,
  type Upstream
} from '../llm/index.ts'
import { ChatDecoder, failureOf } from './decode.ts'
import type { Dialect } from './dialect.ts'
import { encode, replayedKey } from './encode.ts'

const REMEMBERED_MODELS = 256

/** The field of servers that demand one in every answer. */
const DEMANDED_KEY = 'reasoning_content'
/** Stands in `left_out` for that field, whatever it is called. */
const REFUSED_KEY = 'messages.reasoning'

/** The adapter of a dialect. It remembers per model in which field the upstream carries reasoning. */
export function chatAdapter(dialect: Dialect, upstream: Upstream, limits?: StreamLimits): LlmAdapter {
  const reasoningKeys = new Map<string, string>()
  const key = (model: ResolvedModel) => `${model.base_url} ${model.name}`

  /** The field in which reasoning goes back; undefined: it stays away. */
  function sentKey({ model, blank_thinking, left_out }: LlmRequest, known: string | undefined): string | undefined {
    if (left_out?.includes(REFUSED_KEY)) return undefined
    return model.reasoning_key ?? (blank_thinking ? DEMANDED_KEY : (known ?? dialect.reasoning_key))
  }

  function stream(request: LlmRequest, signal: AbortSignal): AsyncIterable<LlmPart> {
    const { model } = request
    const configured = model.reasoning_key
    const known = reasoningKeys.get(key(model)) ?? replayedKey(request)
    const learned = (field: string) => remember(reasoningKeys, key(model), field)
    const decoder = new ChatDecoder({ model: model.name, configured, known, learned })
    const body = encode(request, dialect, sentKey(request, known))
    const headers = credentialHeader(model)
    return streamEvents(
      upstream,
      { model, path: '/chat/completions', headers, body, decoder, failureOf, ...(limits && { limits }) },
      signal
    )
  }

  return { protocol: dialect.protocol, needs_credential: true, needs_base_url: true, stream }
}

function remember(keys: Map<string, string>, model: string, key: string): void {
  if (keys.size >= REMEMBERED_MODELS) keys.delete(keys.keys().next().value ?? '')
  keys.set(model, key)
}
