import assert from 'node:assert/strict'
import { appendFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Connection, defineEvent, Type } from '../../kernel/index.ts'
import type { SocketClient } from '../../kernel/testing.ts'
import { startHub } from '../helpers/hub.ts'
import { latch } from '../helpers/latch.ts'
import { journalsOf, MemoryJournal } from '../helpers/memory-journals.ts'

const noted = defineEvent({ type: 'note.added', scope: 'session', durable: true, payload: Type.Object({ text: Type.String() }) })
const moved = defineEvent({ type: 'notes.moved', scope: 'global', durable: true, payload: Type.Object({ text: Type.String() }) })
const typed = defineEvent({
  type: 'note.delta',
  scope: 'session',
  durable: false,
  payload: Type.Object({ delta: Type.String() })
})

/** A journal whose writes wait until it is opened up. */
class SlowJournal extends MemoryJournal {
  readonly asked = latch()
  readonly ready = latch()

  override async append(lines: readonly Uint8Array[]): Promise<void> {
    this.asked.open()
    await this.ready.opened
    await super.append(lines)
  }
}

const texts = (client: SocketClient) => client.frames.flatMap(frame => frame.payload?.text ?? frame.payload?.delta ?? [])

test('an event that is on its way to disk when a client subscribes counts as past', async t => {
  const journal = new SlowJournal()
  const { hub, connect } = await startHub(t, { journals: journalsOf(journal) })
  await hub.open('s1')
  const [client, other] = [await connect(), await connect()]
  hub.emit(noted, { text: 'past' }, 's1')
  await journal.asked.opened
  const subscribed = client.request('subscribe', { session_ids: ['s1'] })
  await other.request('unsubscribe', { session_ids: [] })
  await other.request('unsubscribe', { session_ids: [] }) // by now the server has read the subscription
  journal.ready.open()
  assert.equal((await subscribed).payload.cursors.s1.seq, 1)
  hub.emit(noted, { text: 'new' }, 's1')
  await client.next(frame => frame.payload?.text === 'new')
  assert.deepEqual(texts(client), ['new'])
})

test('what other servers tell everyone reaches clients in that order, also while the disk takes its time', async t => {
  const journal = new SlowJournal()
  const { hub, connect } = await startHub(t, { journals: journalsOf(journal) })
  hub.emit(moved, { text: 'own' }) // makes the type known
  const client = await connect()
  const tell = (scope: 'global' | 'session', text: string) => {
    const facts = { type: scope === 'global' ? moved.type : noted.type, session_id: scope === 'global' ? '__global__' : 's1', seq: 1 }
    const frame = Buffer.from(JSON.stringify({ ...facts, timestamp: new Date(0).toISOString(), payload: { text } }))
    hub.deliver({ ...facts, scope, durable: true, frame })
  }
  tell('global', 'a workspace')
  tell('session', 'a session')
  tell('global', 'another workspace')
  await journal.asked.opened
  await client.request('unsubscribe', { session_ids: [] })
  journal.ready.open()
  await client.next(frame => frame.payload?.text === 'another workspace')
  assert.deepEqual(texts(client).slice(-3), ['a workspace', 'a session', 'another workspace'])
})

test('packs hear that a client went live after a cursor, and only then', async t => {
  const { hub, hooks, connect } = await startHub(t)
  const heard: unknown[] = []
  hooks.subscribed.tap('test', (id, connection) => heard.push([id, connection.id]))
  await hub.open('s1')
  const client = await connect()
  await client.request('subscribe', { session_ids: ['s1'] })
  assert.deepEqual(heard, [])
  await client.request('subscribe', { session_ids: ['s1'], cursors: { s1: { seq: 0 } } })
  assert.deepEqual(heard, [['s1', (await client.next('server_hello')).payload.ws_connection_id]])
})

test('packs hear whether a client that goes live after a cursor was shown all of it before', async t => {
  const { hub, hooks, connect } = await startHub(t)
  const heard: boolean[] = []
  hooks.subscribed.tap('test', (_id, _connection, wasLive) => heard.push(wasLive))
  await hub.open('s1')
  const client = await connect()
  const cursors = { s1: { seq: 0 } }
  const subscribe = (agent_filter?: readonly string[]) =>
    client.request('subscribe', { session_ids: ['s1'], cursors, ...(agent_filter && { agent_filter: { s1: agent_filter } }) })

  for (const filter of [['main', 'agent-1'], ['main'], ['agent-1'], [], ['main'], []]) await subscribe(filter)
  await client.request('client_hello', { client_id: 'c', subscriptions: ['s1'], cursors })
  await client.request('unsubscribe', { session_ids: ['s1'] })
  await subscribe()

  assert.deepEqual(heard, [false, true, false, false, true, false, true, false])
})

