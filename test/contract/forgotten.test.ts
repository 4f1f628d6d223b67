/** What is over leaves nothing behind in the memory of a server that goes on. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSession, deleteSession, type Session, type SessionState, Sessions } from '../../features/sessions/index.ts'
import { createTerminal } from '../../features/terminals/index.ts'
import { definePack, extensionPoint, type PackContext } from '../../kernel/index.ts'
import { startTestKernel, type TestContextLike } from '../../kernel/testing.ts'
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

test('packs that collect from each other keep no activation but the one before of the others, however often they are swapped', async t => {
  const contexts: WeakRef<PackContext>[] = []
  const points = [extensionPoint<() => unknown>('lefts'), extensionPoint<() => unknown>('rights')] as const
  const looks = new Map<string, () => unknown>()
  const pack = (name: string, [own, others]: readonly (typeof points)[number][]) =>
    definePack({
      name,
      setup(ctx) {
        contexts.push(new WeakRef(ctx as PackContext))
        const found = ctx.collect(others!)
        const look = () => [ctx.name, found.items()]
        looks.set(name, look)
        ctx.contribute(own!, look)
      }
    })
  const { kernel } = await startTestKernel(t, { packs: [pack('left', points), pack('right', [...points].reverse())] })
  for (let n = 0; n < 5; n++) {
    for (const name of ['left', 'right']) {
      await kernel.reload(name)
      looks.get(name)?.() // the other one still knows what there was when it looked
    }
  }
  assert.equal(contexts.length, 12)
  assert.ok((await keptOf(contexts, 4)) <= 4)
})
