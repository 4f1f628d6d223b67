/** What every adapter does with a request on its way to the wire: texts, arguments, the credential, and which thinking still goes back. */
import { isRecord } from '../../kernel/index.ts'
import { urlBelow } from './addresses.ts'
import type { LlmCallPart, LlmContent, LlmMessage, LlmRequest } from './request.ts'
import type { ModelListRequest, ModelServer } from './service.ts'
import { parseJson } from './wire-values.ts'

/** Makes something of an object at the first call and keeps it with the object, which does not change. */
export function keptWith<A extends object, R>(make: (of: A) => R): (of: A) => R {
  const kept = new WeakMap<A, R>()
  return of => {
    const known = kept.get(of)
    if (known !== undefined) return known
    const made = make(of)
    kept.set(of, made)
    return made
  }
}

/** The body of a request without the fields that its server refused by name. */
export function withoutRefused(
  body: Readonly<Record<string, unknown>>,
  { left_out = [] }: Pick<LlmRequest, 'left_out'>
): Record<string, unknown> {
  const left = { ...body }
  for (const [name = '', inner] of left_out.map(field => field.split('.'))) {
    if (inner === undefined) delete left[name]
    else if (isRecord(left[name])) left[name] = withoutRefused(left[name], { left_out: [inner] })
  }
  return left
}

/** Texts of a message, joined. */
export function textOf(parts: readonly (LlmContent | LlmCallPart)[]): string {
  return parts.map(part => (part.type === 'text' ? part.text : '')).join('')
}

/** Tool calls of an answer, in order; none of any other message. */
export function callsOf({ content }: LlmMessage): readonly LlmCallPart[] {
  return (content as readonly (LlmContent | LlmCallPart)[]).filter(part => part.type === 'tool_call')
}

/** True for a picture, whole or by its address. */
function isImage(part: LlmContent | LlmCallPart): part is Extract<LlmContent, { type: 'image' | 'image_url' }> {
  return part.type === 'image' || part.type === 'image_url'
}

/** True for a picture or a video. */
export function isMedium(part: LlmContent | LlmCallPart): part is Extract<LlmContent, { type: 'image' | 'image_url' | 'video' }> {
  return isImage(part) || part.type === 'video'
}

/** Stands for a video where the protocol has no place for one. */
export const videoNotice = '[a video; it cannot be sent to this provider]'

/** Tool arguments as an object; `{}` for anything else: one broken call must not spoil the rest of the session. */
export function argumentsObject(text: string): Readonly<Record<string, unknown>> {
  const value = parseJson(text)
  return isRecord(value) ? value : {} // the model wrote no JSON object: the tool's result says so already
}

/** The same as text, as the model wrote it where that is an object. */
export function argumentsText(text: string): string {
  return isRecord(parseJson(text)) ? text : '{}'
}

/** Header of the credential: `Authorization: Bearer`, or `keyHeader` where the protocol has one for keys. Empty without a credential. */
export function credentialHeader(
  { api_key, bearer }: Pick<ModelServer, 'api_key' | 'bearer'>,
  keyHeader?: string
): Readonly<Record<string, string>> {
  if (api_key === undefined) return {}
  return keyHeader === undefined || bearer ? { authorization: `Bearer ${api_key}` } : { [keyHeader]: api_key }
}

/** The usual way to ask a server for its models, and the one of a protocol that adds something: `below` the base URL, with these `headers`. */
export function modelListRequest(
  { base_url, ...credential }: ModelServer,
  below = '/models',
  { keyHeader, headers = {} }: { readonly keyHeader?: string; readonly headers?: Readonly<Record<string, string>> } = {}
): ModelListRequest {
  return { url: urlBelow(base_url, below).href, headers: { ...headers, ...credentialHeader(credential, keyHeader) } }
}

/**
 * From which message on thinking goes back: 0 (all), the one after the prompt of the turn with `thinking_keep = "off"` (protocols that sign
 * thinking want it back while its tool calls are being answered), or past the end (none); `replayed_thinking` wins.
 */
export function thinkingFrom({ model, messages, replayed_thinking }: LlmRequest): number {
  if (replayed_thinking === 'none') return messages.length
  return replayed_thinking === 'turn' || model.thinking_keep === 'off' ? turnStart(messages) : 0
}

/**
 * The first message after the prompt of the turn that runs. What is said to a turn that runs (reminders, steered prompts) follows tool
 * results and begins no other turn.
 */
export function turnStart(messages: readonly LlmMessage[]): number {
  const begins = (message: LlmMessage, at: number) => message.role === 'user' && messages[before(messages, at)]?.role !== 'tool'
  return messages.findLastIndex(begins) + 1
}

/** The message in front of a block of user messages, from any of them. */
function before(messages: readonly LlmMessage[], at: number): number {
  while (messages[at]?.role === 'user') at--
  return at
}
