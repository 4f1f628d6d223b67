/** Wires search: the route, and which sessions may have changed in this process. */
import { definePack, milliseconds, Type } from '../../kernel/index.ts'
import { Sessions, sessionArchived } from '../sessions/index.ts'
import { searchAll } from './contract.ts'
import { Searcher } from './searcher.ts'
import { removeSnapshot, snapshotOf } from './snapshot.ts'

/** Sessions that were archived or deleted since the last search; beyond, the next look at all of them tells. */
const maxTouched = 1000

export default definePack({
  name: 'search',
  description: 'Full-text search over messages and titles of all sessions',
  area: 'Files',
  needs: { sessions: Sessions },
  config: Type.Object({
    idle_ms: milliseconds({ minimum: 1, default: 600_000, description: 'the index leaves memory when nobody has searched for so long' })
  }),
  setup(ctx, { sessions }) {
    const searcher = new Searcher(ctx.home, ctx.config.idle_ms)
    ctx.own(() => searcher.close())
    const gone = new Set<string>()
    sessions.onArchive(session => {
      if (gone.size < maxTouched) gone.add(session.id)
    })
    // It may be long until the next search, which would find what is left.
    ctx.on(sessionArchived, ({ payload: { sessionId } }) =>
      ctx.background(async () => {
        if (!(await sessions.state(sessionId))) await removeSnapshot(snapshotOf(ctx.home, sessionId)).catch(() => undefined)
      })
    )
    ctx.route(searchAll, async ({ body, signal }) => {
      const { session_id } = body.container ?? {}
      const live = session_id !== undefined && sessions.loaded(session_id) !== undefined
      const loaded = sessions.allLoaded().map(({ id, state }) => ({ id, title: state.title, time: Date.parse(state.updated_at) }))
      const touched = [...loaded, ...[...gone].map(id => ({ id }))]
      gone.clear()
      return await searcher.search(body, live, touched, signal)
    })
  }
})
