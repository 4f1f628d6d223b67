import assert from 'node:assert/strict'
import { test } from 'node:test'
import { updateProfile } from '../../../features/sessions/index.ts'
import sessions from '../../../features/sessions/pack.ts'
import { scene } from '../sessions-v2/scene.ts'

test('who follows a session goes on when the pack is swapped: told to take it anew, and no event is missing', async t => {
  const { make, directory, call, connect, kernel } = await scene(t)
  const id = await make(await directory())
  const socket = await connect()
  await socket.request('subscribe', { session_ids: [id] })

  await kernel.reload(sessions)

  const { payload } = await socket.next(frame => frame.type === 'resync_required')
  assert.equal(payload.session_id, id)
  await call(updateProfile, { params: { session_id: id }, body: { title: 'after' } })
  const { seq } = await socket.next(frame => frame.payload.title === 'after')
  assert.equal(seq, Number(payload.current_seq) + 1)
})

test('who follows a session hears of it again when the pack was away for a while', async t => {
  const { make, directory, call, connect, kernel } = await scene(t)
  const id = await make(await directory())
  const socket = await connect()
  await socket.request('subscribe', { session_ids: [id] })
  await kernel.unload('sessions')
  assert.equal(socket.frames.filter(frame => frame.type === 'resync_required').length, 0)

  await kernel.load(sessions)

  await socket.next(frame => frame.type === 'resync_required')
  await call(updateProfile, { params: { session_id: id }, body: { title: 'after' } })
  await socket.next(frame => frame.payload.title === 'after')
})
