/** Wire shapes and routes of prompts (contract 2, Prompts). */
import { defineRoute, named, nullable, oneOf, Time, Type } from '../../kernel/index.ts'
import { PromptCompleted, PromptInUse, PromptMissing } from '../agent/index.ts'
import { FileMissing } from '../files/index.ts'
import { ContentPart, PromptPart } from '../history/index.ts'
import { CredentialRejected, ModelUnresolved, NoCredential, NoProvider } from '../llm/index.ts'
import { PermissionMode } from '../permissions/index.ts'
import { SessionBusy, SessionMissing } from '../sessions/index.ts'
import { SkillMissing, SkillNotForUsers } from './service.ts'

const text = Type.String()

/** Contract 2, Prompt. */
export const PromptObject = named(
  'Prompt',
  Type.Object({
    prompt_id: Type.String({ examples: ['prompt_01JD0000000000000000000000'] }),
    user_message_id: Type.String({ examples: ['msg_session_3f0c4a52-6a1e-4f0b-9d57-2f4f8f1c7a10_000000'] }),
    status: oneOf(['running', 'queued', 'blocked']),
    content: Type.Array(ContentPart, { examples: [[{ type: 'text', text: 'list the files' }]] }),
    created_at: Time
  })
)

const params = Type.Object({ session_id: Type.String() })
const promptParams = Type.Object({ session_id: Type.String(), prompt_id: Type.String() })
const path = '/api/v1/sessions/{session_id}/prompts' as const

export const listPrompts = defineRoute({
  method: 'GET',
  operationId: 'listPrompts',
  path,
  summary: 'Running and queued prompts of the main agent',
  params,
  data: Type.Object({ active: nullable(PromptObject), queued: Type.Array(PromptObject) }),
  errors: [SessionMissing]
})

const SubmitRequest = named(
  'SubmitPromptRequest',
  Type.Object({
    content: Type.Array(PromptPart, { minItems: 1, examples: [[{ type: 'text', text: 'list the files' }]] }),
    agent_id: Type.Optional(Type.String()),
    prompt_id: Type.Optional(
      Type.String({ minLength: 1, maxLength: 200, description: 'chosen by the client, for submitting again without a second run' })
    ),
    skills: Type.Optional(
      Type.Array(Type.Object({ name: Type.String({ minLength: 1 }), args: Type.Optional(text) }), { minItems: 1, maxItems: 100 })
    ),
    profile: Type.Optional(Type.String()),
    model: Type.Optional(Type.String()),
    thinking: Type.Optional(Type.String()),
    permission_mode: Type.Optional(PermissionMode),
    disabled_tools: Type.Optional(Type.Array(Type.String())),
    metadata: Type.Optional(Type.Unknown({ description: 'not applied' })),
    plan_mode: Type.Optional(Type.Unknown({ description: 'not applied' })),
    swarm_mode: Type.Optional(Type.Unknown({ description: 'not applied' })),
    goal_objective: Type.Optional(Type.Unknown({ description: 'not applied' })),
    goal_control: Type.Optional(Type.Unknown({ description: 'not applied' }))
  })
)

export const submitPrompt = defineRoute({
  method: 'POST',
  operationId: 'submitPrompt',
  path,
  summary: 'Submit a prompt; answers as soon as it is accepted',
  params,
  body: SubmitRequest,
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

const Steered = named('SteerResult', Type.Object({ steered: Type.Boolean(), prompt_ids: Type.Array(Type.String()) }))

export const steerPrompts = defineRoute({
  method: 'POST',
  operationId: 'steerPrompts',
  path: `${path}:steer`,
  summary: 'Merge queued prompts into the running turn',
  params,
  body: Type.Object({ prompt_ids: Type.Array(Type.String(), { minItems: 1 }) }),
  data: Steered,
  errors: [SessionMissing, SessionBusy, PromptMissing]
})

export const steerPrompt = defineRoute({
  method: 'POST',
  operationId: 'steerPrompt',
  path: `${path}/{prompt_id}:steer`,
  summary: 'Merge one queued prompt into the running turn',
  params: promptParams,
  data: Steered,
  errors: [SessionMissing, SessionBusy, PromptMissing]
})

export const abortPrompt = defineRoute({
  method: 'POST',
  operationId: 'abortPrompt',
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
