/** Content of messages and prompts on the wire (contract 2, Message object and Content parts accepted in a user prompt). */
import { named, Type } from '../../kernel/index.ts'
import type { WirePart } from './types.ts'

const text = Type.String()

/** Where the bytes of an image or video are. */
export const MediaSource = named(
  'MediaSource',
  Type.Union([
    Type.Object({ kind: Type.Literal('url'), url: text, id: Type.Optional(text) }),
    Type.Object({ kind: Type.Literal('base64'), media_type: text, data: text }),
    Type.Object({ kind: Type.Literal('file'), file_id: Type.String({ description: 'an upload' }) }),
    Type.Object({
      kind: Type.Literal('session_media'),
      file_id: Type.String({ description: 'a medium that belongs to the session' }),
      media_type: Type.Optional(Type.String({ description: 'told by the server, whatever a prompt says' }))
    })
  ])
)

const image = Type.Object({ type: Type.Literal('image'), source: MediaSource })
const video = Type.Object({ type: Type.Literal('video'), source: MediaSource })
const file = named(
  'FilePart',
  Type.Object({ type: Type.Literal('file'), file_id: text, name: text, media_type: text, size: Type.Integer({ minimum: 0 }) })
)

/** What can be attached. */
export const MediaPart = named('MediaPart', Type.Union([image, video, file]))

/** A part as a prompt brings it: text, media and files; the other kinds are accepted and mean nothing there. */
export const PromptPart = named(
  'ContentPart',
  Type.Union([
    Type.Object({ type: Type.Literal('text'), text }),
    image,
    video,
    file,
    Type.Object({ type: Type.Literal('tool_use'), tool_call_id: text, tool_name: text, input: Type.Unknown() }),
    Type.Object({
      type: Type.Literal('tool_result'),
      tool_call_id: text,
      output: Type.Unknown(),
      is_error: Type.Optional(Type.Boolean())
    }),
    Type.Object({ type: Type.Literal('thinking'), thinking: text, signature: Type.Optional(text) })
  ])
)

/** The same shape where messages are told: what journals hold is passed on as it is. */
export const ContentPart = Type.Unsafe<WirePart>(PromptPart)

/** The text parts of a content, joined by newlines. */
export function textOf(content: readonly WirePart[]): string {
  return content.flatMap(part => (part.type === 'text' ? [String(part.text)] : [])).join('\n')
}
