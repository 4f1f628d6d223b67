/** What a provider's refusal says about the form of the request. */
import type { LlmError, LlmRequest } from '../llm/index.ts'

/** What another form would have fewer or none of; `reasoning`: what it would have more of. */
export type Cause = 'media' | 'form' | 'thinking' | 'reasoning'

const image =
  /(image|media|picture)[\s\S]*(decod|invalid|not (a )?valid|unsupported|not supported|could not|cannot|corrupt|exceed|too (large|big|small))|(invalid|unsupported|not support|found that support|unknown variant|could not (process|decode|identify)|cannot (process|decode|identify))[\s\S]*(image|media[ _]type)|input tag 'video'/
const order =
  /roles? (must|should) (be )?alternat|alternat\w* (user|roles)|(consecutive|multiple) (user|assistant|system)|(incorrect|unexpected) role|after the (optional )?system message|call id was .* must be/
const form = [
  order,
  /tool[ _](use|call|result)|function[ _](call|response)|call_id/,
  /first (message|content)[\s\S]*user/,
  /(text|content)[\s\S]*(must (not be|be non-?)|cannot be|is) ?empty|(empty|whitespace)[\s\S]*(text|content)|must contain non-whitespace/
]
const reasoning = /reasoning_content[\s\S]*(missing|must be passed)|missing[\s\S]*reasoning_content/
const thinking =
  /signature|thinking.? blocks?|redacted_thinking|encrypted[ _]content|reasoning.? item|item .* of type .?reasoning|item with id .?rs_|thought/

/** Fields that servers know or do not, and how they call them. Not among them is what the user asked for: that he has to hear of. */
const fields: readonly (readonly [field: string, name: RegExp])[] = [
  ['prompt_cache_key', /(?<![\w.])prompt_?cache_?key/],
  ['stream_options', /(?<![\w.])stream_?options/],
  ['max_tokens', /(?<![\w.])max_?tokens/],
  ['max_completion_tokens', /(?<![\w.])max_?completion_?tokens/],
  ['max_output_tokens', /(?<![\w.])max_?output_?tokens/],
  ['metadata', /(?<![\w.])metadata/],
  // By the name of the field, or of what the header asks for it with.
  ['context_management', /(?<![\w.])context[_-]management/],
  ['interleaved-thinking', /interleaved-thinking/],
  ['reasoning.summary', /reasoning(\.| )summar/],
  ['messages.reasoning', /messages\b.*[^\w]reasoning(_content|_details)?\b|property 'reasoning(_content|_details)?'/],
  ['reasoning_effort', /(?<![\w.])reasoning_?effort/]
]
const unknown =
  /(extra (inputs|fields)|not) (are )?(permitted|allowed)|unsupported|not supported|does(n't| not) support|unrecognized|unknown|unexpected|additional propert|must be verified/

/** The field that the server does not know, by its name here: of several the one that is named first. */
export function refusedField({ status, code, message }: LlmError, { effort }: Pick<LlmRequest, 'effort'>): string | undefined {
  const words = message.toLowerCase()
  if (code !== 'provider.api_error' || (status !== 400 && status !== 422) || !unknown.test(words)) return undefined
  const named = fields
    .filter(([field]) => field !== 'reasoning_effort' || effort === 'on' || effort === '')
    .map(([field, name]) => ({ field, at: words.search(name) }))
    .filter(({ at }) => at >= 0)
  return named.sort((a, b) => a.at - b.at)[0]?.field
}

/**
 * Statuses with which servers refuse a request for its form. Errors inside a stream come without one; gateways that find nobody for the request
 * say 404, and servers whose chat template breaks off say 500.
 */
const refusals: readonly (number | undefined)[] = [undefined, 400, 404, 422, 500]

/** What may be wrong with the request, the most likely first; empty: nothing that another form would cure. */
export function causesOf({ status, code, message, retryable }: LlmError): readonly Cause[] {
  if (code !== 'provider.api_error' || (status === 400 && retryable)) return []
  const words = message.toLowerCase()
  if (status === 413) return ['media']
  if (!refusals.includes(status)) return []
  if (reasoning.test(words)) return ['reasoning']
  const found: Cause[] = []
  if (image.test(words)) found.push('media')
  if (thinking.test(words)) found.push('thinking')
  // A server that breaks down may speak of calls, too.
  if ((status === 500 || status === 404 ? [order] : form).some(pattern => pattern.test(words))) found.push('form')
  return found
}
