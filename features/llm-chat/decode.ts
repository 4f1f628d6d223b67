/** From the chunks of a chat completions stream to model parts. Pure; one decoder per response. */
import { randomUUID } from 'node:crypto'
import {
  type EventDecoder,
  errorIn,
  type FinishReason,
  firstAnswer,
  type LlmPart,
  listOf,
  recordOf,
  stringOf,
  type TokenUsage,
  tokenCount
} from '../llm/index.ts'
import { CallBuffer } from './call-buffer.ts'
import { Reasoning, type ReasoningOptions } from './reasoning.ts'

const reasons: Readonly<Record<string, FinishReason>> = {
  stop: 'completed',
  tool_calls: 'tool_calls',
  function_call: 'tool_calls',
  length: 'truncated',
  max_tokens: 'truncated',
  model_length: 'truncated',
  model_context_window_exceeded: 'truncated',
  content_filter: 'filtered',
  sensitive: 'filtered'
}

/** Finish reasons by which upstreams say that they broke down, or that the model made a call that is none. */
const failures =
  /^(error|network_error|insufficient_system_resource)$|malformed_(function_call|response)|(unexpected|too_many)_tool_calls?|missing_thought_signature/i

/** The error that a chunk reports: at its top, in its choice, or as the reason of the end. */
export function failureOf(event: object): unknown {
  const error = errorIn(event)
  if (error) return error
  const choice = firstChoice(event)
  if (choice.error) return choice.error
  const reason = stringOf(choice.finish_reason)
  return failures.test(reason) ? { type: 'server_error', message: `the answer ended with ${reason}` } : undefined
}

/** Reads one response; made-up ids are `call_<hex>`. */
export class ChatDecoder implements EventDecoder {
  readonly #reasoning: Reasoning
  readonly #calls: CallBuffer
  #usage: TokenUsage | undefined
  #reason: string | undefined
  #response_id: string | undefined
  #streams = false

  constructor(options: ReasoningOptions, newId: () => string = () => `call_${randomUUID().replaceAll('-', '')}`) {
    this.#reasoning = new Reasoning(options)
    this.#calls = new CallBuffer(options.model, newId)
  }

  /** True once the upstream has named a finish reason: the answer is whole even when the end mark is missing. */
  get finished(): boolean {
    return this.#reason !== undefined
  }

  /** Parts of one chunk, appended to `parts`. A chunk with an `error` has none: the caller looks at that first. */
  feed(chunk: object, parts: LlmPart[]): undefined {
    const { id, usage } = recordOf(chunk)
    const choice = firstChoice(chunk)
    this.#response_id ??= stringOf(id) || undefined
    const spent = usage ?? choice.usage
    if (spent) this.#spend(usageOf(recordOf(spent)))
    this.#streams ||= choice.delta !== undefined
    // Servers that do not stream send a message; others repeat one at the end.
    const delta = recordOf(this.#streams ? choice.delta : choice.message)
    this.#reasoning.feed(delta, parts)
    const { text, thinking } = contentOf(delta.content)
    if (thinking !== '') parts.push({ type: 'thinking', text: thinking })
    const answer = text + stringOf(delta.refusal)
    const calls = listOf(delta.tool_calls)
    if (answer !== '' || calls.length > 0) this.#reasoning.close(parts)
    if (answer !== '') parts.push({ type: 'text', text: answer })
    for (const call of calls) this.#calls.feed(call, parts)
    this.#reason = stringOf(choice.finish_reason) || this.#reason
  }

  /** The later figures count, unless they are none. */
  #spend(usage: TokenUsage): void {
    if (!this.#usage || Object.values(usage).some(count => count > 0)) this.#usage = usage
  }

  /** Last parts of a whole answer: calls that waited for an id, usage, finish. */
  end(trace_id: string | undefined): LlmPart[] {
    const parts: LlmPart[] = []
    this.#reasoning.close(parts)
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
}

const firstChoice = (chunk: object) => firstAnswer(recordOf(chunk).choices)

/** Content is a text, or a list of parts among which some upstreams put their thinking. */
function contentOf(content: unknown): { readonly text: string; readonly thinking: string } {
  if (!Array.isArray(content)) return { text: stringOf(content), thinking: '' }
  const parts = content.map(recordOf)
  return {
    text: parts.map(part => (part.type === 'thinking' ? '' : stringOf(part.text))).join(''),
    thinking: parts.flatMap(part => listOf(part.thinking).map(one => stringOf(recordOf(one).text))).join('')
  }
}

function usageOf(usage: Readonly<Record<string, unknown>>): TokenUsage {
  const details = recordOf(usage.prompt_tokens_details)
  const cached = [usage.cached_tokens, details.cached_tokens, usage.prompt_cache_hit_tokens].map(tokenCount).find(count => count > 0) ?? 0
  return {
    inputOther: Math.max(0, tokenCount(usage.prompt_tokens) - cached),
    output: tokenCount(usage.completion_tokens),
    inputCacheRead: cached,
    inputCacheCreation: 0
  }
}
