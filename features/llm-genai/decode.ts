/** From the chunks of a generate-content stream to model parts. Pure; one decoder per response. */
import { randomUUID } from 'node:crypto'
import { type EventDecoder, type LlmPart, type TokenUsage, tokenCount } from '../llm/index.ts'
import { reasons } from './names.ts'
import { extraNames, writeSeal } from './seal.ts'

/** A chunk as upstreams really send it: everything may be missing. */
interface Chunk {
  readonly responseId?: unknown
  readonly candidates?: readonly Candidate[] | null
  readonly usageMetadata?: Usage | null
  /** Says why the prompt was refused; then there is no candidate. */
  readonly promptFeedback?: { readonly blockReason?: unknown } | null
}

interface Candidate {
  readonly content?: { readonly parts?: readonly Part[] | null } | null
  readonly finishReason?: unknown
}

interface Part {
  readonly text?: unknown
  readonly thought?: unknown
  readonly thoughtSignature?: unknown
  readonly functionCall?: { readonly id?: unknown; readonly name?: unknown; readonly args?: unknown } | null
}

type Usage = Readonly<
  Partial<
    Record<
      'promptTokenCount' | 'cachedContentTokenCount' | 'candidatesTokenCount' | 'thoughtsTokenCount' | 'toolUsePromptTokenCount',
      unknown
    >
  >
>

export class GenaiDecoder implements EventDecoder {
  readonly #newId: () => string
  readonly #ids = new Set<string>()
  #usage: Usage | undefined
  #reason: string | undefined
  #blocked = false
  #response_id: string | undefined

  constructor(newId: () => string = () => `call_${randomUUID().replaceAll('-', '')}`) {
    this.#newId = newId
  }

  get finished(): boolean {
    return this.#reason !== undefined
  }

  /** Never says that the response is over: figures may follow the finish reason, and the end of the stream is its end mark. */
  feed({ responseId, candidates, usageMetadata, promptFeedback }: Chunk, parts: LlmPart[]): undefined {
    if (text(responseId) !== '') this.#response_id = text(responseId)
    if (usageMetadata) this.#usage = { ...this.#usage, ...usageMetadata }
    if (text(promptFeedback?.blockReason) !== '') {
      this.#blocked = true
      this.#reason = text(promptFeedback?.blockReason)
    }
    const candidate = candidates?.[0]
    if (!candidate) return
    for (const part of candidate.content?.parts ?? []) this.#part(part, parts)
    if (text(candidate.finishReason) !== '') this.#reason = text(candidate.finishReason)
  }

  end(trace_id: string | undefined): LlmPart[] {
    const parts: LlmPart[] = []
    if (this.#usage) parts.push({ type: 'usage', usage: usageOf(this.#usage) })
    const raw = this.#reason ?? 'STOP'
    const named = this.#blocked ? 'filtered' : Object.hasOwn(reasons, raw) ? reasons[raw]! : 'other'
    // The wire has no reason of its own for calls.
    const reason = named === 'completed' && this.#ids.size > 0 ? 'tool_calls' : named
    const response_id = this.#response_id
    parts.push({ type: 'finish', reason, raw_reason: raw, ...(response_id && { response_id }), ...(trace_id && { trace_id }) })
    return parts
  }

  #part({ text: said, thought, thoughtSignature, functionCall }: Part, parts: LlmPart[]): void {
    const signature = text(thoughtSignature)
    if (functionCall) {
      this.#call(functionCall, signature, parts)
    } else if (thought === true) {
      const seal = signature === '' ? {} : { signature: writeSeal('thought', signature) }
      if (text(said) !== '' || signature !== '') parts.push({ type: 'thinking', text: text(said), ...seal })
    } else {
      if (text(said) !== '') parts.push({ type: 'text', text: text(said) })
      if (signature !== '') parts.push({ type: 'thinking', text: '', signature: writeSeal('answer', signature) })
    }
  }

  #call({ id, name, args }: NonNullable<Part['functionCall']>, signature: string, parts: LlmPart[]): void {
    // A call without a name cannot be called.
    if (text(name) === '') return
    const given = text(id)
    const own = given === '' || this.#ids.has(given) ? this.#newId() : given
    this.#ids.add(own)
    const extras = { ...(given !== '' && { [extraNames.id]: given }), ...(signature !== '' && { [extraNames.signature]: signature }) }
    parts.push({ type: 'tool_call', id: own, name: text(name), ...(Object.keys(extras).length > 0 && { extras }) })
    parts.push({ type: 'tool_arguments', id: own, text: JSON.stringify(args ?? {}) })
  }
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '')

/** Thoughts are counted apart from the answer and paid like it. */
function usageOf(usage: Usage): TokenUsage {
  const cached = tokenCount(usage.cachedContentTokenCount)
  return {
    inputOther: Math.max(0, tokenCount(usage.promptTokenCount) + tokenCount(usage.toolUsePromptTokenCount) - cached),
    output: tokenCount(usage.candidatesTokenCount) + tokenCount(usage.thoughtsTokenCount),
    inputCacheRead: cached,
    inputCacheCreation: 0
  }
}
