/** Wire shapes, routes, events, stores and errors of sessions (contract 2, Sessions). */
import {
  AppError,
  cursorQuery,
  defineEvent,
  defineRoute,
  defineStore,
  errorSpec,
  named,
  oneOf,
  openObject,
  page,
  type Static,
  Time,
  Type
} from '../../kernel/index.ts'
import { PathMissing, WorkspaceMissing } from '../workspaces/index.ts'

/** Where the work of sessions runs: this machine is the only runtime. */
export const localRuntime = 'local'
export const RuntimeMissing = errorSpec('runtime_missing', 40420, 'no such runtime')
export const RuntimeUnavailable = errorSpec('runtime_unavailable', 40926, 'the runtime is not available')
export const SessionMissing = errorSpec('session_missing', 40401, 'session not found')
export const SessionBusy = errorSpec('session_busy', 40901, 'session is busy')
/** SessionBusy, because another server process has the session. */
export const busyElsewhere = () => new AppError(SessionBusy, { message: 'session is open in another server process' })

const Reason = named('TurnReason', oneOf(['completed', 'cancelled', 'failed'], { description: 'how the last turn ended' }))
const Pending = named('PendingInteraction', oneOf(['none', 'approval', 'question']))

/** Work and the end of the last turn in one word. */
export const SessionStatus = named('WorkStatus', oneOf(['idle', 'running', 'awaiting_approval', 'awaiting_question', 'aborted']))
export type SessionStatus = Static<typeof SessionStatus>

/** Tokens and costs; all zero outside the snapshot. */
export const SessionUsage = named(
  'SessionUsage',
  Type.Object({
    input_tokens: Type.Integer({ description: 'uncached input' }),
    output_tokens: Type.Integer(),
    cache_read_tokens: Type.Integer(),
    cache_creation_tokens: Type.Integer(),
    context_tokens: Type.Integer(),
    context_limit: Type.Optional(Type.Integer()),
    total_cost_usd: Type.Optional(Type.Number()),
    turn_count: Type.Optional(Type.Integer())
  })
)

/** Custom metadata of a session, and its working directory. */
export const SessionMetadata = named(
  'SessionMetadata',
  openObject({ cwd: Type.String({ description: 'absolute path of the working directory' }) }, { examples: [{ cwd: '/home/me/project' }] })
)

/** Contract 2, Session object. */
export const SessionObject = named(
  'Session',
  Type.Object({
    id: Type.String({ examples: ['session_3f0c4a52-6a1e-4f0b-9d57-2f4f8f1c7a10'] }),
    workspace_id: Type.String({ examples: ['wd_project_5d41402abc4b'] }),
    title: Type.String({ description: 'empty when untitled', examples: ['Fix the login test'] }),
    created_at: Time,
    updated_at: Time,
    archived: Type.Boolean(),
    archived_at: Type.Optional(Time),
    busy: Type.Boolean(),
    main_turn_active: Type.Boolean(),
    pending_interaction: Pending,
    last_turn_reason: Type.Optional(Reason),
    last_prompt: Type.Optional(Type.String()),
    metadata: SessionMetadata,
    agent_config: Type.Object({ model: Type.String({ description: 'alias id; empty until one is bound', examples: ['work/large'] }) }),
    usage: SessionUsage,
    permission_rules: Type.Array(Type.Unknown()),
    message_count: Type.Integer(),
    last_seq: Type.Integer()
  })
)
export type SessionObject = Static<typeof SessionObject>

const params = Type.Object({ session_id: Type.String() })
const Metadata = Type.Record(Type.String(), Type.Unknown(), { examples: [{ team: 'payments' }] })

const Title = Type.String({ minLength: 1, examples: ['Fix the login test'] })
const item = '/api/v1/sessions/{session_id}' as const

const CreateRequest = named(
  'CreateSessionRequest',
  Type.Object({
    workspace_id: Type.Optional(Type.String()),
    metadata: Type.Optional(
      openObject(
        { cwd: Type.Optional(Type.String({ description: 'absolute path of an existing directory; required without workspace_id' })) },
        { description: 'kept and answered as it is', examples: [{ cwd: '/home/me/project' }] }
      )
    ),
    title: Type.Optional(Title),
    agent_config: Type.Optional(Type.Record(Type.String(), Type.Unknown(), { description: 'accepted, not applied' }))
  })
)

