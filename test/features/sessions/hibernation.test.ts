import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { updateProfile } from '../../../features/sessions/index.ts'
import { scene } from '../sessions-v2/scene.ts'

/** Resolves when the session, which is loaded, is closed. */
async function asleep({ sessions }: Awaited<ReturnType<typeof scene>>, id: string): Promise<void> {
  const session = await sessions.load(id)
  await new Promise<void>(resolve => session.own(resolve))
}

const often = { sessions: { idle_ms: 5, hibernate_ms: 400 } }

test('a session that nobody uses is unloaded; used again it goes on with its events where they were', async t => {
  const server = await scene(t, { config: often })
  const { make, call, sessions, connect, directory } = server
  const id = await make(await directory())
  const params = { session_id: id }
  await call(updateProfile, { params, body: { title: 'first' } })
  await asleep(server, id)
  assert.equal(sessions.loaded(id), undefined)
  const { dir } = await sessions.load(id)
  assert.equal('title_untold' in JSON.parse(await readFile(join(dir, 'state.json'), 'utf8')), false) // it was told
  await asleep(server, id)

  await call(updateProfile, { params, body: { title: 'second' } })

  const socket = await connect()
  await socket.request('subscribe', { session_ids: [id], cursors: { [id]: { seq: 0 } } })
  await socket.next(frame => frame.payload.title === 'second')
  const told = socket.frames.filter(frame => frame.session_id === id)
  assert.deepEqual(
    told.map(({ seq, type, payload }) => [seq, type, payload.title]),
    [
      [1, 'event.session.created', undefined],
      [2, 'session.meta.updated', 'first'],
      [3, 'session.meta.updated', 'second']
    ]
  )
  assert.equal(new Set(told.map(({ epoch }) => epoch)).size, 1)
})

test('a session that somebody watches, works in or waits for stays; it sleeps once that is over', async t => {
  const server = await scene(t, { config: often })
  const { make, sessions, connect, directory } = server
  const cwd = await directory()
  const [watched, busy, asked, kept, unused] = [await make(cwd), await make(cwd), await make(cwd), await make(cwd), await make(cwd)]
  const socket = await connect()
  await socket.request('subscribe', { session_ids: [watched] })
  const work = (await sessions.load(busy)).work
  work.turnStarted('main')
  const asking = (await sessions.load(asked)).work
  asking.pending('approval', 1)
  const letGo = (await sessions.load(kept)).keep()

  await asleep(server, unused)
  await sessions.load(unused)
  await asleep(server, unused)

  for (const id of [watched, busy, asked, kept]) assert.ok(sessions.loaded(id))
  const over = Promise.all([watched, busy, asked, kept].map(id => asleep(server, id)))
  await socket.request('unsubscribe', { session_ids: [watched] })
  work.turnEnded('main', 'completed')
  asking.pending('approval', -1)
  letGo()
  await over
})

test('nothing keeps a session in memory that sleeps', async t => {
  const server = await scene(t, { config: often })
  const { make, sessions, directory } = server
  const cwd = await directory()
  const ids = await Promise.all(Array.from({ length: 5 }, () => make(cwd)))
  const known = await Promise.all(ids.map(async id => new WeakRef(await sessions.load(id))))
  await Promise.all(ids.map(id => asleep(server, id)))

  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const left = () => known.filter(session => session.deref() !== undefined).length
  for (const end = performance.now() + 60_000; left() > 0 && performance.now() < end; collect()) await turn() // what was asked for lives to the end of a turn
  assert.equal(left(), 0)
})
