/** A session whose server is gone goes on at another: what its subscribers there hear, and when. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { defineEvent, type Place, type Remote, type SharedEvent, type SubscribeWish, Type } from '../../kernel/index.ts'
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
  stop: () => Promise.resolve(undefined),
  handOver: () => Promise.resolve(() => undefined),
  offer: () => undefined,
  close: () => undefined
}

test('an event for everyone of a session that moved here is offered to a subscription elsewhere, which may still miss those before', async t => {
  const it = await startHub(t)
  const offered: SharedEvent[] = []
  it.hub.clients.makeRemote = () => ({
    ...notHere,
    has: session_id => session_id === 'moved',
    sessions: () => ['moved'],
    subscribe: () => Promise.resolve({ found: true, resync: false }),
    offer: event => void offered.push(event)
  })
  let there = true
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

/** A hub that may lose its session to another server, and what is subscribed there from then on. */
async function losing(t: TestContext) {
  const it = await startHub(t)
  const wishes: SubscribeWish[] = []
  let place: Place | undefined
  it.hub.clients.makeRemote = () => ({
    ...notHere,
    subscribe: (_place, _id, wish) => {
      wishes.push(wish)
      return Promise.resolve({ found: true, resync: false, mark: { seq: 7, epoch: 'there' } })
    }
  })
  it.hooks.elsewhere.tap('test', () => place as never)
  const { epoch } = await it.hub.takeOver('s')
  it.hub.emit(worked, {}, { session_id: 's' })
  await it.hub.flushed('s')
  const lose = async () => {
    place = { id: 'other', relay: unasked, connect: unasked }
    await it.hub.lost('s')
  }
  const comeBack = async () => {
    place = undefined
    await it.hub.takeOver('s')
  }
  return { ...it, wishes, epoch, lose, comeBack }
}

for (const cursor of [undefined, 0])
  test(`a subscription that meets a session right when another server takes it is made there, ${cursor === 0 ? 'with' : 'without'} a cursor`, async t => {
    const { hub, hooks, connect, wishes, epoch, lose } = await losing(t)
    hooks.attachStream.tapPromise({ name: 'late', stage: -1 }, async () => {
      await lose()
      return undefined as never
    })
    const client = await connect()
    const cursors = cursor === undefined ? {} : { cursors: { s: { seq: cursor, epoch } } }
    const { payload } = await client.request('subscribe', { session_ids: ['s'], ...cursors })
    assert.deepEqual(payload, { accepted: ['s'], not_found: [], resync_required: [], cursors: { s: { seq: 7, epoch: 'there' } } })
    assert.deepEqual(
      wishes.map(wish => wish.cursor?.seq),
      [cursor]
    )
    assert.equal(hub.subscribers('s'), 0)
  })

test('a session that comes back to a server which had lost it is subscribed there', async t => {
  const { hub, connect, lose, comeBack } = await losing(t)
  await lose()
  await comeBack()
  const client = await connect()
  await client.request('subscribe', { session_ids: ['s'], cursors: { s: { seq: 0 } } })
  assert.equal(hub.subscribers('s'), 1)
})
