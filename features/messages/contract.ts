/** Wire shapes and routes of the messages of a session (contract 2). */
import { cursorQuery, defineRoute, errorSpec, named, oneOf, page, type Static, Time, Type } from '../../kernel/index.ts'
import { FileMissing, UploadsFailed } from '../files/index.ts'
import { ContentPart } from '../history/index.ts'
import { SessionMissing } from '../sessions/index.ts'

export const MessageMissing = errorSpec('message_missing', 40403, 'message not found')

const Role = named('MessageRole', oneOf(['user', 'assistant', 'tool', 'system']))

/** Contract 2, Message object. Parts: text, thinking, tool_use, tool_result, image, video, file. */
export const MessageObject = named(
  'Message',
  Type.Object({
    id: Type.String({ examples: ['msg_session_3f0c4a52-6a1e-4f0b-9d57-2f4f8f1c7a10_000000'] }),
    session_id: Type.String({ examples: ['session_3f0c4a52-6a1e-4f0b-9d57-2f4f8f1c7a10'] }),
    role: Role,
    content: Type.Array(ContentPart, { examples: [[{ type: 'text', text: 'list the files' }]] }),
    created_at: Time,
    prompt_id: Type.Optional(Type.String()),
    parent_message_id: Type.Optional(Type.String()),
    metadata: Type.Optional(Type.Record(Type.String(), Type.Unknown(), { description: '`origin` tells why the message exists' }))
  })
)
export type MessageObject = Static<typeof MessageObject>

const params = Type.Object({ session_id: Type.String() })
const item = '/api/v1/sessions/{session_id}' as const

export const listMessages = defineRoute({
  method: 'GET',
  path: `${item}/messages`,
  summary: "The main agent's history, newest first",
  params,
  query: Type.Composite([cursorQuery(50), Type.Object({ role: Type.Optional(Role) })]),
  data: page(MessageObject),
  errors: [SessionMissing]
})

export const readMessage = defineRoute({
  method: 'GET',
  path: `${item}/messages/{message_id}`,
  summary: 'Read a message',
  params: Type.Object({ session_id: Type.String(), message_id: Type.String() }),
  data: MessageObject,
  errors: [SessionMissing, MessageMissing]
})

/** Answers with HTTP 404 what other routes answer with 200. */
export const MediaSessionMissing = { ...SessionMissing, status: 404 }
export const MediumMissing = { ...FileMissing, status: 404 }

export const readMedia = defineRoute({
  method: 'GET',
  path: `${item}/media/{file_id}`,
  summary: 'Medium of a message (`source { kind: session_media, file_id }`), else an upload, as bytes; single ranges',
  params: Type.Object({ session_id: Type.String(), file_id: Type.String() }),
  data: Type.Unknown(),
  binary: { types: ['*/*'], statuses: [200, 206] },
  errors: [MediaSessionMissing, MediumMissing, UploadsFailed]
})
