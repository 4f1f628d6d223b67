/** Wires sessions: the catalog of the home, the table of loaded sessions, their routes and events. */
import {
  AppError,
  atOwner,
  definePack,
  EventSubject,
  KernelInfo,
  lockHolder,
  type Static,
  type Streams,
  Type,
  within
} from '../../kernel/index.ts'
import { Peers, PeerTopics } from '../peers/index.ts'
import { SessionCounter, Workspaces } from '../workspaces/index.ts'
import { Catalog, sessionsRoot } from './catalog.ts'
import {
  agentCreated,
  archiveSession,
  createSession,
  deleteSession,
  listChildren,
  listSessions,
  localRuntime,
  RuntimeMissing,
  readProfile,
  readRuntime,
  readSession,
  restoreSession,
  SessionBusy,
  SessionMissing,
  sessionArchived,
  sessionCreated,
  sessionMetaUpdated,
  setRuntime,
  stateStore,
  statusChanged,
  updateProfile,
  workChanged
} from './contract.ts'
import { copiedState, customMetadata, firstState, knownWorkspace, newSessionId, placeOf, rescueState } from './create.ts'
import { Leases } from './leases.ts'
import { discardLeft } from './removal.ts'
import {
  AgentConfigHandlers,
  type Session,
  SessionChecks,
  SessionDefaults,
  type SessionLive,
  type SessionState,
  Sessions
} from './service.ts'
import { type SessionFact, SharedSessions } from './shared.ts'
import { SessionTable } from './table.ts'
import { type ListQuery, listPage, queryProblem, sessionObject } from './view.ts'

/** The title that clients of a session heard last. */
async function titleHeard(streams: Pick<Streams, 'backwards'>, id: string): Promise<string | undefined> {
  for await (const { type, payload } of streams.backwards(id)) {
    if (type === sessionMetaUpdated.type && typeof payload.title === 'string') return payload.title
    if (type === sessionCreated.type) return (payload.session as { title: string }).title
  }
  return undefined
}