export const createSession = defineRoute({
  method: 'POST',
  path: '/api/v1/sessions',
  summary: 'Create a session',
  description: 'One of workspace_id and metadata.cwd says where it works; a directory is registered as a workspace on first use.',
  body: CreateRequest,
  data: SessionObject,
  errors: [PathMissing, WorkspaceMissing]
})

export const listSessions = defineRoute({
  method: 'GET',
  path: '/api/v1/sessions',
  summary: 'List sessions, newest updated_at first',
  query: Type.Composite([
    cursorQuery(),
    Type.Object({
      busy: Type.Optional(Type.Boolean()),
      include_archive: Type.Optional(Type.Boolean()),
      archived_only: Type.Optional(Type.Boolean()),
      exclude_empty: Type.Optional(Type.Boolean()),
      workspace_id: Type.Optional(Type.String())
    })
  ]),
  data: page(SessionObject),
  errors: [WorkspaceMissing]
})

export const readSession = defineRoute({
  method: 'GET',
  path: item,
  summary: 'Read a session',
  params,
  data: SessionObject,
  errors: [SessionMissing]
})

export const readProfile = defineRoute({
  method: 'GET',
  path: `${item}/profile`,
  summary: 'Read a session',
  params,
  data: SessionObject,
  errors: [SessionMissing]
})

const ProfileRequest = named(
  'UpdateSessionProfileRequest',
  Type.Object({
    title: Type.Optional(Title),
    metadata: Type.Optional(Metadata),
    agent_config: Type.Optional(
      Type.Object({
        model: Type.Optional(Type.String()),
        thinking: Type.Optional(Type.String()),
        permission_mode: Type.Optional(oneOf(['manual', 'yolo', 'auto'])),
        plan_mode: Type.Optional(Type.Boolean()),
        swarm_mode: Type.Optional(Type.Boolean()),
        goal_objective: Type.Optional(Type.String()),
        goal_control: Type.Optional(oneOf(['pause', 'resume', 'cancel'])),
        system_prompt: Type.Optional(Type.Unknown({ description: 'not applied' })),
        tools: Type.Optional(Type.Unknown({ description: 'not applied' })),
        mcp_servers: Type.Optional(Type.Unknown({ description: 'not applied' }))
      })
    ),
    permission_rules: Type.Optional(Type.Array(Type.Unknown(), { description: 'not applied' }))
  })
)

export const updateProfile = defineRoute({
  method: 'POST',
  path: `${item}/profile`,
  summary: 'Update title, metadata and main-agent configuration',
  params,
  body: ProfileRequest,
  data: SessionObject,
  errors: [SessionMissing, SessionBusy]
})

export const listChildren = defineRoute({
  method: 'GET',
  path: `${item}/children`,
  summary: 'List the children of a session, newest updated_at first',
  params,
  query: Type.Composite([cursorQuery(100), Type.Object({ busy: Type.Optional(Type.Boolean()) })]),
  data: page(SessionObject),
  errors: [SessionMissing]
})

const Binding = named('RuntimeBinding', Type.Object({ workspace_id: Type.String(), runtime_id: Type.String() }))

/** Where the work of a session runs (contract 2, Runtime binding). Loads a cold session. */
export const readRuntime = defineRoute({
  method: 'GET',
  path: `${item}/runtime`,
  summary: 'Read the runtime of a session',
  params,
  data: Binding,
  errors: [SessionMissing]
})

export const setRuntime = defineRoute({
  method: 'POST',
  path: `${item}/runtime`,
  summary: 'Bind a session to a runtime',
  params,
  body: Type.Object({ runtime_id: Type.String({ minLength: 1 }) }),
  data: Binding,
  errors: [SessionMissing, SessionBusy, RuntimeMissing, RuntimeUnavailable]
})

export const archiveSession = defineRoute({
  method: 'POST',
  path: `${item}:archive`,
  summary: 'Archive a session',
  params,
  data: Type.Object({ archived: Type.Boolean() }),
  errors: [SessionMissing, SessionBusy]
})

export const restoreSession = defineRoute({
  method: 'POST',
  path: `${item}:restore`,
  summary: 'Un-archive and resume a session',
  params,
  data: SessionObject,
  errors: [SessionMissing, SessionBusy]
})

