/** What a tool of an MCP server answered, as the model gets it: bounded texts, images, and words for what no model takes or nobody can read. */
import { isUtf8 } from 'node:buffer'
import { checker, headOf, type Static, Type } from '../../kernel/index.ts'
import type { LlmContent } from '../llm/index.ts'
import { mediaTypeOf } from '../media/index.ts'
import type { ToolResult } from '../tools/index.ts'

const textChars = 100_000
const mediaBytes = 10 * 1024 * 1024
/** Of base64: so much says what it is. */
const headChars = 8192
const imageTypes = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp'])

const text = Type.String()
const mimeType = Type.Optional(text)
/** The parts that are used, as far as they are (MCP specification, Tools). */
const Part = Type.Union([
  Type.Object({ type: Type.Literal('text'), text }),
  Type.Object({ type: Type.Literal('image'), data: text, mimeType }),
  Type.Object({ type: Type.Literal('audio'), mimeType }),
  Type.Object({ type: Type.Literal('resource_link'), uri: text, name: Type.Optional(text) }),
  Type.Object({ type: Type.Literal('resource'), resource: Type.Object({ uri: text, text, mimeType }) }),
  Type.Object({ type: Type.Literal('resource'), resource: Type.Object({ uri: text, blob: text, mimeType }) })
])
type Part = Static<typeof Part>
const isPart = (value: unknown): value is Part => checker(Part).Check(value)

/** `answer`: what the server sent as its result, of whatever shape. */
export function resultOf({ content: given, structuredContent, isError }: Readonly<Record<string, unknown>>): ToolResult {
  const content: readonly unknown[] = given === undefined ? [] : Array.isArray(given) ? given : [given]
  const parts: LlmContent[] = []
  let room = textChars
  let cut = false
  const add = (part: LlmContent) => {
    if (part.type !== 'text') return void parts.push(part)
    if (part.text.length > room) cut = true
    const taken = headOf(part.text, room)
    room -= cut ? room : taken.length
    if (taken !== '') parts.push(said(taken))
  }
  for (const part of content) add(isPart(part) ? shown(part) : said(`[${kindOf(part)} left out: it cannot be read]`))
  if (content.length === 0 && structuredContent !== undefined) add(said(JSON.stringify(structuredContent)))
  const media = parts.some(part => part.type !== 'text')
  const joined = parts.map(part => (part.type === 'text' ? part.text : '')).join('\n')
  return {
    output: media ? lines(parts) : joined,
    ...(isError === true ? { is_error: true } : {}),
    ...(cut ? { note: `The output was cut at ${textChars} characters.` } : {})
  }
}

const said = (words: string): LlmContent => ({ type: 'text', text: words })

function shown(part: Part): LlmContent {
  if (part.type === 'text') return said(part.text)
  if (part.type === 'image') return image(part.data, part.mimeType)
  if (part.type === 'audio') return said(`[audio of type ${part.mimeType ?? 'unknown'} left out]`)
  if (part.type === 'resource_link') return said(`[resource ${part.name ?? ''}: ${part.uri}]`)
  const { resource } = part
  if ('text' in resource) return said(`[resource ${resource.uri}]\n${resource.text}`)
  if (imageTypes.has(resource.mimeType ?? '')) return image(resource.blob, resource.mimeType)
  const bytes = Buffer.from(plainBase64(resource.blob) ?? '', 'base64')
  if (bytes.length > 0 && isUtf8(bytes) && !bytes.includes(0)) return said(`[resource ${resource.uri}]\n${bytes.toString()}`)
  return said(`[resource ${resource.uri} of type ${resource.mimeType ?? 'unknown'} left out: it is no text]`)
}

function kindOf(part: unknown): string {
  const { type } = (part ?? {}) as { readonly type?: unknown }
  return typeof type === 'string' ? `content of type ${headOf(type, 100)}` : 'content'
}

/** Some wires join the texts: an image between them is elsewhere then. */
const lines = (parts: readonly LlmContent[]): LlmContent[] =>
  parts.map((part, at) => (part.type === 'text' && at < parts.length - 1 ? { ...part, text: `${part.text}\n` } : part))

/** What it is by its first bytes counts: a provider refuses what is called otherwise, and again with every later request. */
function image(data: string, declared = 'unknown'): LlmContent {
  const type = mediaTypeOf(Buffer.from(data.slice(0, headChars), 'base64'))
  if (type === undefined && imageTypes.has(declared)) return said(`[image left out: it is no ${declared}]`)
  if (type === undefined || !imageTypes.has(type)) return said(`[image of type ${type ?? declared} left out: no model takes it]`)
  const bytes = Buffer.byteLength(data, 'base64')
  if (bytes > mediaBytes) return said(`[image of ${bytes} bytes left out: it is larger than ${mediaBytes}]`)
  const plain = plainBase64(data)
  return plain === undefined ? said('[image left out: its base64 is not valid]') : { type: 'image', media_type: type, data: plain }
}

/** As providers take it, without line breaks and with its end; undefined: it is none. Decoding leaves out what is no digit. */
function plainBase64(data: string): string | undefined {
  const plain = Buffer.from(data, 'base64').toString('base64')
  return plain === data || digits(plain) === digits(data) ? plain : undefined
}

const digits = (base64: string) => base64.replace(/[\s=]/g, '').length
