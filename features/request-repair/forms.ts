/** Other forms of a conversation: stricter, with fewer pictures. */
import { createHash } from 'node:crypto'
import { isMedium, type LlmCallPart, type LlmContent, type LlmMessage } from '../llm/index.ts'

type Assistant = Extract<LlmMessage, { role: 'assistant' }>
type Part = LlmContent | LlmCallPart
type Result = Extract<LlmMessage, { role: 'tool' }>

/** Said in the model's place where a server wants to hear it before the user speaks again. */
const bridge: Assistant = { role: 'assistant', content: [{ type: 'text', text: 'I have these results.' }] }

/**
 * Roles that alternate from a user message on, no empty texts, every call once and with exactly one result right behind its message, under
 * ids that every server takes. Calls without a result go, and so do results without a call. The model speaks between results and the user,
 * who shows their pictures.
 */
export function strictForm(messages: readonly LlmMessage[]): readonly LlmMessage[] {
  const results = new Map<string, Result>()
  for (const message of messages)
    if (message.role === 'tool' && !results.has(message.tool_call_id)) results.set(message.tool_call_id, message)
  const out: LlmMessage[] = []
  for (const message of messages) {
    if (message.role === 'user') say(out, message.content)
    else if (message.role === 'assistant' && out.length > 0) answer(out, message, results)
  }
  return out
}

function say(out: LlmMessage[], given: readonly LlmContent[]): void {
  const content = given.filter(notEmpty)
  if (content.length === 0) return
  const last = out.at(-1)
  if (last?.role === 'user') out[out.length - 1] = { role: 'user', content: [...last.content, ...content] }
  else out.push(...(last?.role === 'tool' ? [bridge] : []), { role: 'user', content })
}

/** Takes the results of its calls out of `results`: none stands twice. */
function answer(out: LlmMessage[], message: Assistant, results: Map<string, Result>): void {
  const answers: Result[] = []
  const content = message.content.flatMap((part): Part[] => {
    if (part.type !== 'tool_call') return notEmpty(part) ? [part] : []
    const result = results.get(part.id)
    if (!result || !results.delete(part.id)) return []
    const id = shortId(part.id)
    answers.push({ ...result, tool_call_id: id })
    return [{ ...part, id }]
  })
  if (content.length === 0) return
  const last = out.at(-1)
  if (last?.role === 'assistant') out[out.length - 1] = { ...message, content: [...last.content, ...content] }
  else out.push({ ...message, content })
  const media = answers.flatMap(result => result.content.filter(isMedium))
  out.push(...answers.map(result => ({ ...result, content: result.content.map(shown) })))
  if (media.length > 0) say(out, [{ type: 'text', text: 'Images of the results above:' }, ...media])
}

/** Nine letters and digits: what the strictest servers take, and different for different ids. */
function shortId(id: string): string {
  if (/^[a-zA-Z0-9]{9}$/.test(id)) return id
  const hash = createHash('sha256').update(id).digest().readBigUInt64BE()
  return hash.toString(36).padStart(9, '0').slice(-9)
}

const shown = (part: LlmContent): LlmContent => (isMedium(part) ? { type: 'text', text: '(an image; it follows)' } : part)

const notEmpty = (part: LlmContent): boolean => part.type !== 'text' || part.text.trim() !== ''

const leftOut = (what: string) => `[${what} stood here; it is left out because the provider refused the request with it]`

/** Pictures and videos of all messages. */
export function countMedia(messages: readonly LlmMessage[]): number {
  let count = 0
  for (const { content } of messages) for (const part of content) if (isMedium(part)) count++
  return count
}

/** Replaces the oldest `count` media by a notice. */
export function dropMedia(messages: readonly LlmMessage[], count: number): readonly LlmMessage[] {
  let left = count
  const replaced = (part: Part): Part =>
    isMedium(part) && left-- > 0 ? { type: 'text', text: leftOut(part.type === 'video' ? 'a video' : 'an image') } : part
  return count <= 0 ? messages : messages.map(message => ({ ...message, content: message.content.map(replaced) }) as LlmMessage)
}
