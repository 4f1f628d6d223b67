/** Asks the model for a summary, again with less where it cannot take or does not answer the whole. */
import { pause, retryDelay } from '../agent/index.ts'
import { isMedium, type Llm, type LlmError, type LlmMessage, type LlmRequest, type TokenUsage, windowOf } from '../llm/index.ts'
import { newest, sizeOf, withoutMedia, withoutOldest } from './cut.ts'
import { leftOut, summaryRequest } from './texts.ts'

export interface SummaryPorts {
  readonly llm: Pick<Llm, 'stream'>
  /** First delay before a failed request is sent again, ms. */
  readonly retryBaseMs: number
}

export interface SummaryInput {
  /** The context as the next step would send it. */
  readonly context: LlmRequest
  readonly instruction: string | undefined
}

export type Summary = ({ readonly text: string; readonly dropped: number } | { readonly error: LlmError }) & {
  /** Tokens of every request that was made. */
  readonly usage: readonly TokenUsage[]
}

/** Requests that may fail and be sent again as they are. */
const maxAttempts = 5
/** Shares of the messages that are tried when all of them are too many. */
const shares = [0.7, 0.5, 0.35]
/** Answers that are no summary, after each of which the oldest message is left out. */
const maxUnusable = 5
/** Tokens of an answer where the model says no limit. */
const answerTokens = 131_072
const leastAnswerTokens = 4096

const unusable: LlmError = {
  code: 'compaction.failed',
  name: 'CompactionError',
  message: 'the model gave no summary of the conversation',
  retryable: false
}

/** Never rejects. Undefined: aborted. */
export async function summarise(
  { llm, retryBaseMs }: SummaryPorts,
  { context, instruction }: SummaryInput,
  signal: AbortSignal
): Promise<Summary | { readonly aborted: true; readonly usage: readonly TokenUsage[] }> {
  const usage: TokenUsage[] = []
  let messages = context.messages
  let attempt = 1
  let cuts = 0
  let bad = 0
  let seesMedia = messages.some(({ content }) => content.some(isMedium))
  for (;;) {
    const answer = await ask(llm, requestOf(context, messages, instruction), signal)
    if (answer.usage) usage.push(answer.usage)
    if (signal.aborted) return { aborted: true, usage }
    if ('text' in answer) return { text: answer.text, dropped: context.messages.length - messages.length, usage }
    const { error } = answer
    if (error === undefined) {
      const fewer = bad++ < maxUnusable ? withoutOldest(messages) : []
      if (fewer.length === 0) return { error: unusable, usage }
      messages = fewer
    } else if (error.code === 'context.overflow' || (error.status === 413 && !seesMedia)) {
      const share = shares[cuts++]
      const fewer = share === undefined ? [] : newest(seesMedia ? context.messages : withoutMedia(context.messages), share)
      if (fewer.length === 0 || sizeOf(fewer) >= sizeOf(messages)) return { error, usage }
      messages = fewer
    } else if (error.retryable && attempt < maxAttempts) {
      await pause(retryDelay(attempt++, error, retryBaseMs), signal)
      if (signal.aborted) return { aborted: true, usage }
    } else if (seesMedia && !error.retryable && [400, 413, 422].includes(error.status ?? 0)) {
      seesMedia = false // some refuse the media of a long conversation: a summary does without
      messages = withoutMedia(messages)
    } else return { error, usage }
  }
}

function requestOf(context: LlmRequest, given: readonly LlmMessage[], instruction: string | undefined): LlmRequest {
  const { model } = context
  const first: LlmMessage[] = given.length < context.messages.length ? [{ role: 'user', content: [{ type: 'text', text: leftOut }] }] : []
  const last: LlmMessage = { role: 'user', content: [{ type: 'text', text: summaryRequest(instruction) }] }
  const messages = [...first, ...given, last]
  const room = model.max_context_size - Math.max(context.context_tokens ?? 0, sizeOf(messages))
  const most = model.max_output_size ?? Math.min(windowOf(model), answerTokens)
  return { ...context, messages, max_output_tokens: Math.min(most, Math.max(leastAnswerTokens, room)) }
}

/** `text`: a usable summary. `error` undefined: an answer that is none (empty, cut, a call of a tool). */
type Answer = ({ readonly text: string } | { readonly error: LlmError | undefined }) & { readonly usage?: TokenUsage }

async function ask(llm: Pick<Llm, 'stream'>, request: LlmRequest, signal: AbortSignal): Promise<Answer> {
  let text = ''
  let whole = false
  let called = false
  let usage: TokenUsage | undefined
  let error: LlmError | undefined
  for await (const part of llm.stream(request, signal)) {
    if (part.type === 'text') text += part.text
    else if (part.type === 'tool_call') called = true
    else if (part.type === 'usage') usage = part.usage
    else if (part.type === 'finish') whole = part.reason === 'completed' || part.reason === 'other'
    else if (part.type === 'error') error = part.error
  }
  const spent = usage ? { usage } : {}
  if (error) return { error: error.name === 'EmptyResponseError' ? undefined : error, ...spent }
  return whole && !called && text.trim() !== '' ? { text: text.trim(), ...spent } : { error: undefined, ...spent }
}
