/** The routes of sessions (contract 2): create, list, read, profile, runtime, archive, restore, delete. */
import { type Accounts, AppError, type PackContext } from '../../kernel/index.ts'
import type { Workspaces } from '../workspaces/index.ts'
import type { Archive } from './archive.ts'
import type { Catalog } from './catalog.ts'
import {
  archiveSession,
  createSession,
  deleteSession,
  deleteSessionAction,
  listChildren,
  listSessions,
  localRuntime,
  RuntimeMissing,
  readProfile,
  readRuntime,
  readSession,
  restoreSession,
  SessionMissing,
  setRuntime
} from './contract.ts'
import { firstState, inPlace, knownWorkspace, newSessionId } from './create.ts'
import type { sessionEvents } from './events.ts'
import type { newSessionRules } from './new-session-rules.ts'
import { applyProfile, profileRoute } from './profile.ts'
import { AgentConfigHandlers } from './service.ts'
import type { ShownSessions } from './shown.ts'
import type { SessionTable } from './table.ts'
import { queryProblem, sessionObject } from './view.ts'

interface RouteParts {
  readonly table: SessionTable
  readonly catalog: Catalog
  readonly shown: ShownSessions
  readonly archive: Archive
  readonly rules: ReturnType<typeof newSessionRules>
  readonly workspaces: Workspaces
  readonly events: ReturnType<typeof sessionEvents>
}

export function registerRoutes(ctx: Pick<PackContext, 'route' | 'collect' | 'now' | keyof Accounts>, parts: RouteParts): void {
  const { table, catalog, shown, archive, rules, workspaces, events } = parts

  ctx.route(createSession, async ({ body }) => {
    await rules.assertAllowed()
    const defaults = await rules.defaults()
    const session = await inPlace(body, workspaces, (workspace, cwd) =>
      table.create(firstState(newSessionId(), workspace.id, cwd, body, ctx.now(), defaults))
    )
    return events.created(session)
  })
  ctx.route(listSessions, async ({ query }) => {
    const problem = queryProblem(query)
    if (problem) throw problem
    const { workspace_id } = query
    if (workspace_id !== undefined) await knownWorkspace(workspace_id, workspaces, 'query.workspace_id')
    const wanted = workspace_id === undefined ? undefined : await workspaces.aliases(workspace_id)
    return shown.page(await catalog.list(), query, wanted)
  })
  ctx.route(listChildren, async ({ params: { session_id }, query }) => {
    const problem = queryProblem(query)
    if (problem) throw problem
    if (!(table.loaded(session_id) ?? (await catalog.find(session_id)))) throw new AppError(SessionMissing)
    const children = (await catalog.list()).filter(state => state.child_of === session_id)
    return shown.page(children, { page_size: 100, ...query })
  })
  ctx.route(readSession, ({ params }) => shown.object(params.session_id))

  ctx.route(readProfile, ({ params }) => shown.object(params.session_id))
  const handlers = ctx.collect(AgentConfigHandlers)
  ctx.route(profileRoute(handlers), async ({ params: { session_id }, body }) => {
    if (body.title !== undefined || body.metadata || body.agent_config)
      await applyProfile(await table.load(session_id), body, handlers, ctx)
    return await shown.object(session_id)
  })

  ctx.route(readRuntime, async ({ params: { session_id } }) => {
    const { workspace_id } = await table.load(session_id)
    return { workspace_id, runtime_id: localRuntime }
  })
  ctx.route(setRuntime, async ({ params: { session_id }, body: { runtime_id } }) => {
    const session = await table.load(session_id)
    session.assertWritable()
    if (runtime_id !== localRuntime) throw new AppError(RuntimeMissing)
    return { workspace_id: session.workspace_id, runtime_id }
  })

  ctx.route(archiveSession, async ({ params: { session_id } }) => {
    await archive.archiveHere(session_id)
    return { archived: true }
  })
  ctx.route(restoreSession, async ({ params: { session_id } }) => {
    const session = await table.load(session_id)
    await archive.restoreLoaded(session)
    return sessionObject(session.state, session.work)
  })
  for (const route of [deleteSession, deleteSessionAction]) {
    ctx.route(route, async ({ params: { session_id } }) => {
      const { workspace_id } = await table.load(session_id)
      await table.remove(session_id)
      events.archived(workspace_id, session_id)
      return { deleted: true as const }
    })
  }
}