export default definePack({
  name: 'sessions',
  version: '1.0.0',
  description: 'Sessions: create, list, read, profile, archive; loads them and unloads the idle ones',
  area: 'Sessions',
  needs: { workspaces: Workspaces, kernel: KernelInfo },
  optional: { peers: Peers },
  provides: [Sessions, SessionCounter, EventSubject],
  config: Type.Object({
    max_idle: Type.Integer({ minimum: 0, default: 64, description: 'loaded sessions without work and subscribers that are kept' }),
    idle_ms: Type.Integer({
      minimum: 0,
      default: 10_000,
      description: 'beyond max_idle a session stays loaded so long after its last use'
    }),
    hibernate_ms: Type.Integer({ minimum: 0, default: 300_000, description: 'a session that was not used for so long is unloaded' }),
    foreign_refresh_ms: Type.Integer({ minimum: 0, default: 1000, description: "age at which another server's session is read again" }),
    scan_interval_ms: Type.Integer({ minimum: 0, default: 3000, description: 'lists look at the disk at most this often' }),
    take_over: Type.Boolean({ default: true, description: 'what an earlier server left open or waiting goes on at the start' })
  }),
  setup(ctx, { workspaces, kernel, peers }) {
    const leases = new Leases({ home: ctx.home, server_id: kernel.server_id, log: ctx.log })
    ctx.own(() => leases.close())
    ctx.fence(file => leases.of(file)) // before everything that writes: it stays until that is through
    const root = sessionsRoot(ctx.home)
    const emitCreated = ctx.event(sessionCreated)
    const emitArchived = ctx.event(sessionArchived)
    const emitMeta = ctx.event(sessionMetaUpdated)
    const emitWork = ctx.event(workChanged)
    const emitStatus = ctx.event(statusChanged)
    const emitAgentCreated = ctx.event(agentCreated)
    const handlers = ctx.collect(AgentConfigHandlers)
    const checks = ctx.collect(SessionChecks)
    const sessionDefaults = ctx.collect(SessionDefaults)

    let takenOver: () => void = () => undefined
    const catalog = new Catalog({
      root,
      store: ctx.store(stateStore, { dir: 'sessions' }),
      storeAt: dir => ctx.storeAt(stateStore, dir),
      log: ctx.log,
      scanMs: ctx.config.scan_interval_ms,
      leasesElsewhere: () => leases.elsewhere(),
      takenOver: new Promise<void>(resolve => {
        if (ctx.config.take_over) takenOver = resolve
        else resolve()
      }),
      rescue: (workspace_id, id) => rescueState({ root, workspaces, log: ctx.log }, workspace_id, id)
    })
    const table = new SessionTable({
      catalog,
      streams: ctx.streams,
      log: ctx.log,
      lock: dir => leases.acquire(dir),
      isElsewhere: async id => (await ownerOf(id)) !== undefined,
      isFree: async path => {
        const holder = await lockHolder(path)
        return holder === undefined || (await leases.isExpired(holder))
      },
      maxIdle: ctx.config.max_idle,
      idleMs: ctx.config.idle_ms,
      hibernateMs: Math.max(ctx.config.hibernate_ms, ctx.config.idle_ms),
      foreignMs: ctx.config.foreign_refresh_ms,
      changed: (id, gone) => (gone ? shared.gone(id) : shared.changed(id)),
      patched: (state, fence) => shared.patched(state, fence),
      live: {
        now: ctx.now,
        hosts: ctx.hosts,
        store: (spec, dir) => ctx.storeAt(spec, dir),
        workChanged: (session, work) => {
          shared.changed(session.id)
          const reason = session.state.last_turn_reason
          emitWork({ ...work, ...(reason === undefined ? {} : { last_turn_reason: reason }) }, session.id)
        },
        statusChanged: ({ id }, { prompt_id, ...change }) =>
          emitStatus({ ...change, ...(prompt_id === undefined ? {} : { current_prompt_id: prompt_id }) }, id),
        metaUpdated: (id, payload) => emitMeta(payload, id),
        flushed: id => ctx.streams.flushed(id),
        agentCreated: (session_id, agent_id) => emitAgentCreated({}, { session_id, subject: agent_id })
      }
    })
    table.onLoad(async session => {
      if (session.writable && session.state.title_untold)
        session.tellTitle((await titleHeard(ctx.streams, session.id)) === session.state.title)
    })
    const topic = 'sessions'
    const shared = new SharedSessions({
      tell: (facts, server_id) => peers()?.tell(topic, facts, server_id),
      own(id) {
        const live = table.loaded(id)
        if (!live?.writable) return undefined
        const { busy, main_turn_active, pending_interaction } = live.work
        return { id, fence: live.fence, state: live.state, work: { busy, main_turn_active, pending_interaction } }
      },
      all: () => table.all().map(({ id }) => id),
      show: state => catalog.showForeign(state),
      forget: id => catalog.forgetForeign(id)
    })
    /** The server that has a session, when it is another one that can be asked. */
    const ownerOf = async (id: string) => {
      const known = table.has(id) ? undefined : await catalog.find(id)
      const holder = known && (await lockHolder(catalog.lock(known)))
      const { server_id } = (holder?.info ?? {}) as { server_id?: string }
      const other = peers()
      if (!holder || server_id === undefined || !other || table.has(id)) return undefined
      const isExpired = await leases.isExpired(holder) // watched from the first look on, not from the first silence
      if (isExpired && other.silent(server_id)) return undefined // it is ours to take over
      return other.place(server_id)
    }
    let asking: (() => void) | undefined
    ctx.contribute(PeerTopics, {
      topic,
      present(others) {
        shared.present(others)
        asking?.()
        asking = others ? ctx.tap(ctx.hooks.elsewhere, ownerOf) : undefined
      },
      joined: server_id => shared.joined(server_id),
      left(server_id, gone) {
        shared.left(server_id)
        if (gone && ctx.config.take_over) ctx.background(signal => table.takeOverLeft(signal))
      },
      asked: payload => asked(payload),
      told: (facts, server_id) => shared.told(facts as readonly SessionFact[], server_id)
    })
    ctx.own(() => catalog.close())
    ctx.own(() => table.closeAll())
    ctx.tap(ctx.hooks.started, () => ctx.background(() => discardLeft(root, ctx.streams, ctx.log)))
    if (ctx.config.take_over) ctx.tap(ctx.hooks.started, () => ctx.background(signal => table.takeOverLeft(signal).finally(takenOver)))
    ctx.tap(ctx.hooks.started, () => ctx.background(() => catalog.removeUnfinished()))
    ctx.tap(ctx.hooks.started, () => ctx.background(() => catalog.warm()))

    const workOf = (id: string, loaded = table.loaded(id)) => (loaded?.writable ? loaded.work : (shared.work(id) ?? loaded?.work))
    const isBusy = (id: string) => workOf(id)?.busy === true
    const object = async (id: string, live?: SessionLive) => {
      const loaded = (await table.stillThere(id)) ?? (ctx.config.take_over ? await table.takeOver(id) : undefined)
      const state = loaded?.state ?? (await catalog.find(id))
      if (!state) throw new AppError(SessionMissing)
      return sessionObject(state, workOf(id, loaded), live)
    }

    const stateOf = (state: SessionState) => {
      const loaded = table.loaded(state.id)
      return loaded?.writable ? loaded.state : state
    }
    const pageOf = (sorted: readonly SessionState[], query: ListQuery, workspaces?: readonly string[]) => {
      const { rows, has_more } = listPage(sorted, query, isBusy, workspaces)
      return { items: rows.map(state => sessionObject(stateOf(state), workOf(state.id))), has_more }
    }
    const announce = (session: Session) => {
      const created = sessionObject(session.state, session.work)
      emitCreated({ session: created }, session.id)
      return created
    }

    const archived = (state: SessionState): SessionState =>
      state.archived ? state : { ...state, archived: true, archived_at: ctx.now().toISOString() }
    const unarchived = (state: SessionState): SessionState => {
      const { archived_at: _at, ...rest } = state
      return state.archived ? { ...rest, archived: false } : state
    }
    /** Also when memory says that it is so: the write that made it so may be refused yet. */
    const changeLive = async (session: Session, change: typeof archived) => {
      if (session.writable || change(session.state) !== session.state) await session.update(change)
    }
    const restoreLive = (session: Session) => changeLive(session, unarchived)
    const archiveHere = async (id: string) => {
      await table.patch(id, archived, async session => {
        if (session.writable) await table.archiving(session)
        await changeLive(session, archived)
      })
      const workspace_id = (await catalog.find(id))?.workspace_id
      if (workspace_id !== undefined) emitArchived({ workspace_id, sessionId: id })
    }

    const restoreHere = (id: string) => table.patch(id, unarchived, restoreLive)
    const changes = { archive: archiveHere, restore: restoreHere }
    /** Makes a change where the session is. Throws what it throws there, and OwnerSilent. */
    const change = async (what: keyof typeof changes, id: string) => {
      const others = peers()
      const there =
        others &&
        others.servers().length > 0 &&
        (await atOwner(
          () => ownerOf(id),
          () => false,
          place => others.ask(place.id, topic, { what, id })
        ))
      if (!there) return await changes[what](id)
      const { code, message } = there as { readonly code?: number; readonly message?: string }
      const failure = [SessionMissing, SessionBusy].find(spec => spec.code === code)
      if (failure) throw new AppError(failure)
      if (code !== undefined) throw new Error(message)
    }
    const asked = async (payload: unknown): Promise<{ readonly code?: number; readonly message?: string }> => {
      const { what, id } = payload as { readonly what: keyof typeof changes; readonly id: string }
      try {
        await changes[what](id)
        return {}
      } catch (error) {
        if (!AppError.is(error)) throw error
        return { code: error.code, message: error.message }
      }
    }

    /** Throws what keeps a session from being made. A check that fails otherwise keeps nothing from it. */
    const assertAllowed = async () => {
      for (const { pack, item } of checks.entries()) {
        const what = `session check ${item.name}`
        try {
          await ctx.onAccountOf(pack, what, () => item.check())
        } catch (error) {
          if (AppError.is(error)) throw error
          ctx.blame(pack, what, error)
        }
      }
    }
    ctx.provide(Sessions, {
      dir: state => catalog.dir(state),
      exists: async id => (table.loaded(id) ?? (await catalog.find(id))) !== undefined,
      state: async id => table.loaded(id)?.state ?? (await catalog.find(id)),
      load: id => table.load(id),
      loaded: id => table.loaded(id),
      async copy(source, copy, fill) {
        const state = copiedState(source.state, newSessionId(), copy, ctx.now()) // as it is now: what comes from here on is not copied
        await assertAllowed()
        await catalog.createFilled(state, fill)
        return announce(await table.load(state.id))
      },
      allLoaded: () => table.all(),
      async newestLoaded() {
        const loaded = (await catalog.list()).filter(({ id }) => table.loaded(id) ?? shared.isLoaded(id))
        return loaded.reduce<SessionState | undefined>((a, b) => (a && a.created_at >= b.created_at ? a : b), undefined)?.id
      },
      list: () => catalog.list(),
      object,
      archive: id => change('archive', id),
      restore: id => change('restore', id),
      work: id => workOf(id),
      onLoad: listener => table.onLoad(listener),
      onArchive: listener => table.onArchive(listener)
    })
    ctx.provide(EventSubject, { field: 'agentId', fallback: 'main', filter: 'agent_filter' })
    ctx.provide(SessionCounter, { counts: () => catalog.counts() })
    ctx.tap(ctx.hooks.attachStream, async id => {
      if (!(await catalog.find(id))) return 'missing'
      await table.load(id)
      return 'live'
    })

    /** Of packs that can say; one that fails is left out, and its value follows the configuration. */
    const defaultsNow = async () => {
      const told = sessionDefaults.entries().map(async ({ pack, item }): Promise<[string, unknown][]> => {
        const what = `session default ${item.name}`
        try {
          return [[item.name, await ctx.onAccountOf(pack, what, () => item.value())]]
        } catch (error) {
          ctx.blame(pack, what, error)
          return []
        }
      })
      return Object.fromEntries((await Promise.all(told)).flat())
    }
    ctx.route(createSession, async ({ body }) => {
      await assertAllowed()
      const { workspace, cwd } = await placeOf(body, workspaces)
      const state = firstState(newSessionId(), workspace.id, cwd, body, ctx.now(), await defaultsNow())
      return announce(await table.create(state))
    })
    ctx.route(listSessions, async ({ query }) => {
      const problem = queryProblem(query)
      if (problem) throw problem
      const { workspace_id } = query
      if (workspace_id !== undefined) await knownWorkspace(workspace_id, workspaces, 'query.workspace_id')
      const wanted = workspace_id === undefined ? undefined : await workspaces.aliases(workspace_id)
      return pageOf(await catalog.list(), query, wanted)
    })
    ctx.route(listChildren, async ({ params: { session_id }, query }) => {
      const problem = queryProblem(query)
      if (problem) throw problem
      if (!(table.loaded(session_id) ?? (await catalog.find(session_id)))) throw new AppError(SessionMissing)
      const children = (await catalog.list()).filter(state => state.child_of === session_id)
      return pageOf(children, { page_size: 100, ...query })
    })
    ctx.route(readSession, ({ params }) => object(params.session_id))
    ctx.route(readProfile, ({ params }) => object(params.session_id))
    // The errors of those who apply fields belong to the route.
    const profile: typeof updateProfile = Object.defineProperty({ ...updateProfile }, 'errors', {
      get: () => [...(updateProfile.errors ?? []), ...handlers.items().flatMap(handler => handler.errors ?? [])]
    })
    ctx.route(profile, async ({ params: { session_id }, body }) => {
      if (body.title !== undefined || body.metadata || body.agent_config) await applyProfile(session_id, body)
      return await object(session_id)
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
      await archiveHere(session_id)
      return { archived: true }
    })
    ctx.route(deleteSession, async ({ params: { session_id } }) => {
      const { workspace_id } = await table.load(session_id)
      await table.remove(session_id)
      emitArchived({ workspace_id, sessionId: session_id })
      return { deleted: true as const }
    })
    ctx.route(restoreSession, async ({ params: { session_id } }) => {
      const session = await table.load(session_id)
      await restoreLive(session)
      return sessionObject(session.state, session.work)
    })

    /** In the contract's order: title, metadata, agent_config. Earlier steps stay when a later one fails. */
    async function applyProfile(session_id: string, change: Static<NonNullable<typeof updateProfile.body>>) {
      const session = await table.load(session_id)
      session.assertWritable()
      const { title, metadata, agent_config } = change
      if (title !== undefined) await session.entitle(title, 'custom')
      if (metadata) {
        await session.update(state => ({ ...state, metadata: { ...state.metadata, ...customMetadata(metadata) } }), { touch: true })
      }
      const wanted: Readonly<Record<string, unknown>> = agent_config ?? {}
      const done = new Set<string>()
      for (const handler of [...handlers.items()].sort((a, b) => a.order - b.order)) {
        const value = wanted[handler.field]
        if (value === undefined || done.has(handler.field)) continue
        done.add(handler.field)
        await handler.apply(session, value).catch((error: unknown) => {
          throw within('body.agent_config', error)
        })
      }
    }
  }
})
