import assert from 'node:assert/strict'
import { appendFile, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { defineEvent, type JournaledEvent, Type } from '../../kernel/index.ts'
import { startHub } from '../helpers/hub.ts'
import { openFiles } from '../helpers/open-files.ts'

const noted = defineEvent({ type: 'note.added', scope: 'session', durable: true, payload: Type.Object({ n: Type.Integer() }) })

async function numbers(events: AsyncIterable<JournaledEvent> | undefined): Promise<number[]> {
  const seen: number[] = []
  for await (const event of events ?? []) seen.push(event.seq)
  return seen
}

async function withNotes(t: Parameters<typeof startHub>[0], count: number) {
  const it = await startHub(t)
  const { epoch } = await it.hub.open('s1')
  for (let n = 1; n <= count; n++) it.hub.emit(noted, { n }, 's1')
  return { ...it, epoch }
}

test('a journal is read forwards from a cursor, with what was emitted just now', async t => {
  const { hub, epoch } = await withNotes(t, 5)
  const slice = await hub.read('s1', { seq: 2, epoch })
  assert.deepEqual([slice?.epoch, slice?.seq, slice?.resync], [epoch, 5, undefined])
  const events: JournaledEvent[] = []
  for await (const event of slice?.events ?? []) events.push(event)
  assert.deepEqual(
    events.map(event => [event.seq, event.type, event.payload.n]),
    [
      [3, noted.type, 3],
      [4, noted.type, 4],
      [5, noted.type, 5]
    ]
  )
  assert.deepEqual(await numbers((await hub.read('s1', { seq: 5 }))?.events), [])
})

test('a session that is not open is read the same way, and stays closed', async t => {
  const { hub, dir, epoch } = await withNotes(t, 1500)
  await hub.close('s1')
  assert.deepEqual(
    await numbers((await hub.read('s1', { seq: 1490, epoch }))?.events),
    [1491, 1492, 1493, 1494, 1495, 1496, 1497, 1498, 1499, 1500]
  )
  assert.equal((await numbers((await hub.read('s1', { seq: 500, epoch }))?.events)).length, 1000)
  assert.deepEqual((await numbers(hub.backwards('s1'))).slice(0, 2), [1500, 1499])
  assert.equal(hub.watermark('s1'), undefined)
  assert.equal(await openFiles(dir), 0)
})

test('a cursor that cannot be served says why and brings no events', async t => {
  const { hub, epoch } = await withNotes(t, 1001)
  const ask = async (cursor: { seq: number; epoch?: string }) => {
    const slice = await hub.read('s1', cursor)
    return [slice?.resync, slice?.seq, await numbers(slice?.events)]
  }
  assert.deepEqual(await ask({ seq: 0 }), ['buffer_overflow', 1001, []])
  assert.deepEqual(await ask({ seq: 5, epoch: 'ep_other' }), ['epoch_changed', 1001, []])
  assert.deepEqual(await ask({ seq: 1002, epoch }), ['epoch_changed', 1001, []])
})

test('reading sessions that nobody knows finds nothing and creates nothing', async t => {
  const { hub, dir } = await startHub(t)
  for (let n = 0; n < 50; n++) {
    assert.equal(await hub.read(`unknown-${n}`, { seq: 0 }), undefined)
    assert.deepEqual(await numbers(hub.backwards(`unknown-${n}`)), [])
  }
  assert.equal(await hub.read('../escape', { seq: 0 }), undefined)
  assert.deepEqual(await readdir(dir), [])
})

test('a reader that stops early leaves no file open', async t => {
  const { hub, dir } = await withNotes(t, 1000)
  await hub.flushed('s1')
  const before = await openFiles(dir)
  for await (const event of (await hub.read('s1', { seq: 0 }))?.events ?? []) if (event.seq === 1) break
  assert.equal(await openFiles(dir), before)
})

test('an event that comes when its session is closed is journaled, and the journal is closed again', async t => {
  const { hub, dir, epoch } = await withNotes(t, 2)
  await hub.close('s1')
  hub.emit(noted, { n: 3 }, 's1')
  await hub.flushed('s1')
  const over = performance.now() + 10_000
  while ((hub.watermark('s1') || (await openFiles(dir)) > 0) && performance.now() < over)
    await new Promise(resolve => setTimeout(resolve, 2))
  assert.equal(hub.watermark('s1'), undefined)
  assert.equal(await openFiles(dir), 0)
  const lines = (await readFile(join(dir, 's1.jsonl'), 'utf8')).trimEnd().split('\n').slice(1)
  assert.deepEqual(
    lines.map(line => JSON.parse(line) as JournaledEvent).map(event => event.seq),
    [1, 2, 3]
  )
  assert.deepEqual(await hub.open('s1'), { seq: 3, epoch })
})

test('events emitted while a journal opens get the numbers after those that it has', async t => {
  const { hub, dir } = await withNotes(t, 3)
  await hub.close('s1')
  let opened = false
  const opening = hub.open('s1').then(() => {
    opened = true
  })
  for (let n = 4; !opened; n++) {
    if (n <= 500) hub.emit(noted, { n }, 's1')
    await (n % 2 === 0 ? null : new Promise(resolve => setImmediate(resolve)))
  }
  await opening
  await hub.flushed('s1')
  const { seq } = hub.watermark('s1') ?? { seq: 0 }
  assert.ok(seq > 4)
  const lines = (await readFile(join(dir, 's1.jsonl'), 'utf8')).trimEnd().split('\n').slice(1)
  assert.deepEqual(
    lines.map(line => JSON.parse(line) as JournaledEvent).map(event => [event.seq, event.payload.n]),
    Array.from({ length: seq }, (_, i) => [i + 1, i + 1])
  )
})

test('a session that is being removed has no journal any more', async t => {
  const { hub } = await withNotes(t, 3)
  await hub.flushed()
  const removed = hub.remove('s1')
  while (hub.watermark('s1')) await null
  assert.equal(await hub.read('s1', { seq: 0 }), undefined)
  await removed
})

test('who follows a session that is removed gets what was said of it before', async t => {
  const { hub, connect } = await withNotes(t, 1)
  const client = await connect()
  await client.request('subscribe', { session_ids: ['s1'] })
  hub.emit(noted, { n: 2 }, 's1')
  await hub.remove('s1')
  assert.deepEqual([hub.subscribers('s1'), hub.followed()], [0, []])
  hub.emit(noted, { n: 3 }, 's1')
  await client.request('unsubscribe', { session_ids: [] })
  assert.deepEqual(
    client.frames.flatMap(({ type, seq }) => (type === noted.type ? [seq] : [])),
    [2]
  )
})

test('of the sessions that were removed the newest thousand are remembered', async t => {
  const { hub } = await startHub(t)
  for (let n = 0; n <= 1000; n++) await hub.remove(`s${n}`)
  hub.emit(noted, { n: 1 }, 's1')
  hub.emit(noted, { n: 1 }, 's0')
  assert.deepEqual(
    hub.facts().streams.map(({ session_id }) => session_id),
    ['s0']
  )
})

test('an event that comes when its session was removed, or after the end, goes nowhere and makes no journal', async t => {
  const { hub, dir } = await withNotes(t, 1)
  await hub.remove('s1')
  assert.deepEqual(await readdir(dir), [])
  hub.emit(noted, { n: 2 }, 's1')
  await hub.stop()
  hub.emit(noted, { n: 3 }, 's2')
  assert.deepEqual(hub.facts().streams, [])
  for (let round = 0; round < 20; round++) await new Promise(resolve => setImmediate(resolve))
  assert.deepEqual(await readdir(dir), [])
})

test('events emitted while a journal is taken over get the numbers after what another process wrote', async t => {
  const { hub, dir, epoch } = await withNotes(t, 3)
  await hub.flushed('s1')
  for (let round = 0; round < 20; round++) {
    const { seq } = hub.watermark('s1') ?? { seq: 0 }
    if (round === 5) {
      const line = { type: noted.type, seq: seq + 1, epoch, session_id: 's1', timestamp: new Date(0).toISOString(), payload: { n: 0 } }
      await appendFile(join(dir, 's1.jsonl'), `${JSON.stringify(line)}\n`)
    }
    const taken = hub.takeOver('s1')
    let over = false
    void taken.then(() => {
      over = true
    })
    for (let emitted = 0; !over; ) {
      if (emitted++ < 20 && (round !== 5 || hub.watermark('s1')?.seq !== seq)) hub.emit(noted, { n: round }, 's1')
      await new Promise(resolve => setImmediate(resolve))
    }
    await hub.flushed('s1')
  }
  const lines = (await readFile(join(dir, 's1.jsonl'), 'utf8')).trimEnd().split('\n').slice(1)
  const seqs = lines.map(line => (JSON.parse(line) as JournaledEvent).seq)
  assert.deepEqual(
    seqs,
    seqs.map((_, i) => i + 1)
  )
  assert.deepEqual(hub.watermark('s1'), { seq: seqs.length, epoch })
  assert.ok(seqs.length > 20)
  assert.deepEqual(await readdir(dir), ['s1.jsonl'])
})
