import assert from 'node:assert/strict'
import { test } from 'node:test'
import { archiveSessions, restoreSessions } from '../../../features/sessions-v2/index.ts'
import { idsOf, scene } from './scene.ts'

test('a batch answers for each id where it came first, and the list shows it; unknown ids fail alone', async t => {
  const { make, query, call, directory, events } = await scene(t)
  const cwd = await directory()
  const [a, b] = [await make(cwd), await make(cwd)]

  const { data } = await call(archiveSessions, { body: { ids: [b, 'session_nobody', a, b, '../x'] } })

  const missing = { code: 40401, message: 'session not found' }
  assert.deepEqual(data, {
    results: [
      { id: b, ok: true },
      { id: 'session_nobody', ok: false, error: missing },
      { id: a, ok: true },
      { id: '../x', ok: false, error: missing }
    ],
    succeeded: 2,
    failed: 2
  })
  assert.deepEqual(idsOf((await query({})).data), [])
  const told = () =>
    events.filter(({ type }) => type === 'event.session.archived').map(({ payload }) => (payload as { sessionId: string }).sessionId)
  assert.deepEqual(told().sort(), [a, b].sort())
  assert.equal((await call(archiveSessions, { body: { ids: [a] } })).data.succeeded, 1)
  assert.equal(told().length, 3)
  assert.equal((await call(restoreSessions, { body: { ids: [a, b] } })).data.succeeded, 2)
  assert.equal(told().length, 3)
  assert.deepEqual(idsOf((await query({})).data), [b, a])
})

test('an empty batch and one of more than 5,000 ids are refused; duplicates do not count', async t => {
  const { make, call, directory } = await scene(t)
  const id = await make(await directory())
  for (const ids of [[], Array.from({ length: 5001 }, (_, n) => `session_${n}`)]) {
    const { code, details } = await call(archiveSessions, { body: { ids } })
    assert.deepEqual([code, details?.[0]?.path], [40001, 'body.ids'])
  }
  const { data } = await call(archiveSessions, { body: { ids: Array.from({ length: 6000 }, () => id) } })
  assert.deepEqual(data.results, [{ id, ok: true }])
})

test('a loaded session ends its work before it is archived; one that is cold stays cold', async t => {
  const first = await scene(t)
  const cwd = await first.directory()
  const [a, b] = [await first.make(cwd), await first.make(cwd)]
  await first.stop()
  const { call, sessions, home } = await scene(t, { home: first.home })
  const ended: string[] = []
  sessions.onArchive(session => void ended.push(session.id))
  await sessions.load(a)

  const { data } = await call(archiveSessions, { body: { ids: [a, b] } })

  assert.equal(data.succeeded, 2)
  assert.deepEqual(ended, [a])
  assert.equal(sessions.loaded(b), undefined)
  assert.deepEqual([(await sessions.state(a))?.archived, (await sessions.state(b))?.archived], [true, true])
  assert.equal((await sessions.load(b)).writable, true)
  await call(restoreSessions, { body: { ids: [b] } })
  assert.equal((await sessions.state(b))?.archived_at, undefined)

  const other = await scene(t, { home })
  const busy = await other.call(restoreSessions, { body: { ids: [a] } })
  assert.deepEqual(
    busy.data.results.map(result => (result.ok ? 0 : result.error.code)),
    [40901]
  )
})

test('sessions that are archived and loaded at the same time are archived and writable', async t => {
  const first = await scene(t)
  const cwd = await first.directory()
  const ids: string[] = []
  for (let n = 0; n < 20; n++) ids.push(await first.make(cwd))
  await first.stop()
  const { call, sessions } = await scene(t, { home: first.home })

  const [{ data }, ...loaded] = await Promise.all([call(archiveSessions, { body: { ids } }), ...ids.map(id => sessions.load(id))])

  assert.equal(data.succeeded, 20)
  assert.ok(loaded.every(session => session.writable))
  for (const id of ids) assert.equal((await sessions.state(id))?.archived, true)
})
