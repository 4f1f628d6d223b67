/** Who hears what (contract 3, Delivery scopes), as a strict page sees it. */
import assert from 'node:assert/strict'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { Page } from '../helpers/page.ts'
import { bubblesOf } from '../helpers/page-session.ts'
import { newSession, prompt, scene } from '../helpers/scene.ts'

test('workspace, session and configuration events reach every socket in the shapes both readings expect', async t => {
  const { page: open, cwd } = await scene(t, [[{ text: 'x' }]])
  const page = await open()
  const quiet = await open()
  const id = await newSession(page, cwd)
  const created = await quiet.next('event.workspace.created')
  const { workspace, type: _t, agentId, sessionId, ...fields } = created.payload
  assert.deepEqual(fields, workspace)
  assert.deepEqual([created.session_id, sessionId, agentId], ['__global__', '__global__', 'main'])
  const born = await quiet.next('event.session.created')
  assert.equal(born.session_id, id)
  assert.equal(born.payload.session.id, id)
  assert.equal(born.payload.session.metadata.cwd, cwd)
  assert.equal(born.payload.session.agent_config.model, '')

  const from = quiet.frames.length
  const second = await newSession(page, cwd)
  await quiet.next(frame => frame.type === 'event.session.created' && frame.session_id === second, from)
  assert.deepEqual(
    quiet.frames.slice(from).map(frame => frame.type),
    ['event.workspace.updated', 'event.session.created']
  )
  await page.post(`/api/v1/sessions/${id}/profile`, { title: 'Mine' })
  const meta = await quiet.next('session.meta.updated')
  assert.deepEqual([meta.session_id, meta.payload.title, meta.payload.patch], [id, 'Mine', { title: 'Mine', isCustomTitle: true }])
  await page.post(`/api/v1/sessions/${id}:archive`)
  const gone = await quiet.next('event.session.archived')
  assert.deepEqual([gone.session_id, gone.payload.sessionId, gone.payload.workspace_id], ['__global__', id, workspace.id])

  const answer = await page.post('/api/v1/config', { telemetry: false, default_permission_mode: 'manual' })
  assert.equal(answer.code, 0, answer.msg)
  const { payload } = await quiet.next('event.config.changed')
  assert.deepEqual([...payload.changed_fields].sort(), ['default_permission_mode', 'telemetry'])
  assert.deepEqual(payload.changedFields, payload.changed_fields)
  assert.deepEqual(payload.config, answer.data)
  assert.equal(typeof payload.config.providers, 'object')
  assert.doesNotMatch(JSON.stringify(quiet.frames), /secret-key/)
  assert.deepEqual([...page.problems, ...quiet.problems], [])
  const seqs = quiet.frames.filter(frame => frame.session_id === '__global__').map(frame => frame.seq)
  assert.deepEqual(
    seqs,
    seqs.map((_seq, n) => n + 1)
  )
})

test('an agent filter hides the main agent until a subscription without one; agent.created and global events pass', async t => {
  const { page: open, cwd, server } = await scene(t, [[{ text: 'x' }]])
  const page = await open()
  const id = await newSession(page, cwd)
  await page.openSession(id)
  const narrow = await server.connect()
  await narrow.request('client_hello', { client_id: 'n', subscriptions: [id], agent_filter: { [id]: ['agent-0'] } })
  await prompt(page, id, 'hi')
  await page.next('prompt.completed')
  await narrow.next(frame => frame.payload?.last_turn_reason === 'completed')
  await narrow.request('subscribe', { session_ids: [id] })
  const works = ['event.session.work_changed', 'event.session.status_changed']
  assert.deepEqual(
    narrow.frames.filter(frame => frame.session_id === id).map(frame => frame.type),
    ['agent.created', 'session.meta.updated', ...works, ...works]
  )
  await prompt(page, id, 'again')
  await narrow.next('turn.step.completed')
  assert.deepEqual(page.problems, [])
})

test('a hello whose cursor cannot be served is told to resync, one for a session that is nowhere is told so', async t => {
  const first = await scene(t, [[{ text: 'one' }], [{ text: 'two' }]])
  const page = await first.page()
  const id = await newSession(page, first.cwd)
  await page.openSession(id)
  await prompt(page, id, 'hi')
  await page.next('prompt.completed')
  const { epoch } = page.session(id)
  const from = page.frames.length
  await first.server.stop()
  await rm(join(first.home, 'server', 'events', `${id}.jsonl`))

  const second = await first.again()
  await page.reconnect(second)
  await page.settled()
  const resync = await page.next('resync_required', from)
  assert.equal(resync.payload.session_id, id)
  assert.equal(resync.payload.reason, 'epoch_changed')
  assert.equal(resync.payload.current_seq, page.session(id).seq)
  assert.notEqual(page.session(id).epoch, epoch)
  assert.deepEqual((await page.next('ack', from)).payload.resync_required, [id])
  await prompt(page, id, 'still there?')
  await page.next('prompt.completed', from)
  assert.deepEqual(page.problems, [])
  const { messages } = (await page.get(`/api/v1/sessions/${id}/snapshot`)).data
  assert.deepEqual(page.session(id).bubbles, bubblesOf(messages.items))

  const stranger = await Page.open(t, second)
  const ack = await stranger.request('client_hello', { subscriptions: ['session_none', id], cursors: { session_none: { seq: 3 } } })
  assert.equal(ack.code, 0)
  assert.deepEqual(ack.payload.not_found, ['session_none'])
  assert.deepEqual(ack.payload.accepted_subscriptions, [id])
  assert.equal((await stranger.request('subscribe', { session_ids: [id], cursors: { [id]: { seq: 'x' } } })).code, 40001)
  assert.deepEqual(stranger.problems, [])
})

// The pieces come paced: the window that reads shares this process with the server, and must be able to keep up.
test('a window that stops reading loses its connection, and no other window waits for it', async t => {
  const piece = 'x'.repeat(64 * 1024)
  const {
    page: open,
    cwd,
    server
  } = await scene(t, [[...Array.from({ length: 400 }, () => ({ text: piece, every_ms: 1 })), { text: 'end' }]])
  const page = await open()
  const id = await newSession(page, cwd)
  await page.openSession(id)
  const stuck = await server.connect()
  await stuck.request('subscribe', { session_ids: [id] })
  stuck.ws.pause()
  await prompt(page, id, 'a lot')
  await page.next('prompt.completed')
  assert.equal((await page.get('/api/v1/connections')).data.connections.length, 1)
  stuck.ws.resume()
  // 1006 when the close frame itself did not get through in time.
  assert.ok([1013, 1006].includes((await stuck.closed).code))
  assert.deepEqual(page.problems, [])
  assert.equal(page.gaps, 0)
})
