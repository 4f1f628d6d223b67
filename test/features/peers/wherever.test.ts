/** A session that another server takes, or gives back, while it is asked for. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type Place, Unreached, wayTo } from '../../../features/peers/owner.ts'
import { ClientSessions } from '../../../features/peers/wherever.ts'
import { type Cursor, defineEvent, Type } from '../../../kernel/index.ts'
import { startHub } from '../../helpers/hub.ts'

const worked = defineEvent({ type: 'session.worked', scope: 'session', durable: true, payload: Type.Object({}) })

type Subscription = { readonly id: string; readonly payload: { readonly cursors?: Readonly<Record<string, Cursor>> } }

/** A hub that may lose its session to another server, and what is subscribed there from then on. */
async function losing(t: TestContext) {
  const it = await startHub(t)
  const cursors: (Cursor | undefined)[] = []
  const other: Place = {
    id: 'other',
    relay: () => Promise.reject(new Unreached()),
    connect: async client => ({
      send(data) {
        const { id, payload } = JSON.parse(Buffer.from(data).toString('utf8')) as Subscription
        cursors.push(payload.cursors?.s)
        const answer = { accepted: ['s'], not_found: [], resync_required: [], cursors: { s: { seq: 7, epoch: 'there' } } }
        client.message(Buffer.from(JSON.stringify({ type: 'ack', id, code: 0, msg: 'success', payload: answer })), false)
      },
      close: () => undefined
    })
  }
  let place: Place | undefined
  const find = async () => place
  it.hub.clients.elsewhere = {
    others: true,
    way: session_id => wayTo(session_id, find),
    remote: (client, ports) => new ClientSessions(client, ports, find)
  }
  const { epoch } = await it.hub.takeOver('s')
  it.hub.emit(worked, {}, { session_id: 's' })
  await it.hub.flushed('s')
  const lose = async () => {
    place = other
    await it.hub.lost('s')
  }
  const comeBack = async () => {
    place = undefined
    await it.hub.takeOver('s')
  }
  return { ...it, cursors, epoch, lose, comeBack }
}

for (const cursor of [undefined, 0])
  test(`a subscription that meets a session right when another server takes it is made there, ${cursor === 0 ? 'with' : 'without'} a cursor`, async t => {
    const { hub, hooks, connect, cursors, epoch, lose } = await losing(t)
    hooks.attachStream.tapPromise({ name: 'late', stage: -1 }, async () => {
      await lose()
      return undefined as never
    })
    const client = await connect()
    const asked = cursor === undefined ? {} : { cursors: { s: { seq: cursor, epoch } } }
    const { payload } = await client.request('subscribe', { session_ids: ['s'], ...asked })
    assert.deepEqual(payload, { accepted: ['s'], not_found: [], resync_required: [], cursors: { s: { seq: 7, epoch: 'there' } } })
    assert.deepEqual(
      cursors.map(given => given?.seq),
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
