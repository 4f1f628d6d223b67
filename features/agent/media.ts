/** Texts and media of prompts, as titles and events show them. */
import type { WirePart } from '../history/index.ts'

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
