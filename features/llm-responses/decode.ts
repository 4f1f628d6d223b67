/** From the events of a responses stream to model parts. Pure; one decoder per response. */
import { randomUUID } from 'node:crypto'
import {
  type EventDecoder,
  errorIn,
  type FinishReason,
  type LlmPart,
  listOf,
  ResponseIds,
  recordOf,
  type TokenUsage,
  stringOf as text,
  tokenCount
} from '../llm/index.ts'
import { writePhase, writePlain, writeReplayData } from './replay-data.ts'

type Fields = Readonly<Record<string, unknown>>

/** An output item while it streams. */
interface OpenItem {
  call?: string
  /** Pieces of its text or arguments were passed on. */
  said: boolean
  /** Summary parts that have begun. */
  summaries: number
  /** Its reasoning came as it is, not as a summary of it. */
  plain: boolean
  /** It has come whole. */
  over: boolean
}

const reasons: Readonly<Record<string, FinishReason>> = {
  completed: 'completed',
  max_output_tokens: 'truncated',
  max_tokens: 'truncated',
  content_filter: 'filtered'
}

/** The error that an event reports: `error` with or without an object of its own, a failed response, or the `error` of a gateway. */
export function failureOf(event: object): unknown {
  const { type, response } = recordOf(event)
  return type === 'response.failed' ? (recordOf(response).error ?? { message: 'the response failed' }) : errorIn(event)
}

/** Reads one response; made-up ids are `call_<hex>`. */
export class ResponsesDecoder implements EventDecoder {
  readonly #ids: ResponseIds
  readonly #model: string
  readonly #placed = new Map<unknown, OpenItem>()
  readonly #named = new Map<string, OpenItem>()
  #said = false
  #usage: TokenUsage | undefined
  #reason: string | undefined
  #response_id: string | undefined

  /** `model`: upstream name; plain reasoning goes back to it alone. */
  constructor(model: string, newId: () => string = () => `call_${randomUUID().replaceAll('-', '')}`) {
    this.#model = model
    this.#ids = new ResponseIds(newId)
  }

  get finished(): boolean {
    return this.#reason !== undefined
  }