test('a volatile event for one client reaches that one, in order, and neither others nor listeners', async t => {
  const { hub, hooks, connect } = await startHub(t)
  const heard: unknown[] = []
  hub.on(undefined, event => heard.push(event.payload))
  hooks.subscribed.tap('test', (_, only) => hub.emit(typed, { delta: 'yours' }, { session_id: 's1', only }))
  await hub.open('s1')
  const [other, client] = [await connect(), await connect()]
  await other.request('subscribe', { session_ids: ['s1'] })
  hub.emit(noted, { text: 'past' }, 's1')
  await client.request('subscribe', { session_ids: ['s1'], cursors: { s1: { seq: 0 } } })
  hub.emit(typed, { delta: 'all' }, 's1')
  for (const who of [client, other]) await who.next(frame => frame.payload?.delta === 'all')
  assert.deepEqual(texts(client), ['past', 'yours', 'all'])
  assert.deepEqual(texts(other), ['past', 'all'])
  assert.deepEqual(heard, [{ text: 'past' }, { delta: 'all' }])
})

test('a volatile event for one client that has left goes nowhere, and a durable one for one client is refused', async t => {
  const { hub, hooks, connect } = await startHub(t)
  const subscribers: Connection[] = []
  hooks.subscribed.tap('test', (_, connection) => subscribers.push(connection))
  await hub.open('s1')
  const [client, other] = [await connect(), await connect()]
  await client.request('subscribe', { session_ids: ['s1'], cursors: { s1: { seq: 0 } } })
  await other.request('subscribe', { session_ids: ['s1'] })
  const only = subscribers[0]
  assert.ok(only)
  assert.throws(() => hub.emit(noted, { text: 'x' }, { session_id: 's1', only }), { code: 'event_durable' })
  await client.request('unsubscribe', { session_ids: ['s1'] })
  hub.emit(typed, { delta: 'late' }, { session_id: 's1', only })
  await hub.flushed('s1')
  for (const who of [client, other]) {
    await who.request('unsubscribe', { session_ids: [] })
    assert.deepEqual(texts(who), [])
  }
})

test('what is on disk goes out at once, however much went out just before', { timeout: 20_000 }, async t => {
  const { hub, connect } = await startHub(t)
  await hub.open('s1')
  const client = await connect()
  await client.request('subscribe', { session_ids: ['s1'] })
  t.mock.timers.enable({ apis: ['setTimeout'] }) // nothing waits for a clock
  for (let n = 0; n < 10; n++) {
    hub.emit(noted, { text: `${n}` }, 's1')
    await client.next(frame => frame.payload?.text === `${n}`)
  }
  assert.equal(texts(client).join(''), '0123456789')
})

test('what was emitted before a session is closed, or before the stop, still goes out', async t => {
  const { hub, connect } = await startHub(t)
  for (const id of ['s1', 's2']) await hub.open(id)
  const client = await connect()
  await client.request('subscribe', { session_ids: ['s1', 's2'] })
  hub.emit(noted, { text: 'closed' }, 's1')
  await hub.close('s1')
  for (let n = 0; n < 8; n++) {
    hub.emit(typed, { delta: `${n}` }, 's2')
    await new Promise(resolve => setImmediate(resolve))
  }
  await hub.clients.close()
  assert.equal((await client.closed).code, 1001)
  assert.equal(texts(client).join(''), 'closed01234567')
})

test('subscribers of a journal that is taken over are told to resync, at what it holds by then', async t => {
  const { hub, dir, connect } = await startHub(t)
  const { epoch } = await hub.open('s1')
  const client = await connect()
  await client.request('subscribe', { session_ids: ['s1'] })
  await hub.takeOver('s1')
  const line = { type: noted.type, seq: 1, epoch, session_id: 's1', timestamp: new Date(0).toISOString(), payload: { text: 'foreign' } }
  await appendFile(join(dir, 's1.jsonl'), `${JSON.stringify(line)}\n`)
  await hub.takeOver('s1')
  for (const current_seq of [0, 1]) {
    const { payload } = await client.next(frame => frame.type === 'resync_required' && frame.payload.current_seq === current_seq)
    assert.deepEqual(payload, { session_id: 's1', reason: 'buffer_overflow', current_seq, epoch })
  }
  assert.equal(client.frames.filter(frame => frame.type === 'resync_required').length, 2)
})
