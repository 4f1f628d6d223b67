/** A session whose server is gone goes on at another: what its subscribers there hear, and when. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineEvent, type SharedEvent, Type } from '../../kernel/index.ts'
import { startHub } from '../helpers/hub.ts'

const worked = defineEvent({ type: 'event.session.worked', scope: 'session', durable: true, deliver: 'everyone', payload: Type.Object({}) })

test('an event for everyone of a session that moved here is offered to a subscription elsewhere, which may still miss those before', async t => {
  const it = await startHub(t)
  const offered: SharedEvent[] = []
  it.hub.clients.makeRemote = () => ({
    has: session_id => session_id === 'moved',
    sessions: () => ['moved'],
    ask: () => Promise.reject(new Error('not asked')),
    subscribe: () => Promise.resolve({ found: true, resync: false }),
    unsubscribe: () => Promise.resolve(),
    follow: () => undefined,
    stop: () => Promise.resolve(undefined),
    forget: () => undefined,
    offer: event => void offered.push(event),
    close: () => undefined
  })
  let there = true
  const unasked = () => Promise.reject(new Error('not asked'))
  it.hooks.elsewhere.tap('test', id => (id === 'moved' && there ? { id: 'other', relay: unasked, connect: unasked } : (undefined as never)))
  const client = await it.connect()
  await client.request('subscribe', { session_ids: ['moved'] })

  there = false
  for (const session_id of ['moved', 'other']) it.hub.emit(worked, {}, { session_id })
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