  feed(event: object, parts: LlmPart[]): boolean | undefined {
    const fields = recordOf(event)
    const { type, delta } = fields
    // Everything at once, from a server that does not stream.
    if (type === undefined && fields.object === 'response')
      return this.feed({ type: `response.${text(fields.status)}`, response: fields }, parts)
    const response = recordOf(fields.response)
    const item = recordOf(fields.item)
    this.#response_id = text(response.id) || this.#response_id
    switch (type) {
      case 'response.output_item.added':
        this.#begin(
          this.#at(fields, () => false),
          item,
          parts
        )
        return
      case 'response.output_text.delta':
      case 'response.refusal.delta':
        this.#say(this.#at(fields), 'text', delta, parts)
        return
      case 'response.reasoning_summary_part.added': {
        const open = this.#at(fields)
        // Parts of a summary are paragraphs; nothing on the wire stands between them.
        if (open.summaries++ > 0) parts.push({ type: 'thinking', text: '\n\n' })
        return
      }
      case 'response.reasoning_summary_text.delta':
      case 'response.reasoning_text.delta': {
        const open = this.#at(fields)
        open.plain ||= type === 'response.reasoning_text.delta'
        this.#say(open, 'thinking', delta, parts)
        return
      }
      case 'response.function_call_arguments.delta':
        this.#argue(this.#at(fields), delta, parts)
        return
      case 'response.function_call_arguments.done': {
        const open = this.#at(fields)
        if (!open.said) this.#argue(open, fields.arguments, parts)
        return
      }
      case 'response.output_text.done':
      case 'response.refusal.done': {
        const open = this.#at(fields)
        if (!open.said) this.#say(open, 'text', text(fields.text) || fields.refusal, parts)
        return
      }
      case 'response.output_item.done':
        this.#close(
          this.#at(fields, ({ over }) => !over),
          item,
          parts
        )
        return
      case 'response.completed':
      case 'response.incomplete':
        // Some servers stream nothing and send everything with the last event.
        if (!this.#said)
          for (const [output_index, one] of listOf(response.output).entries()) this.#close(this.#at({ output_index }), recordOf(one), parts)
        // Some servers have one event for both ends; the response itself says which one it is.
        this.#reason =
          text(recordOf(response.incomplete_details).reason) ||
          (type === 'response.completed' && response.status !== 'incomplete' ? 'completed' : 'incomplete')
        if (response.usage) this.#usage = usageOf(recordOf(response.usage))
        return true
    }
    return // other kinds of items, and what later versions of the protocol may add
  }

  end(trace_id: string | undefined): LlmPart[] {
    const parts: LlmPart[] = []
    if (this.#usage) parts.push({ type: 'usage', usage: this.#usage })
    const raw = this.#reason ?? 'completed'
    const named = Object.hasOwn(reasons, raw) ? reasons[raw]! : 'other'
    const reason = named === 'completed' && this.#ids.count > 0 ? 'tool_calls' : named
    const response_id = this.#response_id
    parts.push({ type: 'finish', reason, raw_reason: raw, ...(response_id && { response_id }), ...(trace_id && { trace_id }) })
    return parts
  }

  /**
   * The item by its id, or at its place. Some servers give each event of an item another id, others give every item the same place: `fits`
   * says whether the one at the place can be meant.
   */
  #at({ output_index, item_id, item }: Fields, fits: (open: OpenItem) => boolean = () => true): OpenItem {
    const id = text(item_id) || text(recordOf(item).id)
    const place = output_index ?? id
    const placed = this.#placed.get(place)
    const known = this.#named.get(id) ?? (placed && fits(placed) ? placed : undefined)
    if (known) return known
    const open: OpenItem = { said: false, summaries: 0, plain: false, over: false }
    this.#placed.set(place, open)
    if (id !== '') this.#named.set(id, open)
    return open
  }

  #begin(open: OpenItem, item: Fields, parts: LlmPart[]): void {
    // A call without a name cannot be called.
    if (item.type !== 'function_call' || open.call !== undefined || text(item.name) === '') return
    this.#said = true
    open.call = this.#ids.take(text(item.call_id))
    parts.push({ type: 'tool_call', id: open.call, name: text(item.name) })
  }

  #say(open: OpenItem, type: 'text' | 'thinking', delta: unknown, parts: LlmPart[]): void {
    if (text(delta) === '') return
    open.said = this.#said = true
    parts.push({ type, text: text(delta) })
  }

  #argue(open: OpenItem, piece: unknown, parts: LlmPart[]): void {
    if (open.call === undefined || text(piece) === '') return
    open.said = true
    parts.push({ type: 'tool_arguments', id: open.call, text: text(piece) })
  }

  /** The finished item holds everything: what some servers never streamed, and the encrypted form of reasoning. */
  #close(open: OpenItem, item: Fields, parts: LlmPart[]): void {
    open.over = true
    if (item.type === 'function_call') {
      this.#begin(open, item, parts)
      if (!open.said) this.#argue(open, item.arguments, parts)
    } else if (item.type === 'message') {
      if (!open.said) this.#say(open, 'text', texts(item.content).join(''), parts)
      if (open.said && text(item.phase) !== '') parts.push({ type: 'text', text: '', signature: writePhase(text(item.phase)) })
    } else if (item.type === 'reasoning') {
      if (!open.said) {
        const summary = texts(item.summary).join('\n\n')
        open.plain = summary === ''
        this.#say(open, 'thinking', summary || texts(item.content).join(''), parts)
      }
      const id = text(item.id)
      const encrypted_content = text(item.encrypted_content)
      if (encrypted_content !== '') parts.push({ type: 'thinking', text: '', signature: writeReplayData({ id, encrypted_content }) })
      else if (open.plain && open.said) parts.push({ type: 'thinking', text: '', signature: writePlain({ model: this.#model, id }) })
    }
  }
}

const texts = (list: unknown): string[] =>
  listOf(list)
    .map(recordOf)
    .map(part => text(part.text) || text(part.refusal))

function usageOf({ input_tokens, output_tokens, input_tokens_details }: Fields): TokenUsage {
  const cached = tokenCount(recordOf(input_tokens_details).cached_tokens)
  return {
    inputOther: Math.max(0, tokenCount(input_tokens) - cached),
    output: tokenCount(output_tokens),
    inputCacheRead: cached,
    inputCacheCreation: 0
  }
}
