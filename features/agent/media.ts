/** Texts and media of prompts: what titles and events show, and what a model without eyes gets. */
import type { WirePart } from '../history/index.ts'
import { isImage, type LlmMessage, type ResolvedModel } from '../llm/index.ts'

/** Text parts joined by newlines. */
export function textOf(content: readonly WirePart[]): string {
  return content.flatMap(part => (part.type === 'text' ? [String(part.text)] : [])).join('\n')
}

/** As `textOf`, with `[image]`, `[video]`, `[audio]` in place of media: source of titles and `last_prompt`. */
export function metadataText(content: readonly WirePart[]): string {
  return content
    .flatMap(part =>
      part.type === 'text' ? [String(part.text)] : ['image', 'video', 'audio'].includes(part.type) ? [`[${part.type}]`] : []
    )
    .join('\n')
}

/** Images become a notice for models that do not take them. */
export function adaptMedia(messages: readonly LlmMessage[], model: ResolvedModel): readonly LlmMessage[] {
  if (model.capabilities.includes('image_in')) return messages
  return messages.map(message => {
    if (!message.content.some(isImage)) return message
    const content = message.content.map(part =>
      isImage(part) ? { type: 'text' as const, text: '[image: this model cannot see images]' } : part
    )
    return { ...message, content } as LlmMessage // each role keeps the kinds of parts that it has
  })
}
