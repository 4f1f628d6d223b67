/** From the events of a messages stream to model parts. Pure; one decoder per response. */
import { randomUUID } from 'node:crypto'
import {
  type EventDecoder,
  type FinishReason,
  type LlmPart,
  listOf,
  ResponseIds,
  recordOf,
  type TokenUsage,
  stringOf as text,
  tokenCount
} from '../llm/index.ts'
import { REDACTED_MARK } from './encode.ts'

type Fields = Readonly<Record<string, unknown>>

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

/** Reads one response; made-up ids are `toolu_<hex>`. */
export class MessagesDecoder implements EventDecoder {
  readonly #ids: ResponseIds
  readonly #open = new Map<unknown, OpenBlock>()
  #usage: Fields | undefined
  #reason: string | undefined
  #response_id: string | undefined

  constructor(newId: () => string = () => `toolu_${randomUUID().replaceAll('-', '')}`) {
    this.#ids = new ResponseIds(newId)
  }

  get finished(): boolean {
    return this.#reason !== undefined
  }

  feed(event: object, parts: LlmPart[]): boolean | undefined {
    const { type, index, message, content_block, delta, usage } = recordOf(event)
    switch (type) {
      case 'message_start':
        this.#response_id = text(recordOf(message).id) || this.#response_id
        this.#spend(recordOf(message).usage)
        return
      case 'content_block_start':
        this.#stop(index, parts)
        this.#closeThinking(parts)
        this.#start(index, recordOf(content_block), parts)
        return
      case 'content_block_delta':
        this.#grow(index, recordOf(delta), parts)
        return
      case 'content_block_stop':
        this.#stop(index, parts)
        return
      case 'message_delta':
        this.#spend(usage)
        this.#reason = text(recordOf(delta).stop_reason) || this.#reason
        return
      case 'message_stop':
        return true
      case 'message':
        this.#whole(recordOf(event), parts)
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
    const reason = named === 'completed' && this.#ids.count > 0 ? 'tool_calls' : named
    const response_id = this.#response_id
    parts.push({ type: 'finish', reason, raw_reason: raw, ...(response_id && { response_id }), ...(trace_id && { trace_id }) })
    return parts
  }

  /** Everything at once, from a server that does not stream. */
  #whole({ id, content, stop_reason, usage }: Fields, parts: LlmPart[]): void {
    this.#response_id = text(id) || undefined
    this.#spend(usage)
    for (const [index, block] of listOf(content).entries()) {
      this.#start(index, recordOf(block), parts)
      this.#stop(index, parts)
    }
    this.#reason = text(stop_reason) || 'end_turn'
  }

  #start(index: unknown, block: Fields, parts: LlmPart[]): void {
    const type = text(block.type)
    const open: OpenBlock = { type, signature: text(block.signature) }
    if (type === 'text' && text(block.text) !== '') parts.push({ type: 'text', text: text(block.text) })
    if (type === 'thinking' && text(block.thinking) !== '') parts.push({ type: 'thinking', text: text(block.thinking) })
    if (type === 'redacted_thinking' && text(block.data) !== '')
      parts.push({ type: 'thinking', text: '', signature: REDACTED_MARK + text(block.data) })
    if (type !== 'tool_use' || text(block.name) === '') {
      this.#open.set(index, open)
      return
    }
    const id = this.#ids.take(text(block.id))
    this.#open.set(index, { ...open, call: { id, input: block.input, said: false } })
    parts.push({ type: 'tool_call', id, name: text(block.name) })
  }

  #grow(index: unknown, delta: Fields, parts: LlmPart[]): void {
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

  /** Thinking ends where the next block begins, also on servers that do not say so: its signature belongs to it. */
  #closeThinking(parts: LlmPart[]): void {
    for (const [index, open] of [...this.#open]) if (open.type === 'thinking') this.#stop(index, parts)
  }

  /** Figures are cumulative; the later one counts, but nothing that was counted becomes nothing. */
  #spend(usage: unknown): void {
    const told = Object.entries(recordOf(usage)).filter(([name, count]) => tokenCount(count) > 0 || this.#usage?.[name] === undefined)
    if (told.length > 0) this.#usage = { ...this.#usage, ...Object.fromEntries(told) }
  }
}

function usageOf(usage: Fields): TokenUsage {
  return {
    inputOther: tokenCount(usage.input_tokens),
    output: tokenCount(usage.output_tokens),
    inputCacheRead: tokenCount(usage.cache_read_input_tokens),
    inputCacheCreation: tokenCount(usage.cache_creation_input_tokens)
  }
}