const deletion = {
  description: 'For good: its directory and its event journal go. Clients hear of it as of an archived session (`event.session.archived`).',
  params,
  data: Type.Object({ deleted: Type.Literal(true) }),
  errors: [SessionMissing, SessionBusy]
}

export const deleteSession = defineRoute({
  ...deletion,
  method: 'DELETE',
  path: item,
  summary: 'Delete a session with all its data; its running work ends first'
})

export const deleteSessionAction = defineRoute({
  ...deletion,
  method: 'POST',
  path: `${item}:delete`,
  operationId: 'deleteSessionByAction',
  summary: 'The same as DELETE, for clients that know actions only'
})

export const sessionCreated = defineEvent({
  type: 'event.session.created',
  summary: 'A session was created, also by a fork or as a child',
  scope: 'session',
  durable: true,
  deliver: 'everyone',
  once: true,
  payload: Type.Object({ session: SessionObject })
})

export const sessionArchived = defineEvent({
  type: 'event.session.archived',
  summary: 'A session was archived, or deleted: lists do not show it any more',
  scope: 'global',
  durable: true,
  payload: Type.Object({ workspace_id: Type.String(), sessionId: Type.String() })
})

export const sessionMetaUpdated = defineEvent({
  type: 'session.meta.updated',
  summary: 'Title or last prompt of a session changed: `patch` has what did',
  scope: 'session',
  durable: true,
  deliver: 'everyone',
  payload: Type.Object({
    title: Type.Optional(Type.String()),
    patch: Type.Object({
      title: Type.Optional(Type.String()),
      isCustomTitle: Type.Optional(Type.Boolean()),
      lastPrompt: Type.Optional(Type.String())
    })
  })
})

export const workChanged = defineEvent({
  type: 'event.session.work_changed',
  summary: 'Whether a session works, waits for the user, and how its last turn ended',
  scope: 'session',
  durable: true,
  deliver: 'everyone',
  payload: Type.Object({
    busy: Type.Boolean(),
    main_turn_active: Type.Boolean(),
    pending_interaction: Pending,
    last_turn_reason: Type.Optional(Reason)
  })
})

export const statusChanged = defineEvent({
  type: 'event.session.status_changed',
  scope: 'session',
  durable: true,
  deliver: 'everyone',
  summary: 'Work in one word, behind the work_changed that changes it',
  payload: Type.Object({
    status: SessionStatus,
    previous_status: SessionStatus,
    current_prompt_id: Type.Optional(Type.String({ description: "the prompt of the main agent's turn" }))
  })
})

export const agentCreated = defineEvent({
  type: 'agent.created',
  summary: '`agentId` is there from now on',
  scope: 'session',
  durable: true,
  unfiltered: true,
  payload: Type.Object({})
})

export const agentDisposed = defineEvent({
  type: 'agent.disposed',
  summary: 'The session of `agentId` was archived; a restored one has its agents as they were',
  scope: 'session',
  durable: true,
  unfiltered: true,
  payload: Type.Object({})
})

/** `<home>/sessions/<workspace_id>/<session_id>/state.json` */
export const stateStore = defineStore({
  name: 'sessions',
  kind: 'document',
  value: Type.Object({
    id: Type.String(),
    version: Type.Integer(),
    workspace_id: Type.String(),
    cwd: Type.String(),
    title: Type.String(),
    title_kind: oneOf(['replaceable', 'generated', 'custom']),
    title_untold: Type.Optional(Type.Literal(true, { description: 'the event of the title may not be on disk' })),
    last_prompt: Type.Optional(Type.String()),
    created_at: Time,
    updated_at: Time,
    archived: Type.Boolean(),
    archived_at: Type.Optional(Time),
    forked_from: Type.Optional(Type.String()),
    child_of: Type.Optional(Type.String({ description: 'the session of which it was made a child' })),
    last_turn_reason: Type.Optional(Reason),
    agents: Type.Record(
      Type.String(),
      Type.Object({
        type: oneOf(['main', 'sub', 'independent']),
        parent_agent_id: Type.Optional(Type.String()),
        labels: Type.Optional(Type.Record(Type.String(), Type.String()))
      })
    ),
    defaults: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    metadata: Type.Record(Type.String(), Type.Unknown())
  })
})
