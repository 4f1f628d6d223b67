/** The first state of a session: of a new one (contract 2, POST sessions), or of one whose state file was lost. */
import { randomUUID } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { isAbsolute, join } from 'node:path'
import { AppError, invalid, type Logger, within } from '../../kernel/index.ts'
import { PathMissing, WorkspaceMissing, type WorkspaceRecord, type Workspaces } from '../workspaces/index.ts'
import { names } from './disk.ts'
import type { SessionCopy, SessionState } from './service.ts'

interface CreateInput {
  readonly workspace_id?: string
  readonly metadata?: Readonly<Record<string, unknown>>
  readonly title?: string
}

const workspaceForm = /^wd_[a-z0-9._-]+_[0-9a-f]{12}$/

/**
 * Makes a new session in its workspace, at its working directory. Registers (or touches) the workspace, whose event counts the session and
 * precedes the session's own. Throws 40001, 40409 (PathMissing), 40410 (WorkspaceMissing).
 */
export async function inPlace<T>(
  input: CreateInput,
  workspaces: Workspaces,
  make: (workspace: WorkspaceRecord, cwd: string) => Promise<T>
): Promise<T> {
  const cwd = input.metadata?.cwd
  if (cwd !== undefined && (typeof cwd !== 'string' || cwd === '')) {
    throw invalid([{ path: 'body.metadata.cwd', message: 'expected a directory path' }])
  }
  if (input.workspace_id === undefined) {
    if (cwd === undefined) throw invalid([{ path: 'body.metadata.cwd', message: 'required when workspace_id is absent' }])
    if (!isAbsolute(cwd)) throw new AppError(PathMissing, { message: `path ${cwd} does not exist: a working directory is absolute` })
    return await workspaces
      .register(cwd, workspace => make(workspace, cwd))
      .catch((error: unknown) => {
        throw within('body.metadata.cwd', error)
      })
  }
  const known = await knownWorkspace(input.workspace_id, workspaces, 'body.workspace_id')
  if (cwd !== undefined && bare(cwd) !== bare(known.root)) {
    throw invalid([{ path: 'body.metadata.cwd', message: 'differs from the workspace root' }])
  }
  return await workspaces.register(known.root, workspace => make(workspace, known.root))
}

/** Throws 40001 (detail at `field`) for an id that cannot be one, WorkspaceMissing (40410) for an unknown one. */
export async function knownWorkspace(id: string, workspaces: Workspaces, field: string): Promise<WorkspaceRecord> {
  if (!workspaceForm.test(id)) throw invalid([{ path: field, message: 'not a workspace id' }])
  const known = await workspaces.get(id)
  if (!known) throw new AppError(WorkspaceMissing)
  return known
}

/** `session_<uuid>`. */
export const newSessionId = (): string => `session_${randomUUID()}`

export function firstState(
  id: string,
  workspace_id: string,
  cwd: string,
  input: CreateInput,
  now: Date,
  defaults?: Readonly<Record<string, unknown>>
): SessionState {
  const at = now.toISOString()
  return {
    id,
    version: 1,
    workspace_id,
    cwd,
    title: input.title ?? '',
    title_kind: input.title === undefined ? 'replaceable' : 'custom',
    created_at: at,
    updated_at: at,
    archived: false,
    agents: {},
    ...(defaults && { defaults }),
    metadata: customMetadata(input.metadata ?? {})
  }
}

/**
 * The state of a copy: a plain one is nobody's child, whatever its source is. It keeps the `updated_at` of its source, because nothing was
 * said in it since.
 */
export function copiedState(
  source: SessionState,
  id: string,
  { title, metadata = {}, child = false }: SessionCopy,
  now: Date
): SessionState {
  const { archived_at: _at, child_of: _parent, title_untold: _untold, ...facts } = source
  return {
    ...facts,
    id,
    title,
    title_kind: 'custom',
    created_at: now.toISOString(),
    archived: false,
    forked_from: source.id,
    ...(child ? { child_of: source.id } : {}),
    metadata: customMetadata({ ...source.metadata, ...metadata })
  }
}

interface RescuePorts {
  /** Absolute path of `<home>/sessions`. */
  readonly root: string
  readonly workspaces: Workspaces
  readonly log: Logger
}

/**
 * A session whose state file was lost opens again with what the workspace and the directory tell. Undefined when no agent has a journal (an
 * empty or foreign directory, or what a server that stood still wrote into one that is deleted) or the workspace is unknown.
 */
export async function rescueState(ports: RescuePorts, workspace_id: string, id: string): Promise<SessionState | undefined> {
  const dir = join(ports.root, workspace_id, id)
  const agents = await names(join(dir, 'agents'))
  const said = await Promise.all(agents.map(name => hasJournal(join(dir, 'agents', name))))
  const workspace = said.includes(true) ? await ports.workspaces.get(workspace_id) : undefined
  if (!workspace) return undefined
  ports.log.warn({ session_id: id }, 'session state was lost; rebuilt from its workspace')
  const state = firstState(id, workspace_id, workspace.root, {}, (await stat(dir)).birthtime)
  const records = agents.map(name => [name, { type: name === 'main' ? ('main' as const) : ('sub' as const) }])
  return { ...state, last_prompt: '', agents: Object.fromEntries(records) }
}

/** Something was recorded of the agent in this directory. */
async function hasJournal(dir: string): Promise<boolean> {
  const journals = (await names(dir)).filter(name => name.endsWith('.jsonl'))
  const sizes = await Promise.all(
    journals.map(name =>
      stat(join(dir, name)).then(
        ({ size }) => size,
        () => 0
      )
    )
  ) // it may go meanwhile
  return sizes.some(size => size > 0)
}

/** `cwd` is a fact of the session and `goal` belongs to the server: neither is custom metadata. */
export function customMetadata(metadata: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { cwd: _cwd, goal: _goal, ...custom } = metadata
  return custom
}

const bare = (path: string): string => path.replaceAll('\\', '/').replace(/\/+$/, '')
