/** What is over leaves nothing behind in the memory of a server that goes on. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createSession, deleteSession, type Session, Sessions } from '../../features/sessions/index.ts'
import { createTerminal } from '../../features/terminals/index.ts'
import { definePack } from '../../kernel/index.ts'
import { startTestServer } from '../../testing/index.ts'

/** How many of them are left when nothing but the server can keep them, and rounds of collecting change nothing any more. */
async function keptOf(known: readonly WeakRef<object>[]): Promise<number> {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const left = () => known.filter(each => each.deref() !== undefined).length
  for (const end = performance.now() + 30_000; left() > 0 && performance.now() < end; collect()) await turn() // what was asked for lives to the end of a turn
  return left()
}

test('no connection keeps a session that was deleted, however it was followed there', async t => {
  let sessions: Sessions | undefined
  const seer = definePack({
    name: 'seer',
    needs: { sessions: Sessions },
    setup(_ctx, needs) {
      sessions = needs.sessions
    }
  })
  const { call, connect, cwd } = await startTestServer(t, { packs: [seer] })
  const socket = await connect()
  const follow = async (): Promise<WeakRef<Session>> => {
    const session_id = (await call(createSession, { body: { metadata: { cwd } } })).data.id
    const params = { session_id }
    const { id: terminal_id } = (await call(createTerminal, { params, body: { runtime_id: 'local', cols: 80, rows: 24 } })).data
    const asked = [
      await socket.request('subscribe', { session_ids: [session_id] }),
      await socket.request('subscribe_v2', { session_id, transcript: { '*': 'delta' } }),
      await socket.request('watch_fs_add', { session_id, paths: ['.'] }),
      await socket.request('terminal_attach', { session_id, terminal_id })
    ]
    assert.deepEqual(new Set(asked.map(({ code }) => code)), new Set([0]))
    const session = sessions?.loaded(session_id)
    assert.ok(session)
    assert.equal((await call(deleteSession, { params })).code, 0)
    return new WeakRef(session)
  }

  const known = [await follow(), await follow(), await follow()]

  assert.equal(await keptOf(known), 0)
})
