/** What a tool of an MCP server answered, as the model gets it: bounded texts, images, and words for what no model takes. */
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import type { LlmContent } from '../llm/index.ts'
import { mediaTypeOf } from '../media/index.ts'
import type { ToolResult } from '../tools/index.ts'

const textChars = 100_000
const mediaBytes = 10 * 1024 * 1024
/** Of base64: so much says what it is. */
const headChars = 8192
const imageTypes = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp'])

export function resultOf({ content = [], structuredContent, isError }: CallToolResult): ToolResult {
  const parts: LlmContent[] = []
  let room = textChars
  let cut = false
  const text = (value: string) => {
    if (value.length > room) cut = true
    const taken = value.slice(0, room)
    room -= taken.length
    if (taken !== '') parts.push({ type: 'text', text: taken })
  }
  for (const part of content) {
    if (part.type === 'text') text(part.text)
    else if (part.type === 'image') parts.push(image(part.data, part.mimeType))
    else if (part.type === 'audio') text(`[audio of type ${part.mimeType} left out]`)
    else if (part.type === 'resource_link') text(`[resource ${part.name}: ${part.uri}]`)
    else if ('text' in part.resource) text(`[resource ${part.resource.uri}]\n${part.resource.text}`)
    else if (imageTypes.has(part.resource.mimeType ?? '')) parts.push(image(part.resource.blob, part.resource.mimeType ?? ''))
    else text(`[resource ${part.resource.uri} of type ${part.resource.mimeType ?? 'unknown'} left out: it is no text]`)
  }
  if (content.length === 0 && structuredContent !== undefined) text(JSON.stringify(structuredContent))
  const media = parts.some(part => part.type !== 'text')
  const joined = parts.map(part => (part.type === 'text' ? part.text : '')).join('\n')
  return {
    output: media ? lines(parts) : joined,
    ...(isError ? { is_error: true } : {}),
    ...(cut ? { note: `The output was cut at ${textChars} characters.` } : {})
  }
}

/** Some wires join the texts: an image between them is elsewhere then. */
const lines = (parts: readonly LlmContent[]): LlmContent[] =>
  parts.map((part, at) => (part.type === 'text' && at < parts.length - 1 ? { ...part, text: `${part.text}\n` } : part))

/** What it is by its first bytes counts: a provider refuses what is called otherwise, and again with every later request. */
function image(data: string, declared: string): LlmContent {
  const type = mediaTypeOf(Buffer.from(data.slice(0, headChars), 'base64'))
  if (type === undefined && imageTypes.has(declared)) return { type: 'text', text: `[image left out: it is no ${declared}]` }
  if (type === undefined || !imageTypes.has(type))
    return { type: 'text', text: `[image of type ${type ?? declared} left out: no model takes it]` }
  const bytes = Buffer.byteLength(data, 'base64')
  if (bytes > mediaBytes) return { type: 'text', text: `[image of ${bytes} bytes left out: it is larger than ${mediaBytes}]` }
  return { type: 'image', media_type: type, data }
}
