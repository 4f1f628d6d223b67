/** From the events of a responses stream to model parts. Pure; one decoder per response. */
import { randomUUID } from 'node:crypto'
import { type EventDecoder, type FinishReason, type LlmPart, type TokenUsage, tokenCount } from '../llm/index.ts'
import { writeSeal } from './seal.ts'

/** An event as upstreams really send it: everything may be missing. */
interface StreamEvent {
  readonly type?: unknown
  readonly output_index?: unknown
  readonly item_id?: unknown
  readonly item?: Item | null
  readonly delta?: unknown
  readonly arguments?: unknown
  readonly response?: Response | null
}

type Item = Readonly<Record<string, unknown>>

interface Response {
  readonly id?: unknown
  readonly usage?: Usage | null
  readonly incomplete_details?: { readonly reason?: unknown } | null
  readonly error?: unknown
}

interface Usage {
  readonly input_tokens?: unknown
  readonly output_tokens?: unknown
  readonly input_tokens_details?: { readonly cached_tokens?: unknown } | null
}

/** An output item while it streams. */
interface OpenItem {
  call?: string
  /** Pieces of its text or arguments were passed on. */
  said: boolean
  /** Summary parts that have begun. */
  summaries: number
}

const reasons: Readonly<Record<string, FinishReason>> = {
  completed: 'completed',
  max_output_tokens: 'truncated',
  max_tokens: 'truncated',
  content_filter: 'filtered'
}

/** The error that an event reports: `error` with or without an object of its own, a failed response, or the `error` of a gateway. */
export function failureOf(event: object): unknown {
  const { type, error, response } = event as { type?: unknown; error?: unknown; response?: Response | null }
  if (type === 'response.failed') return response?.error ?? { message: 'the response failed' }
  return type === 'error' ? (error ?? event) : error
}

export class ResponsesDecoder implements EventDecoder {
  readonly #newId: () => string
  readonly #items = new Map<unknown, OpenItem>()
  #usage: TokenUsage | undefined
  #reason: string | undefined
  #response_id: string | undefined
  #calls = 0

  constructor(newId: () => string = () => `call_${randomUUID().replaceAll('-', '')}`) {
    this.#newId = newId
  }

  get finished(): boolean {
    return this.#reason !== undefined
  }

  feed(event: StreamEvent, parts: LlmPart[]): boolean | undefined {
    const { type, response, item, delta } = event
    if (typeof response?.id === 'string') this.#response_id = response.id
    switch (type) {
      case 'response.output_item.added':
        if (item?.type === 'function_call') this.#begin(this.#at(event), item, parts)
        return
      case 'response.output_text.delta':
      case 'response.refusal.delta':
        this.#say(this.#at(event), 'text', delta, parts)
        return
      case 'response.reasoning_summary_part.added': {
        const open = this.#at(event)
        // Parts of a summary are paragraphs; nothing on the wire stands between them.
        if (open.summaries++ > 0) parts.push({ type: 'thinking', text: '\n\n' })
        return
      }
      case 'response.reasoning_summary_text.delta':
      case 'response.reasoning_text.delta':
        this.#say(this.#at(event), 'thinking', delta, parts)
        return
      case 'response.function_call_arguments.delta':
        this.#argue(this.#at(event), delta, parts)
        return
      case 'response.function_call_arguments.done': {
        const open = this.#at(event)
        if (!open.said) this.#argue(open, event.arguments, parts)
        return
      }
      case 'response.output_item.done':
        if (item) this.#close(this.#at(event), item, parts)
        return
      case 'response.completed':
      case 'response.incomplete':
        this.#reason = type === 'response.completed' ? 'completed' : text(response?.incomplete_details?.reason) || 'incomplete'
        if (response?.usage) this.#usage = usageOf(response.usage)
        return true
    }
    return // other kinds of items, and what later versions of the protocol may add
  }

  end(trace_id: string | undefined): LlmPart[] {
    const parts: LlmPart[] = []
    if (this.#usage) parts.push({ type: 'usage', usage: this.#usage })
    const raw = this.#reason ?? 'completed'
    const named = Object.hasOwn(reasons, raw) ? reasons[raw]! : 'other'
    const reason = named === 'completed' && this.#calls > 0 ? 'tool_calls' : named
    const response_id = this.#response_id
    parts.push({ type: 'finish', reason, raw_reason: raw, ...(response_id && { response_id }), ...(trace_id && { trace_id }) })
    return parts
  }

  #at({ output_index, item_id, item }: StreamEvent): OpenItem {
    const key = output_index ?? item_id ?? item?.id
    let open = this.#items.get(key)
    if (!open) {
      open = { said: false, summaries: 0 }
      this.#items.set(key, open)
    }
    return open
  }

  #begin(open: OpenItem, item: Item, parts: LlmPart[]): void {
    // A call without a name cannot be called.
    if (open.call !== undefined || text(item.name) === '') return
    open.call = text(item.call_id) || this.#newId()
    this.#calls++
    parts.push({ type: 'tool_call', id: open.call, name: text(item.name) })
  }

  #say(open: OpenItem, type: 'text' | 'thinking', delta: unknown, parts: LlmPart[]): void {
    if (text(delta) === '') return
    open.said = true
    parts.push({ type, text: text(delta) })
  }

  #argue(open: OpenItem, piece: unknown, parts: LlmPart[]): void {
    if (open.call === undefined || text(piece) === '') return
    open.said = true
    parts.push({ type: 'tool_arguments', id: open.call, text: text(piece) })
  }

  /** The finished item holds everything: what some servers never streamed, and the encrypted form of reasoning. */
  #close(open: OpenItem, item: Item, parts: LlmPart[]): void {
    if (item.type === 'function_call') {
      this.#begin(open, item, parts)
      if (!open.said) this.#argue(open, item.arguments, parts)
    } else if (item.type === 'message') {
      if (!open.said) this.#say(open, 'text', texts(item.content).join(''), parts)
    } else if (item.type === 'reasoning') {
      if (!open.said) this.#say(open, 'thinking', texts(item.summary).join('\n\n'), parts)
      const encrypted_content = text(item.encrypted_content)
      if (encrypted_content !== '')
        parts.push({ type: 'thinking', text: '', signature: writeSeal({ id: text(item.id), encrypted_content }) })
    }
  }
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '')

function texts(list: unknown): string[] {
  if (!Array.isArray(list)) return []
  return list.map(part => text((part as { text?: unknown } | null)?.text) || text((part as { refusal?: unknown } | null)?.refusal))
}

function usageOf({ input_tokens, output_tokens, input_tokens_details }: Usage): TokenUsage {
  const cached = tokenCount(input_tokens_details?.cached_tokens)
  return {
    inputOther: Math.max(0, tokenCount(input_tokens) - cached),
    output: tokenCount(output_tokens),
    inputCacheRead: cached,
    inputCacheCreation: 0
  }
}
