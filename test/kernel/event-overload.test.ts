import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { defineEvent, Type } from '../../kernel/index.ts'
import type { Frame } from '../../kernel/testing.ts'
import { startHub } from '../helpers/hub.ts'
import { memoryJournals } from '../helpers/memory-journals.ts'

const noted = defineEvent({ type: 'note.added', scope: 'session', durable: true, payload: Type.Object({ text: Type.String() }) })
const typed = defineEvent({ type: 'note.delta', scope: 'session', durable: false, payload: Type.Object({ delta: Type.String() }) })
const text = 'x'.repeat(1000)
const waitingBytes = 512 * 1024

const numbers = (frames: readonly Frame[]) => frames.filter(frame => frame.type === noted.type).map(frame => frame.seq)
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i)

/** A hub that takes 512 KiB, a subscriber, and 5000 events in one go, of which most are left out. */
async function flooded(t: Parameters<typeof startHub>[0]) {
  const it = await startHub(t, { waitingBytes })
  const { epoch } = await it.hub.open('s1')
  const client = await it.connect()
  await client.request('subscribe', { session_ids: ['s1'] })
  for (let n = 0; n < 5000; n++) it.hub.emit(noted, { text }, 's1')
  const { payload } = await client.next('resync_required')
  return { ...it, epoch, client, payload }
}

test('events beyond what may wait are left out of disk and sockets, and every subscriber is told to resync', async t => {
  const { client, payload, epoch, hub, dir } = await flooded(t)
  assert.deepEqual(payload, { session_id: 's1', reason: 'buffer_overflow', current_seq: 5000, epoch })
  const seen = numbers(client.frames)
  assert.ok(seen.length > 100 && seen.length < 600, `${seen.length} events went out`)
  assert.deepEqual(seen, range(1, seen.length))
  assert.deepEqual(hub.watermark('s1'), { seq: 5000, epoch })
  hub.emit(noted, { text: 'after' }, 's1')
  assert.equal((await client.next(frame => frame.payload?.text === 'after')).seq, 5001)
  const lines = (await readFile(join(dir, 's1.jsonl'), 'utf8')).trimEnd().split('\n')
  assert.deepEqual(
    lines.slice(1).map(line => (JSON.parse(line) as Frame).seq),
    [5001]
  )
})

test('of what the disk does not take 64 MiB wait, whoever starts the server', async t => {
  const { hub } = await startHub(t, { journals: memoryJournals() })
  await hub.open('s1')
  const large = 'x'.repeat(1024 * 1024)
  for (let n = 0; n < 70; n++) hub.emit(noted, { text: large }, 's1')
  const waiting = hub.facts().waiting_bytes
  assert.ok(waiting > 62 * 1024 * 1024 && waiting < 66 * 1024 * 1024, `${waiting} bytes wait`)
})

test('no cursor is served across events that were left out', async t => {
  const { connect, hub, epoch, client } = await flooded(t)
  const last = numbers(client.frames).length
  hub.emit(noted, { text: 'after' }, 's1')
  await hub.flushed('s1')
  const ask = async (seq: number) => {
    const other = await connect()
    await other.request('subscribe', { session_ids: ['s1'], cursors: { s1: { seq, epoch } } })
    return [other.frames.find(frame => frame.type === 'resync_required')?.payload.reason, numbers(other.frames)]
  }
  for (const seq of [0, last - 1, last, 4999]) assert.deepEqual(await ask(seq), ['buffer_overflow', []], `cursor ${seq}`)
  assert.deepEqual(await ask(5000), [undefined, [5001]])
})

test('the numbers of events that were left out never come again', async t => {
  const first = await flooded(t)
  await first.hub.stop()
  const second = await startHub(t, { dir: first.dir })
  assert.deepEqual(await second.hub.open('s1'), { seq: 5000, epoch: first.epoch })
})

test('volatile events are left out before durable ones', async t => {
  const { hub, connect } = await startHub(t, { waitingBytes })
  await hub.open('s1')
  const client = await connect()
  await client.request('subscribe', { session_ids: ['s1'] })
  for (let n = 0; n < 250; n++) hub.emit(noted, { text }, 's1') // about three quarters
  hub.emit(typed, { delta: 'left out' }, 's1')
  hub.emit(noted, { text: 'last' }, 's1')
  await client.next(frame => frame.payload?.text === 'last')
  assert.deepEqual(numbers(client.frames), range(1, 251))
  assert.deepEqual(
    client.frames.filter(frame => frame.volatile),
    []
  )
})

test('what waits for several journals counts together', async t => {
  const { hub, connect } = await startHub(t, { waitingBytes })
  const client = await connect()
  for (const id of ['s1', 's2']) await hub.open(id)
  await client.request('subscribe', { session_ids: ['s1', 's2'] })
  for (let n = 0; n < 400; n++) hub.emit(noted, { text }, 's1')
  hub.emit(noted, { text: 'other' }, 's2')
  const { payload } = await client.next(frame => frame.type === 'resync_required' && frame.payload.session_id === 's2')
  assert.equal(payload.current_seq, 1)
})

test('a flood within the bound reaches a reader whole and in order', async t => {
  const { hub, connect } = await startHub(t)
  await hub.open('s1')
  const client = await connect()
  await client.request('subscribe', { session_ids: ['s1'] })
  for (let n = 0; n < 5000; n++) hub.emit(noted, { text }, 's1')
  await client.next(frame => frame.seq === 5000)
  assert.deepEqual(numbers(client.frames), range(1, 5000))
})

test('what waits is counted in bytes, however many of them a character takes', async t => {
  const { hub } = await startHub(t)
  await hub.open('s1')
  for (let n = 0; n < 100; n++) hub.emit(noted, { text: '\u754c'.repeat(1000) }, 's1')
  assert.ok(hub.facts().waiting_bytes >= 100 * 3000, `${hub.facts().waiting_bytes} bytes`)
  await hub.flushed('s1')
  assert.equal(hub.facts().waiting_bytes, 0)
})
