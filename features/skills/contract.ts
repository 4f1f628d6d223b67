/** Wire shapes of skills (contract 2, Skill descriptor and Skills). */
import { defineEvent, defineRoute, named, oneOf, Type } from '../../kernel/index.ts'
import { FileMissing } from '../files/index.ts'
import { MediaPart } from '../history/index.ts'
import { CredentialRejected, ModelUnresolved, NoCredential, NoProvider } from '../llm/index.ts'
import { SkillMissing, SkillNotForUsers } from '../prompts/index.ts'
import { SessionBusy, SessionMissing } from '../sessions/index.ts'
import { WorkspaceId, WorkspaceMissing } from '../workspaces/index.ts'

export const SkillDescriptor = named(
  'Skill',
  Type.Object({
    name: Type.String({ examples: ['write-skill'] }),
    description: Type.String(),
    path: Type.String({ examples: ['builtin://write-skill'] }),
    source: oneOf(['project', 'user', 'extra', 'builtin']),
    type: Type.Optional(oneOf(['prompt', 'inline', 'flow', 'reference'], { description: '`reference` cannot be activated' })),
    disable_model_invocation: Type.Optional(Type.Boolean({ description: 'the model does not see it' }))
  })
)

const list = Type.Object({ skills: Type.Array(SkillDescriptor) })

export const listSessionSkills = defineRoute({
  method: 'GET',
  path: '/api/v1/sessions/{session_id}/skills',
  summary: 'Skills of a session, sorted by name',
  params: Type.Object({ session_id: Type.String() }),
  data: list,
  errors: [SessionMissing]
})

export const listWorkspaceSkills = defineRoute({
  method: 'GET',
  path: '/api/v1/workspaces/{workspace_id}/skills',
  summary: 'Skills of a workspace, without a session',
  params: Type.Object({ workspace_id: WorkspaceId }),
  data: list,
  errors: [WorkspaceMissing]
})

export const activateSkill = defineRoute({
  method: 'POST',
  path: '/api/v1/sessions/{session_id}/skills/{skill_name}:activate',
  summary: 'Give the main agent a skill: starts a turn, or joins the running one',
  params: Type.Object({ session_id: Type.String(), skill_name: Type.String({ examples: ['write-skill'] }) }),
  body: Type.Object({
    args: Type.Optional(Type.String()),
    attachments: Type.Optional(Type.Array(MediaPart, { description: 'images, videos and files' }))
  }),
  data: Type.Object({ activated: Type.Boolean({ description: 'false: a hook blocked it' }), skill_name: Type.String() }),
  errors: [
    SessionMissing,
    SessionBusy,
    NoProvider,
    NoCredential,
    CredentialRejected,
    ModelUnresolved,
    FileMissing,
    SkillMissing,
    SkillNotForUsers
  ]
})

export const skillActivated = defineEvent({
  type: 'skill.activated',
  summary: 'An agent was given a skill, by the user, by itself or by another skill',
  scope: 'session',
  durable: true,
  payload: Type.Object({
    activationId: Type.String(),
    skillName: Type.String(),
    skillArgs: Type.Optional(Type.String()),
    trigger: oneOf(['user-slash', 'model-tool', 'nested-skill']),
    skillType: Type.Optional(Type.String()),
    skillPath: Type.Optional(Type.String()),
    skillSource: Type.Optional(oneOf(['project', 'user', 'extra', 'builtin']))
  })
})
