/** Wire and files of the workspaces pack (contract 3, Workspaces). */
import { defineEvent, defineRoute, defineStore, named, type Static, Time, Type } from '../../kernel/index.ts'
import { PathMissing, WorkspaceMissing } from './service.ts'

const name = Type.String({ minLength: 1, maxLength: 100, examples: ['project'] })

/** Answers 40001 for ids of another form. */
export const WorkspaceId = Type.String({
  pattern: '^wd_[a-z0-9._-]+_[0-9a-f]{12}$',
  description: 'wd_<slug>_<hash12>',
  examples: ['wd_project_5d41402abc4b']
})

export const Workspace = named(
  'Workspace',
  Type.Object({
    id: WorkspaceId,
    root: Type.String({ description: 'Absolute path, as it was first registered', examples: ['/home/me/project'] }),
    name,
    created_at: Time,
    last_opened_at: Time,
    session_count: Type.Integer({ minimum: 0, description: 'Archived sessions too' })
  })
)
export type Workspace = Static<typeof Workspace>

const base = '/api/v1/workspaces'
const one = `${base}/{workspace_id}`
const params = Type.Object({ workspace_id: WorkspaceId })
const errors = [WorkspaceMissing]

export const listWorkspaces = defineRoute({
  method: 'GET',
  path: base,
  summary: 'List workspaces in the order of their registration',
  data: Type.Object({ items: Type.Array(Workspace) })
})
export const registerWorkspace = defineRoute({
  method: 'POST',
  operationId: 'registerWorkspace',
  path: base,
  summary: 'Register a directory',
  description: 'Registering a root again refreshes last_opened_at and keeps everything else, its name too.',
  body: Type.Object({
    root: Type.String({ minLength: 1, description: 'Absolute path of an existing directory', examples: ['/home/me/project'] }),
    name: Type.Optional(name)
  }),
  data: Workspace,
  errors: [PathMissing]
})
export const renameWorkspace = defineRoute({
  method: 'PATCH',
  path: one,
  summary: 'Change the display name',
  params,
  body: Type.Object({ name }),
  data: Workspace,
  errors
})
export const deleteWorkspace = defineRoute({
  method: 'DELETE',
  path: one,
  summary: 'Unregister; the directory and its sessions stay on disk',
  params,
  data: Type.Object({ deleted: Type.Literal(true) }),
  errors
})
export const readTrust = defineRoute({
  method: 'GET',
  path: `${one}/trust`,
  summary: 'Whether project-level configuration is loaded',
  params,
  data: Type.Object({ trusted: Type.Boolean() }),
  errors
})
export const trustWorkspace = defineRoute({
  method: 'POST',
  operationId: 'trustWorkspace',
  path: `${one}/trust`,
  summary: 'Trust the workspace',
  params,
  data: Type.Object({ trusted: Type.Literal(true) }),
  errors
})
export const untrustWorkspace = defineRoute({
  method: 'POST',
  operationId: 'untrustWorkspace',
  path: `${one}/untrust`,
  summary: 'Withdraw the trust',
  params,
  data: Type.Object({ trusted: Type.Literal(false) }),
  errors
})

/** The object's fields, and the same object under `workspace` for clients that look there. */
const announced = Type.Composite([Workspace, Type.Object({ workspace: Workspace })])

export const workspaceCreated = defineEvent({
  type: 'event.workspace.created',
  scope: 'global',
  durable: true,
  summary: 'A directory was registered',
  payload: announced
})
export const workspaceUpdated = defineEvent({
  type: 'event.workspace.updated',
  scope: 'global',
  durable: true,
  summary: 'It was renamed, opened or registered again, or has another session',
  payload: announced
})
export const workspaceDeleted = defineEvent({
  type: 'event.workspace.deleted',
  scope: 'global',
  durable: true,
  summary: 'A directory is registered no more; it and its sessions stay on disk',
  payload: Type.Object({ workspace_id: Type.String(), root: Type.String() })
})

const Row = Type.Object({ root: Type.String(), name: Type.String(), created_at: Type.String(), last_opened_at: Type.String() })

/** `<home>/workspaces.json`. Rows keep the order of registration. */
export const registryStore = defineStore({
  name: 'workspaces',
  kind: 'document',
  value: Type.Object({
    version: Type.Literal(1),
    workspaces: Type.Record(Type.String(), Row),
    deleted_workspace_ids: Type.Array(Type.String(), { description: 'Unregistered by the user: never registered again on their own' })
  })
})
export type RegistryFile = Static<typeof registryStore.value>

/** `<home>/trust.json`: the trusted workspaces by id. */
export const trustStore = defineStore({
  name: 'trust',
  kind: 'document',
  value: Type.Object({ version: Type.Literal(1), trusted: Type.Record(Type.String(), Type.Object({ trusted_at: Type.String() })) })
})
export type TrustFile = Static<typeof trustStore.value>
