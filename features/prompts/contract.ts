/** Wire shapes and routes of prompts (contract 2, Prompts). */
import { defineRoute, nullable, oneOf, Time, Type } from '../../kernel/index.ts'
import { PromptCompleted, PromptInUse, PromptMissing } from '../agent/index.ts'
import { FileMissing } from '../files/index.ts'
import { CredentialRejected, ModelUnresolved, NoCredential, NoProvider } from '../llm/index.ts'
import { SessionBusy, SessionMissing } from '../sessions/index.ts'
import { SkillMissing, SkillNotForUsers } from './service.ts'

const text = Type.String()

const MediaSource = Type.Union([
  Type.Object({ kind: Type.Literal('url'), url: text, id: Type.Optional(text) }),
  Type.Object({ kind: Type.Literal('base64'), media_type: text, data: text }),
  Type.Object({ kind: Type.Literal('file'), file_id: text }),
  Type.Object({ kind: Type.Literal('session_media'), file_id: text })
])

/** Content part of a prompt. `tool_use`, `tool_result` and `thinking` are accepted and mean nothing here. */
export const PromptPart = Type.Union([
  Type.Object({ type: Type.Literal('text'), text }),
  Type.Object({ type: Type.Literal('image'), source: MediaSource }),
  Type.Object({ type: Type.Literal('video'), source: MediaSource }),
  Type.Object({ type: Type.Literal('file'), file_id: text, name: text, media_type: text, size: Type.Integer({ minimum: 0 }) }),
  Type.Object({ type: Type.Literal('tool_use'), tool_call_id: text, tool_name: text, input: Type.Unknown() }),
  Type.Object({
    type: Type.Literal('tool_result'),
    tool_call_id: text,
    output: Type.Unknown(),
    is_error: Type.Optional(Type.Boolean())
  }),
  Type.Object({ type: Type.Literal('thinking'), thinking: text, signature: Type.Optional(text) })
])

/** Contract 2, Prompt. */
export const PromptObject = Type.Object({
  prompt_id: text,
  user_message_id: text,
  status: oneOf(['running', 'queued', 'blocked']),
  content: Type.Array(Type.Object({ type: Type.String() }, { additionalProperties: true })),
  created_at: Time
})

const params = Type.Object({ session_id: Type.String() })
const promptParams = Type.Object({ session_id: Type.String(), prompt_id: Type.String() })
const path = '/api/v1/sessions/{session_id}/prompts' as const

export const listPrompts = defineRoute({
  method: 'GET',
  path,
  summary: 'Running and queued prompts of the main agent',
  params,
  data: Type.Object({ active: nullable(PromptObject), queued: Type.Array(PromptObject) }),
  errors: [SessionMissing]
})

export const submitPrompt = defineRoute({
  method: 'POST',
  path,
  summary: 'Submit a prompt; answers as soon as it is accepted',
  params,
  body: Type.Object({
    content: Type.Array(PromptPart, { minItems: 1 }),
    agent_id: Type.Optional(Type.String()),
    prompt_id: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
    skills: Type.Optional(Type.Array(Type.Object({ name: Type.String({ minLength: 1 }), args: Type.Optional(text) }), { minItems: 1 })),
    profile: Type.Optional(Type.String()),
    model: Type.Optional(Type.String()),
    thinking: Type.Optional(Type.String()),
    permission_mode: Type.Optional(oneOf(['manual', 'yolo', 'auto'])),
    disabled_tools: Type.Optional(Type.Array(Type.String())),
    metadata: Type.Optional(Type.Unknown({ description: 'not applied' })),
    plan_mode: Type.Optional(Type.Unknown({ description: 'not applied' })),
    swarm_mode: Type.Optional(Type.Unknown({ description: 'not applied' })),
    goal_objective: Type.Optional(Type.Unknown({ description: 'not applied' })),
    goal_control: Type.Optional(Type.Unknown({ description: 'not applied' }))
  }),
  data: PromptObject,
  errors: [
    SessionMissing,
    SessionBusy,
    NoProvider,
    NoCredential,
    CredentialRejected,
    ModelUnresolved,
    FileMissing,
    SkillMissing,
    SkillNotForUsers,
    PromptCompleted,
    PromptInUse
  ]
})

const Steered = Type.Object({ steered: Type.Boolean(), prompt_ids: Type.Array(Type.String()) })

export const steerPrompts = defineRoute({
  method: 'POST',
  path: `${path}:steer`,
  summary: 'Merge queued prompts into the running turn',
  params,
  body: Type.Object({ prompt_ids: Type.Array(Type.String(), { minItems: 1 }) }),
  data: Steered,
  errors: [SessionMissing, SessionBusy, PromptMissing]
})

export const steerPrompt = defineRoute({
  method: 'POST',
  path: `${path}/{prompt_id}:steer`,
  summary: 'Merge one queued prompt into the running turn',
  params: promptParams,
  data: Steered,
  errors: [SessionMissing, SessionBusy, PromptMissing]
})

export const abortPrompt = defineRoute({
  method: 'POST',
  path: `${path}/{prompt_id}:abort`,
  summary: 'Abort a running or queued prompt, of any agent',
  params: promptParams,
  data: Type.Object({ aborted: Type.Boolean() }),
  errors: [SessionMissing, SessionBusy, PromptMissing, PromptCompleted]
})

export const abortSession = defineRoute({
  method: 'POST',
  path: '/api/v1/sessions/{session_id}:abort',
  summary: "Cancel the main agent's running turn",
  params,
  data: Type.Object({ aborted: Type.Boolean() }),
  errors: [SessionMissing, SessionBusy]
})
