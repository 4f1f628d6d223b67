/** Other forms of a request: stricter, with fewer pictures, without thinking. */
import { callsOf, isMedium, type LlmCallPart, type LlmContent, type LlmMessage } from '../llm/index.ts'

type Assistant = Extract<LlmMessage, { role: 'assistant' }>
type Part = LlmContent | LlmCallPart
type Result = Extract<LlmMessage, { role: 'tool' }>

/**
 * Roles that alternate from a user message on, no empty texts, every call once and with exactly one result right behind its message.
 * Calls without a result go, and so do results without a call.
 */
export function strictForm(messages: readonly LlmMessage[]): readonly LlmMessage[] {
  const results = new Map<string, Result>()
  for (const message of messages)
    if (message.role === 'tool' && !results.has(message.tool_call_id)) results.set(message.tool_call_id, message)
  const seen = new Set<string>()
  const answered = (part: Part) => part.type !== 'tool_call' || (results.has(part.id) && !seen.has(part.id) && seen.add(part.id))
  const out: LlmMessage[] = []
  for (const message of messages) {
    if (message.role === 'tool') continue
    if (message.role === 'user') {
      const content = message.content.filter(notEmpty)
      if (content.length > 0) say(out, content)
    } else if (out.length > 0) {
      const content = message.content.filter(part => notEmpty(part) && answered(part))
      if (content.length > 0) answer(out, { ...message, content })
    }
  }
  return out.flatMap(message => [message, ...callsOf(message).map(({ id }) => results.get(id)!)])
}

function notEmpty(part: Part): boolean {
  return part.type !== 'text' || part.text.trim() !== ''
}

function say(out: LlmMessage[], content: readonly LlmContent[]): void {
  const last = out.at(-1)
  if (last?.role === 'user') out[out.length - 1] = { role: 'user', content: [...last.content, ...content] }
  else out.push({ role: 'user', content })
}

function answer(out: LlmMessage[], message: Assistant): void {
  const last = out.at(-1)
  // Calls are answered before anything else is said: only what follows no call can be joined.
  if (last?.role !== 'assistant' || callsOf(last).length > 0) out.push(message)
  else out[out.length - 1] = { ...message, content: [...last.content, ...message.content] }
}

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
