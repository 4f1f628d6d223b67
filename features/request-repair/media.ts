/** Requests with fewer pictures. */
import { isImage, type LlmContent, type LlmMessage } from '../llm/index.ts'

const leftOut = '[an image stood here; it is left out because the provider refused the request with it]'

/** Pictures of all messages. */
export function countMedia(messages: readonly LlmMessage[]): number {
  return messages.reduce((count, { content }) => count + content.filter(isImage).length, 0)
}

/** Replaces the oldest `count` media by a notice. */
export function dropMedia(messages: readonly LlmMessage[], count: number): readonly LlmMessage[] {
  let left = count
  const replaced = (part: LlmContent): LlmContent => (isImage(part) && left-- > 0 ? { type: 'text', text: leftOut } : part)
  return count <= 0 ? messages : messages.map(message => ({ ...message, content: message.content.map(replaced) }) as LlmMessage)
}
