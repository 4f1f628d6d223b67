/** A session that a client follows at another server comes here: what reaches everyone comes once. */
import assert from 'node:assert/strict'
import { mkdir, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { defineEvent, LeaseLost, type Remote, type SharedEvent, Type } from '../../kernel/index.ts'
import { startHub } from '../helpers/hub.ts'

const worked = defineEvent({ type: 'event.session.worked', scope: 'session', durable: true, deliver: 'everyone', payload: Type.Object({}) })

const unasked = () => Promise.reject(new Error('not asked'))
const notHere: Remote = {
  has: () => false,
  sessions: () => [],
  ask: unasked,
  subscribe: unasked,
  unsubscribe: () => Promise.resolve(),
  follow: () => undefined,
  offer: () => undefined,
  close: () => undefined
}

test('an event for everyone of a session that moved here is offered to a subscription elsewhere, which may still miss those before', async t => {
  const it = await startHub(t)
  const offered: SharedEvent[] = []
  const remote: Remote = {
    ...notHere,
    has: session_id => session_id === 'moved',
    sessions: () => ['moved'],
    subscribe: () => Promise.resolve({ found: true, resync: false }),
    offer: event => void offered.push(event)
  }
  it.hub.clients.elsewhere = { others: true, way: unasked, remote: () => remote }
  const client = await it.connect()
  await client.request('subscribe', { session_ids: ['moved'] })

  for (const session_id of ['moved', 'other']) it.hub.emit(worked, {}, { session_id })
  await it.hub.flushed() // each has a journal of its own
  await client.next(frame => frame.session_id === 'other')
  assert.deepEqual(
    client.frames.filter(({ type }) => type === worked.type).map(({ session_id }) => session_id),
    ['other']
  )
  assert.deepEqual(
    offered.map(({ session_id, seq }) => [session_id, seq]),
    [['moved', 1]]
  )
})

test('what is said of a session under a lease that was lost nobody hears, and nobody waits for it', async t => {
  const noted = defineEvent({ type: 'note.added', scope: 'session', durable: true, payload: Type.Object({}) })
  const { hub, connect } = await startHub(t)
  let isOurs = true
  const fence = {
    check: () => (isOurs ? undefined : Promise.reject(new LeaseLost('/home/sessions/s1'))),
    look: async () => undefined,
    temporary: () => Promise.reject(new LeaseLost('/home/sessions/s1')),
    overtaken: false
  }
  await hub.takeOver('s1', fence)
  const client = await connect()
  await client.request('subscribe', { session_ids: ['s1'] })
  hub.emit(noted, {}, 's1')
  await hub.flushed('s1')
  isOurs = false
  hub.emit(noted, {}, 's1')
  hub.emit(noted, {}, 's1')
  await hub.flushed('s1')
  await client.request('unsubscribe', { session_ids: [] })
  assert.deepEqual(
    client.frames.flatMap(({ type, seq }) => (type === noted.type ? [seq] : [])),
    [1]
  )
})

test('a journal that the disk does not let a taker have for itself costs the session nothing but what was on record', async t => {
  const noted = defineEvent({ type: 'note.added', scope: 'session', durable: true, payload: Type.Object({}) })
  const { hub, dir, connect } = await startHub(t)
  const path = join(dir, 's1.jsonl')
  const fence = { check: () => undefined, look: async () => undefined, temporary: async () => join(dir, 'new~'), overtaken: true }
  const before = await hub.takeOver('s1', fence)
  hub.emit(noted, {}, 's1')
  await hub.close('s1')
  await rename(path, join(dir, 'kept'))
  await mkdir(path)

  const refused = await hub.takeOver('s1', fence)

  assert.notEqual(refused.epoch, before.epoch)
  const client = await connect()
  await client.request('subscribe', { session_ids: ['s1'] })
  hub.emit(noted, {}, 's1')
  assert.equal((await client.next(noted.type)).seq, 1)
  await hub.close('s1')
  await rename(path, join(dir, 'other'))
  await rename(join(dir, 'kept'), path)
  assert.deepEqual(await hub.takeOver('s1', fence), { seq: 1, epoch: before.epoch })
})
