/** Wires sessions: the catalog of the home, the table of loaded sessions, their routes and events. */
import { definePack, EventSubject, KernelInfo, milliseconds, Type } from '../../kernel/index.ts'
import { Peers, PeerTopics } from '../peers/index.ts'
import { SessionCounter, Workspaces } from '../workspaces/index.ts'
import { Archive, sessionsTopic } from './archive.ts'
import { Catalog } from './catalog.ts'
import { stateStore } from './contract.ts'
import { copiedState, newSessionId, rescueState } from './create.ts'
import { sessionsRoot } from './disk.ts'
import { sessionEvents } from './events.ts'
import { removeUnfinished } from './filling.ts'
import { Leases } from './leases.ts'
import { LeftOpen } from './left-open.ts'
import { newSessionRules } from './new-session-rules.ts'
import { Owners } from './owners.ts'
import { discardLeft } from './removal.ts'
import { registerRoutes } from './routes.ts'
import { type SessionState, Sessions } from './service.ts'
import { type SessionFact, SharedSessions } from './shared.ts'
import { ShownSessions } from './shown.ts'
import { SessionTable } from './table.ts'
import { titleHeard } from './title.ts'

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
    idle_ms: milliseconds({
      minimum: 0,
      default: 10_000,
      description: 'beyond max_idle a session stays loaded so long after its last use'
    }),
    hibernate_ms: milliseconds({ minimum: 0, default: 300_000, description: 'a session that was not used for so long is unloaded' }),
    foreign_refresh_ms: milliseconds({ minimum: 0, default: 1000, description: "age at which another server's session is read again" }),
    scan_interval_ms: milliseconds({ minimum: 0, default: 3000, description: 'lists look at the disk at most this often' }),
    take_over: Type.Boolean({ default: true, description: 'what an earlier server left open or waiting goes on at the start' })
  }),
  setup(ctx, { workspaces, kernel, peers }) {
    const leases = new Leases({ home: ctx.home, server_id: kernel.server_id, log: ctx.log })
    ctx.own(() => leases.close())
    ctx.fence(file => leases.of(file)) // before everything that writes: it stays until that is through
    const root = sessionsRoot(ctx.home)
    const events = sessionEvents(ctx)
    const rules = newSessionRules(ctx)

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
    const owners = new Owners({ catalog, leases, peers, isHere: id => table.has(id) })
    const table = new SessionTable({
      catalog,
      streams: ctx.streams,
      log: ctx.log,
      lock: dir => leases.acquire(dir),
      owners,
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
        flushed: id => ctx.streams.flushed(id),
        ...events.live,
        workChanged(session, work) {
          shared.changed(session.id)
          events.live.workChanged(session, work)
        }
      }
    })
    table.loading.add(async session => {
      if (session.writable && session.state.title_untold)
        session.tellTitle((await titleHeard(ctx.streams, session.id)) === session.state.title)
    })
    const shared = new SharedSessions({
      tell: (facts, server_id) => peers()?.tell(sessionsTopic, facts, server_id),
      own: id => table.loaded(id)?.fact,
      all: () => table.all().map(({ id }) => id),
      show: state => catalog.showForeign(state),
      forget: id => catalog.forgetForeign(id)
    })
    const left = new LeftOpen({ table, catalog, streams: ctx.streams, owners, log: ctx.log })
    const shown = new ShownSessions({ table, catalog, shared, ...(ctx.config.take_over ? { left } : {}) })
    const archive = new Archive({
      table,
      catalog,
      now: ctx.now,
      disposed: session => events.disposed(session),
      archived: events.archived,
      owners,
      peers
    })
    let asking: (() => void) | undefined
    ctx.contribute(PeerTopics, {
      topic: sessionsTopic,
      present(others) {
        shared.present(others)
        asking?.()
        const known = others ? peers() : undefined
        asking = known && ctx.tap(known.owner, id => owners.of(id))
      },
      joined: server_id => shared.joined(server_id),
      left(server_id, gone) {
        shared.left(server_id)
        if (gone && ctx.config.take_over) ctx.background(signal => left.takeOverAll(signal))
      },
      asked: payload => archive.asked(payload),
      told: (facts, server_id) => shared.told(facts as readonly SessionFact[], server_id)
    })
    ctx.own(() => catalog.close())
    ctx.own(() => table.closeAll())
    ctx.tap(ctx.hooks.started, () => ctx.background(() => discardLeft(root, ctx.streams, ctx.log)))
    if (ctx.config.take_over) ctx.tap(ctx.hooks.started, () => ctx.background(signal => left.takeOverAll(signal).finally(takenOver)))
    ctx.tap(ctx.hooks.started, () => ctx.background(signal => left.openFollowed(signal)))
    ctx.tap(ctx.hooks.started, () => ctx.background(() => removeUnfinished(root)))
    ctx.tap(ctx.hooks.started, () => ctx.background(() => catalog.warm()))
    ctx.tap(ctx.hooks.attachStream, async id => {
      if (!(await catalog.find(id))) return 'missing'
      await table.load(id)
      return 'live'
    })

    ctx.provide(Sessions, {
      dir: state => catalog.dir(state),
      exists: async id => (table.loaded(id) ?? (await catalog.find(id))) !== undefined,
      state: async id => table.loaded(id)?.state ?? (await catalog.find(id)),
      load: id => table.load(id),
      loaded: id => table.loaded(id),
      async copy(source, copy, fill) {
        const state = copiedState(source.state, newSessionId(), copy, ctx.now()) // as it is now: what comes from here on is not copied
        await rules.assertAllowed()
        await catalog.createFilled(state, fill)
        return events.created(await table.begin(state))
      },
      allLoaded: () => table.all(),
      async newestLoaded() {
        const loaded = (await catalog.list()).filter(({ id }) => table.loaded(id) ?? shared.isLoaded(id))
        return loaded.reduce<SessionState | undefined>((a, b) => (a && a.created_at >= b.created_at ? a : b), undefined)?.id
      },
      list: () => catalog.list(),
      object: (id, live) => shown.object(id, live),
      archive: id => archive.archive(id),
      restore: id => archive.restore(id),
      work: id => shown.work(id),
      onLoad: listener => table.loading.add(listener),
      onArchive: listener => table.archiving.add(listener),
      onRestore: listener => table.restoring.add(listener)
    })
    ctx.provide(EventSubject, { field: 'agentId', fallback: 'main', filter: 'agent_filter' })
    ctx.provide(SessionCounter, { counts: () => catalog.counts() })
    registerRoutes(ctx, { table, catalog, shown, archive, rules, workspaces, events })
  }
})
