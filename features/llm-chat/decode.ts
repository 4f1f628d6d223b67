/** From the chunks of a chat completions stream to model parts. Pure; one decoder per response. */
import { randomUUID } from 'node:crypto'
import { type EventDecoder, type FinishReason, type LlmPart, type TokenUsage, tokenCount } from '../llm/index.ts'
import { CallBuffer, type CallDelta } from './call-buffer.ts'

/** A chunk as upstreams really send it: everything may be missing. */
interface Chunk {
  readonly id?: unknown
  readonly error?: unknown
  readonly usage?: Usage | null
  readonly choices?: readonly Choice[] | null
}

interface Choice {
  readonly delta?: Readonly<Record<string, unknown>> | null
  readonly finish_reason?: string | null
  readonly usage?: Usage | null
}

interface Usage {
  readonly prompt_tokens?: unknown
  readonly completion_tokens?: unknown
  readonly cached_tokens?: unknown
  readonly prompt_tokens_details?: { readonly cached_tokens?: unknown } | null
}

const reasoningKeys = ['reasoning_content', 'reasoning_details', 'reasoning'] as const

const reasons: Readonly<Record<string, FinishReason>> = {
  stop: 'completed',
  tool_calls: 'tool_calls',
  function_call: 'tool_calls',
  length: 'truncated',
  content_filter: 'filtered'
}

export class ChatDecoder implements EventDecoder {
  /** The field that carried reasoning: configured, or the first one seen. */
  reasoning_key: string | undefined
  readonly #calls: CallBuffer
  #usage: TokenUsage | undefined
  #reason: string | undefined
  #response_id: string | undefined

  constructor(reasoning_key: string | undefined, newId: () => string = () => `call_${randomUUID().replaceAll('-', '')}`) {
    this.reasoning_key = reasoning_key
    this.#calls = new CallBuffer(newId)
  }

  /** True once the upstream has named a finish reason: the answer is whole even when the end mark is missing. */
  get finished(): boolean {
    return this.#reason !== undefined
  }

  /** Parts of one chunk, appended to `parts`. A chunk with an `error` has none: the caller looks at that first. */
  feed(chunk: Chunk, parts: LlmPart[]): undefined {
    if (typeof chunk.id === 'string') this.#response_id ??= chunk.id
    const choice = chunk.choices?.[0]
    const usage = chunk.usage ?? choice?.usage
    if (usage) this.#usage = usageOf(usage)
    if (!choice) return
    const { delta, finish_reason } = choice
    if (delta) {
      const thinking = this.#reasoning(delta)
      if (thinking !== '') parts.push({ type: 'thinking', text: thinking })
      const text = plain(delta.content) + plain(delta.refusal)
      if (text !== '') parts.push({ type: 'text', text })
      if (Array.isArray(delta.tool_calls)) for (const call of delta.tool_calls) this.#calls.feed(call as CallDelta, parts)
    }
    if (finish_reason) this.#reason = finish_reason
  }

  /** Last parts of a whole answer: calls that waited for an id, usage, finish. */
  end(trace_id: string | undefined): LlmPart[] {
    const parts: LlmPart[] = []
    this.#calls.flush(parts)
    if (this.#usage) parts.push({ type: 'usage', usage: this.#usage })
    const raw = this.#reason ?? 'stop'
    const named = Object.hasOwn(reasons, raw) ? reasons[raw]! : 'other'
    // Some upstreams say `stop` after tool calls.
    const reason = named === 'completed' && this.#calls.begun > 0 ? 'tool_calls' : named
    const response_id = this.#response_id
    parts.push({ type: 'finish', reason, raw_reason: raw, ...(response_id && { response_id }), ...(trace_id && { trace_id }) })
    return parts
  }

  #reasoning(delta: Readonly<Record<string, unknown>>): string {
    if (this.reasoning_key !== undefined) return plain(delta[this.reasoning_key])
    for (const key of reasoningKeys) {
      const text = plain(delta[key])
      if (text === '') continue
      this.reasoning_key = key
      return text
    }
    return ''
  }
}

/** Text of a field that is a string, or a list of parts with `text` (or `summary`). */
function plain(value: unknown): string {
  if (typeof value === 'string') return value
  if (!Array.isArray(value)) return ''
  return value
    .map(part => (part as { text?: unknown; summary?: unknown } | null)?.text ?? (part as { summary?: unknown } | null)?.summary)
    .filter(text => typeof text === 'string')
    .join('')
}

function usageOf(usage: Usage): TokenUsage {
  const cached = tokenCount(usage.cached_tokens) || tokenCount(usage.prompt_tokens_details?.cached_tokens)
  return {
    inputOther: Math.max(0, tokenCount(usage.prompt_tokens) - cached),
    output: tokenCount(usage.completion_tokens),
    inputCacheRead: cached,
    inputCacheCreation: 0
  }
}
