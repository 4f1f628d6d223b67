/** From the chunks of a generate-content stream to model parts. Pure; one decoder per response. */
import { randomUUID } from 'node:crypto'
import {
  type EventDecoder,
  errorIn,
  firstAnswer,
  type LlmPart,
  listOf,
  ResponseIds,
  recordOf,
  type TokenUsage,
  stringOf as text,
  tokenCount
} from '../llm/index.ts'
import { brokenCalls, reasons } from './names.ts'
import { extraNames, writeReplayData } from './replay-data.ts'

type Fields = Readonly<Record<string, unknown>>

/** The error that a chunk reports, or that its finish reason amounts to. */
export function failureOf(chunk: object): unknown {
  const { finishReason, finishMessage } = firstAnswer(recordOf(chunk).candidates)
  if (!brokenCalls.includes(text(finishReason))) return errorIn(chunk)
  return {
    type: 'server_error',
    message: [`the answer ended with ${finishReason}`, text(finishMessage)].filter(said => said !== '').join(': ')
  }
}

/** Reads one response; made-up ids are `call_<hex>`. */
export class GenaiDecoder implements EventDecoder {
  readonly #ids: ResponseIds
  #usage: Fields | undefined
  #reason: string | undefined
  #blocked = false
  /** Thoughts have come that no signature closed: they go back all the same, in their place. */
  #thinking = false
  #response_id: string | undefined

  constructor(newId: () => string = () => `call_${randomUUID().replaceAll('-', '')}`) {
    this.#ids = new ResponseIds(newId)
  }

  get finished(): boolean {
    return this.#reason !== undefined
  }

  /** Never says that the response is over: figures may follow the finish reason, and the end of the stream is its end mark. */
  feed(chunk: object, parts: LlmPart[]): undefined {
    const { responseId, candidates, usageMetadata, promptFeedback } = recordOf(chunk)
    this.#response_id = text(responseId) || this.#response_id
    if (usageMetadata) this.#usage = { ...this.#usage, ...recordOf(usageMetadata) }
    const blocked = reasonIn(recordOf(promptFeedback).blockReason)
    this.#blocked ||= blocked !== undefined
    const { content, finishReason } = firstAnswer(candidates)
    for (const part of listOf(recordOf(content).parts)) this.#part(recordOf(part), parts)
    this.#reason = blocked ?? reasonIn(finishReason) ?? this.#reason
  }

  end(trace_id: string | undefined): LlmPart[] {
    const parts: LlmPart[] = []
    this.#closeThought(parts)
    if (this.#usage) parts.push({ type: 'usage', usage: usageOf(this.#usage) })
    const raw = this.#reason ?? 'STOP'
    const named = this.#blocked ? 'filtered' : Object.hasOwn(reasons, raw) ? reasons[raw]! : 'other'
    // The wire has no reason of its own for calls.
    const reason = named === 'completed' && this.#ids.count > 0 ? 'tool_calls' : named
    const response_id = this.#response_id
    parts.push({ type: 'finish', reason, raw_reason: raw, ...(response_id && { response_id }), ...(trace_id && { trace_id }) })
    return parts
  }

  #part({ text: said, thought, thoughtSignature, functionCall }: Fields, parts: LlmPart[]): void {
    const signature = text(thoughtSignature)
    if (thought === true && !functionCall) {
      const signed = signature === '' ? {} : { signature: writeReplayData('thought', signature) }
      if (text(said) !== '' || signature !== '') parts.push({ type: 'thinking', text: text(said), ...signed })
      this.#thinking = signature === '' && (this.#thinking || text(said) !== '')
      return
    }
    if (functionCall || text(said) !== '') this.#closeThought(parts)
    if (functionCall) this.#call(recordOf(functionCall), signature, parts)
    else {
      if (text(said) !== '') parts.push({ type: 'text', text: text(said) })
      if (signature !== '') parts.push({ type: 'thinking', text: '', signature: writeReplayData('answer', signature) })
    }
  }

  #closeThought(parts: LlmPart[]): void {
    if (this.#thinking) parts.push({ type: 'thinking', text: '', signature: writeReplayData('thought', '') })
    this.#thinking = false
  }

  #call({ id, name, args }: Fields, signature: string, parts: LlmPart[]): void {
    // A call without a name cannot be called.
    if (text(name) === '') return
    const given = text(id)
    const own = this.#ids.take(given)
    const extras = { ...(given !== '' && { [extraNames.id]: given }), ...(signature !== '' && { [extraNames.signature]: signature }) }
    parts.push({ type: 'tool_call', id: own, name: text(name), ...(Object.keys(extras).length > 0 && { extras }) })
    parts.push({ type: 'tool_arguments', id: own, text: JSON.stringify(args ?? {}) })
  }
}

/** A reason that says something; some servers send a word for none with every chunk. */
function reasonIn(value: unknown): string | undefined {
  return text(value).replace(/^.*_UNSPECIFIED$/, '') || undefined
}

/** Thoughts are counted apart from the answer and paid like it. */
function usageOf(usage: Fields): TokenUsage {
  const cached = tokenCount(usage.cachedContentTokenCount)
  return {
    inputOther: Math.max(0, tokenCount(usage.promptTokenCount) + tokenCount(usage.toolUsePromptTokenCount) - cached),
    output: tokenCount(usage.candidatesTokenCount) + tokenCount(usage.thoughtsTokenCount),
    inputCacheRead: cached,
    inputCacheCreation: 0
  }
}
