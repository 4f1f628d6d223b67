/** What is over leaves nothing behind in the memory of a server that goes on. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSession, deleteSession, type Session, type SessionState, Sessions } from '../../features/sessions/index.ts'
import { createTerminal } from '../../features/terminals/index.ts'
import { definePack } from '../../kernel/index.ts'
import type { TestContextLike } from '../../kernel/testing.ts'
import { startTestServer } from '../../testing/index.ts'
import { keptOf } from '../helpers/collected.ts'

/** The full server, and what its packs see of sessions. */
async function scene(t: TestContextLike) {
  let found: Sessions | undefined
  const seer = definePack({
    name: 'seer',
    needs: { sessions: Sessions },
    setup(_ctx, { sessions }) {
      found = sessions
    }
  })
  const server = await startTestServer(t, { packs: [seer] })
  return {
    ...server,
    make: async () => (await server.call(createSession, { body: { metadata: { cwd: server.cwd } } })).data.id,
    /** Deletes a session; it and its state, so that nobody else holds them. */
    async gone(session_id: string): Promise<{ readonly session: WeakRef<Session>; readonly state: WeakRef<SessionState> }> {
      const session = await found!.load(session_id)
      assert.equal((await server.call(deleteSession, { params: { session_id } })).code, 0)
      return { session: new WeakRef(session), state: new WeakRef(session.state) }
    }
  }
}

test('no connection keeps a session that was deleted, however it was followed there', async t => {
  const { call, connect, make, gone } = await scene(t)
  const socket = await connect()
  const follow = async () => {
    const session_id = await make()
    const opened = await call(createTerminal, { params: { session_id }, body: { runtime_id: 'local', cols: 80, rows: 24 } })
    const asked = [
      await socket.request('subscribe', { session_ids: [session_id] }),
      await socket.request('subscribe_v2', { session_id, transcript: { '*': 'delta' } }),
      await socket.request('watch_fs_add', { session_id, paths: ['.'] }),
      await socket.request('terminal_attach', { session_id, terminal_id: opened.data.id })
    ]
    assert.deepEqual(new Set(asked.map(({ code }) => code)), new Set([0]))
    return (await gone(session_id)).session
  }
  const known = [await follow(), await follow(), await follow()]
  assert.equal(await keptOf(known), 0)
})

test('of the facts of deleted sessions the list keeps no more than there are sessions, also while nobody lists', async t => {
  const { make, gone } = await scene(t)
  const known = []
  for (let n = 0; n < 10; n++) known.push((await gone(await make())).state)
  assert.ok((await keptOf(known, 1)) <= 1)
})
