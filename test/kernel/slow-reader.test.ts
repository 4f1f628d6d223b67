import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineEvent, Type } from '../../kernel/index.ts'
import { startHub } from '../helpers/hub.ts'
import { journalsOf, MemoryJournal } from '../helpers/memory-journals.ts'

const noted = defineEvent({ type: 'note.added', scope: 'session', durable: true, payload: Type.Object({ text: Type.String() }) })
const text = 'x'.repeat(64 * 1024)

test('a reader that stops reading is cut with 1013 while another gets everything', async t => {
  const { hub, connect } = await startHub(t, { bufferBytes: 256 * 1024 })
  const [slow, quick] = [await connect(), await connect()]
  for (const client of [slow, quick]) await client.request('subscribe', { session_ids: ['s1'] })
  slow.ws.pause()
  // More than the budget and what the system buffers for two sockets.
  let sent = 0
  while (hub.subscribers('s1') === 2) {
    hub.emit(noted, { text }, 's1')
    sent++
    await quick.next(frame => frame.seq === sent)
  }
  assert.equal(hub.clients.list().length, 1)
  hub.emit(noted, { text: 'last' }, 's1')
  await quick.next(frame => frame.payload.text === 'last')
  const seqs = quick.frames.filter(frame => frame.type === noted.type).map(frame => frame.seq)
  assert.deepEqual(
    seqs,
    seqs.map((_, i) => i + 1)
  )
  slow.ws.resume()
  const { code } = await slow.closed
  assert.ok(code === 1013 || code === 1006, `closed with ${code}`)
  const got = slow.frames.filter(frame => frame.type === noted.type).map(frame => frame.seq)
  assert.deepEqual(
    got,
    got.map((_, i) => i + 1)
  )
})

test('a replay larger than the budget arrives whole, and live events wait behind it', async t => {
  const { hub, connect } = await startHub(t, { bufferBytes: 512 * 1024 })
  for (let i = 0; i < 200; i++) hub.emit(noted, { text }, 's1')
  await hub.flushed('s1')
  const [late, other] = [await connect(), await connect()]
  await other.request('subscribe', { session_ids: ['s1'] })
  late.ws.pause()
  const subscribed = late.request('subscribe', { session_ids: ['s1'], cursors: { s1: { seq: 0 } } })
  while (hub.subscribers('s1') < 2) await other.request('unsubscribe', { session_ids: [] })
  for (let i = 0; i < 3; i++) hub.emit(noted, { text: `live ${i}` }, 's1')
  await other.next(frame => frame.payload.text === 'live 2')
  late.ws.resume()
  assert.equal((await subscribed).code, 0)
  const seqs = late.frames.filter(frame => frame.type === noted.type).map(frame => frame.seq)
  assert.deepEqual(
    seqs,
    Array.from({ length: 203 }, (_, i) => i + 1)
  )
})

test('a reader that stops during its replay is cut when the live events behind it exceed the budget', async t => {
  const { hub, connect } = await startHub(t, { bufferBytes: 512 * 1024 })
  for (let i = 0; i < 400; i++) hub.emit(noted, { text }, 's1')
  await hub.flushed('s1')
  const client = await connect()
  client.ws.pause()
  client.request('subscribe', { session_ids: ['s1'], cursors: { s1: { seq: 0 } } }).catch(() => undefined) // its connection is cut
  const other = await connect()
  while (hub.subscribers('s1') < 1) await other.request('unsubscribe', { session_ids: [] })
  for (let i = 0; i < 20; i++) hub.emit(noted, { text }, 's1')
  await hub.flushed('s1')
  assert.equal(hub.subscribers('s1'), 0)
  assert.equal(hub.clients.list().length, 1)
  client.ws.resume()
  await client.closed
})

test('a replay is read from its journal as fast as its client takes it', async t => {
  let taken = 0
  class Counted extends MemoryJournal {
    override async *lines(from: number, to: number): AsyncGenerator<readonly Buffer[]> {
      for await (const group of super.lines(from, to)) {
        taken++
        yield group
      }
    }
  }
  const journal = new Counted()
  const { hub, connect } = await startHub(t, {
    journals: journalsOf(journal)
  })
  for (let i = 0; i < 400; i++) hub.emit(noted, { text }, 's1')
  await hub.flushed('s1')
  const [client, other] = [await connect(), await connect()]
  client.ws.pause()
  const subscribed = client.request('subscribe', { session_ids: ['s1'], cursors: { s1: { seq: 0 } } })
  while (taken === 0) await other.request('unsubscribe', { session_ids: [] })
  for (let i = 0; i < 50; i++) await other.request('unsubscribe', { session_ids: [] })
  assert.ok(taken < 400, `${taken} of 400`)
  client.ws.resume()
  await subscribed
  assert.equal(taken, 400)
})
