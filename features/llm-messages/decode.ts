/** From the events of a messages stream to model parts. Pure; one decoder per response. */
import { randomUUID } from 'node:crypto'
import { type EventDecoder, type FinishReason, type LlmPart, type TokenUsage, tokenCount } from '../llm/index.ts'
import { REDACTED } from './encode.ts'

/** An event as upstreams really send it: everything may be missing. */
interface StreamEvent {
  readonly type?: unknown
  readonly index?: unknown
  readonly message?: { readonly id?: unknown; readonly usage?: Usage | null } | null
  readonly content_block?: Readonly<Record<string, unknown>> | null
  readonly delta?: Readonly<Record<string, unknown>> | null
  readonly usage?: Usage | null
}

type Usage = Readonly<
  Partial<Record<'input_tokens' | 'output_tokens' | 'cache_read_input_tokens' | 'cache_creation_input_tokens', unknown>>
>

/** A block that has begun and not stopped. */
interface OpenBlock {
  readonly type: string
  readonly call?: { readonly id: string; readonly input: unknown; said: boolean }
  signature: string
}

const reasons: Readonly<Record<string, FinishReason>> = {
  end_turn: 'completed',
  stop_sequence: 'completed',
  tool_use: 'tool_calls',
  max_tokens: 'truncated',
  model_context_window_exceeded: 'truncated',
  pause_turn: 'paused',
  refusal: 'filtered'
}

export class MessagesDecoder implements EventDecoder {
  readonly #newId: () => string
  readonly #open = new Map<unknown, OpenBlock>()
  #usage: Usage | undefined
  #reason: string | undefined
  #response_id: string | undefined
  #calls = 0

  constructor(newId: () => string = () => `toolu_${randomUUID().replaceAll('-', '')}`) {
    this.#newId = newId
  }

  get finished(): boolean {
    return this.#reason !== undefined
  }

  feed({ type, index, message, content_block, delta, usage }: StreamEvent, parts: LlmPart[]): boolean | undefined {
    switch (type) {
      case 'message_start':
        if (typeof message?.id === 'string') this.#response_id = message.id
        this.#spend(message?.usage)
        return
      case 'content_block_start':
        this.#stop(index, parts)
        if (content_block) this.#start(index, content_block, parts)
        return
      case 'content_block_delta':
        if (delta) this.#grow(index, delta, parts)
        return
      case 'content_block_stop':
        this.#stop(index, parts)
        return
      case 'message_delta':
        this.#spend(usage)
        if (typeof delta?.stop_reason === 'string') this.#reason = delta.stop_reason
        return
      case 'message_stop':
        return true
    }
    return // `ping`, and what later versions of the protocol may add
  }

  end(trace_id: string | undefined): LlmPart[] {
    const parts: LlmPart[] = []
    for (const index of [...this.#open.keys()]) this.#stop(index, parts)
    if (this.#usage) parts.push({ type: 'usage', usage: usageOf(this.#usage) })
    const raw = this.#reason ?? 'end_turn'
    const named = Object.hasOwn(reasons, raw) ? reasons[raw]! : 'other'
    const reason = named === 'completed' && this.#calls > 0 ? 'tool_calls' : named
    const response_id = this.#response_id
    parts.push({ type: 'finish', reason, raw_reason: raw, ...(response_id && { response_id }), ...(trace_id && { trace_id }) })
    return parts
  }

  #start(index: unknown, block: Readonly<Record<string, unknown>>, parts: LlmPart[]): void {
    const type = text(block.type)
    const open: OpenBlock = { type, signature: text(block.signature) }
    if (type === 'text' && text(block.text) !== '') parts.push({ type: 'text', text: text(block.text) })
    if (type === 'thinking' && text(block.thinking) !== '') parts.push({ type: 'thinking', text: text(block.thinking) })
    if (type === 'redacted_thinking' && text(block.data) !== '')
      parts.push({ type: 'thinking', text: '', signature: REDACTED + text(block.data) })
    if (type !== 'tool_use' || text(block.name) === '') {
      this.#open.set(index, open)
      return
    }
    const id = text(block.id) || this.#newId()
    this.#calls++
    this.#open.set(index, { ...open, call: { id, input: block.input, said: false } })
    parts.push({ type: 'tool_call', id, name: text(block.name) })
  }

  #grow(index: unknown, delta: Readonly<Record<string, unknown>>, parts: LlmPart[]): void {
    const open = this.#open.get(index)
    if (delta.type === 'text_delta' && text(delta.text) !== '') parts.push({ type: 'text', text: text(delta.text) })
    else if (delta.type === 'thinking_delta' && text(delta.thinking) !== '') parts.push({ type: 'thinking', text: text(delta.thinking) })
    else if (delta.type === 'signature_delta' && open) open.signature += text(delta.signature)
    else if (delta.type === 'input_json_delta' && open?.call && text(delta.partial_json) !== '') {
      open.call.said = true
      parts.push({ type: 'tool_arguments', id: open.call.id, text: text(delta.partial_json) })
    }
  }

  #stop(index: unknown, parts: LlmPart[]): void {
    const open = this.#open.get(index)
    if (!open) return
    this.#open.delete(index)
    if (open.type === 'thinking' && open.signature !== '') parts.push({ type: 'thinking', text: '', signature: open.signature })
    const { call } = open
    // A tool without parameters streams no arguments; some servers put them all into the beginning.
    if (call && !call.said) parts.push({ type: 'tool_arguments', id: call.id, text: JSON.stringify(call.input ?? {}) })
  }

  /** Figures are cumulative; the later one counts. */
  #spend(usage: Usage | null | undefined): void {
    if (!usage) return
    const told = Object.fromEntries(Object.entries(usage).filter(([, count]) => typeof count === 'number'))
    this.#usage = { ...this.#usage, ...told }
  }
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '')

function usageOf(usage: Usage): TokenUsage {
  return {
    inputOther: tokenCount(usage.input_tokens),
    output: tokenCount(usage.output_tokens),
    inputCacheRead: tokenCount(usage.cache_read_input_tokens),
    inputCacheCreation: tokenCount(usage.cache_creation_input_tokens)
  }
}
