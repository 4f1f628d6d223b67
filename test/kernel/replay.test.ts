import assert from 'node:assert/strict'
import { appendFile, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { defineEvent, Type } from '../../kernel/index.ts'
import type { Frame, SocketClient } from '../../kernel/testing/socket.ts'
import { startChild } from '../helpers/child.ts'
import { startHub } from '../helpers/hub.ts'
import { latch } from '../helpers/latch.ts'
import { openFiles } from '../helpers/open-files.ts'
import { freshDir } from '../helpers/temp.ts'

const noted = defineEvent({ type: 'note.added', scope: 'session', durable: true, payload: Type.Object({ n: Type.Integer() }) })
const typed = defineEvent({ type: 'note.delta', scope: 'session', durable: false, payload: Type.Object({ delta: Type.String() }) })
const born = defineEvent({ type: 'agent.born', scope: 'session', durable: true, unfiltered: true, payload: Type.Object({}) })
const worked = defineEvent({ type: 'event.session.worked', scope: 'session', durable: true, deliver: 'everyone', payload: Type.Object({}) })

const rewritten = defineEvent({ type: 'notes.rewritten', scope: 'session', durable: true, resync: true, payload: Type.Object({}) })

const notes = (client: SocketClient) => client.frames.filter(frame => frame.type === noted.type)
const numbers = (frames: readonly Frame[]) => frames.map(frame => frame.seq)
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i)

/** As long as a timer can be, ms. */
const longest = 2 ** 31 - 1

type TestHub = Awaited<ReturnType<typeof startHub>>

async function emitNotes({ hub }: Pick<TestHub, 'hub'>, count: number, agent_id = 'main') {
  await hub.open('s1')
  for (let n = 1; n <= count; n++) hub.emit(noted, { n }, { session_id: 's1', subject: agent_id })
  await hub.flushed('s1')
  return hub.watermark('s1')!
}

test('a gap of exactly 1000 events is replayed before the ack, unchanged', async t => {
  const it = await startHub(t)
  const { epoch } = await emitNotes(it, 1001)
  const client = await it.connect()
  const ack = await client.request('subscribe', { session_ids: ['s1'], cursors: { s1: { seq: 1, epoch } } })
  assert.deepEqual(ack.payload, { accepted: ['s1'], not_found: [], resync_required: [], cursors: { s1: { seq: 1001, epoch } } })
  assert.equal(client.frames.at(-1), ack)
  const onDisk = (await readFile(join(it.dir, 's1.jsonl'), 'utf8')).trimEnd().split('\n').slice(2)
  assert.deepEqual(
    client.frames.slice(1, -1),
    onDisk.map(line => JSON.parse(line) as Frame)
  )
})

test('who is sent an event that makes another session of it is told to resync behind it, live and in a replay', async t => {
  const it = await startHub(t)
  const { epoch } = await emitNotes(it, 2)
  const [live, filtered] = [await it.connect(), await it.connect()]
  await live.request('subscribe', { session_ids: ['s1'] })
  await filtered.request('subscribe', { session_ids: ['s1'], agent_filter: { s1: ['other'] } })
  it.hub.emit(rewritten, {}, { session_id: 's1', subject: 'main' })
  await emitNotes(it, 1)
  const late = await it.connect()
  const ack = await late.request('subscribe', { session_ids: ['s1'], cursors: { s1: { seq: 1, epoch } } })
  const then = await late.request('subscribe', { session_ids: ['s1'], cursors: { s1: { seq: 3, epoch } } })
  await live.next(frame => frame.seq === 4)

  const told = (client: SocketClient) =>
    client.frames.flatMap(({ type, seq, payload }): (string | number)[] =>
      type === 'resync_required'
        ? [`resync ${payload.reason} ${payload.current_seq} ${payload.epoch === epoch}`]
        : seq === undefined
          ? []
          : [seq]
    )
  assert.deepEqual(told(live), [3, 'resync session_recreated 3 true', 4])
  assert.deepEqual(told(filtered), [])
  assert.deepEqual(told(late), [2, 3, 4, 'resync session_recreated 4 true', 4])
  assert.deepEqual([ack.payload.resync_required, then.payload.resync_required], [['s1'], []])
})

test('a gap of 1001 events is a buffer overflow; the subscription is live all the same', async t => {
  const it = await startHub(t)
  const { epoch } = await emitNotes(it, 1001)
  const client = await it.connect()
  const ack = await client.request('subscribe', { session_ids: ['s1'], cursors: { s1: { seq: 0, epoch } } })
  assert.deepEqual(ack.payload, { accepted: ['s1'], not_found: [], resync_required: ['s1'], cursors: { s1: { seq: 1001, epoch } } })
  assert.deepEqual(client.frames.slice(1, -1), [
    {
      type: 'resync_required',
      timestamp: '1970-01-01T00:00:00.000Z',
      payload: { session_id: 's1', reason: 'buffer_overflow', current_seq: 1001, epoch }
    }
  ])
  await emitNotes(it, 1)
  assert.equal((await client.next(noted.type)).seq, 1002)
})

test('cursors of another epoch or from the future need a resync, the current one needs nothing', async t => {
  const it = await startHub(t)
  const { epoch } = await emitNotes(it, 3)
  const ask = async (cursor: object) => {
    const client = await it.connect()
    const ack = await client.request('client_hello', { subscriptions: ['s1'], cursors: { s1: cursor } })
    const resync = client.frames.find(frame => frame.type === 'resync_required')
    return [resync?.payload.reason, ack.payload?.resync_required, numbers(notes(client)), ack.code]
  }
  assert.deepEqual(await ask({ seq: 1, epoch: 'ep_other' }), ['epoch_changed', ['s1'], [], 0])
  assert.deepEqual(await ask({ seq: 4, epoch }), ['epoch_changed', ['s1'], [], 0])
  assert.deepEqual(await ask({ seq: 3, epoch }), [undefined, [], [], 0])
  assert.deepEqual(await ask({ seq: 2 }), [undefined, [], [3], 0])
  assert.deepEqual(await ask({ seq: 0 }), [undefined, [], [1, 2, 3], 0])
  assert.deepEqual(await ask({ seq: 'x' }), [undefined, undefined, [], 40001])
})

test('replay applies the agent filter, but not to global session events of an earlier process, nor to unfiltered ones', async t => {
  const first = await startHub(t)
  await emitNotes(first, 2)
  await emitNotes(first, 1, 'agent-1')
  first.hub.emit(worked, {}, 's1')
  first.hub.emit(born, {}, 's1')
  await first.hub.stop()
  const second = await startHub(t, { dir: first.dir })
  second.hub.setEvents([noted, worked, born])
  const client = await second.connect()
  await client.request('subscribe', { session_ids: ['s1'], cursors: { s1: { seq: 0 } }, agent_filter: { s1: ['agent-1'] } })
  assert.deepEqual(numbers(client.frames.slice(1, -1)), [3, 4, 5])
})

test('after a restart an old cursor is served as if nothing had happened', async t => {
  const first = await startHub(t)
  const { epoch } = await emitNotes(first, 10)
  await first.hub.stop()
  const second = await startHub(t, { dir: first.dir })
  const client = await second.connect()
  await client.request('client_hello', { subscriptions: ['s1'], cursors: { s1: { seq: 7, epoch } } })
  await emitNotes(second, 1)
  await client.next(frame => frame.seq === 11)
  assert.deepEqual(numbers(notes(client)), [8, 9, 10, 11])
})

test('a journal that is gone begins a new epoch', async t => {
  const first = await startHub(t)
  const { epoch } = await emitNotes(first, 2)
  await first.hub.stop()
  await rm(join(first.dir, 's1.jsonl'))
  const second = await startHub(t, { dir: first.dir })
  const client = await second.connect()
  await client.request('subscribe', { session_ids: ['s1'], cursors: { s1: { seq: 2, epoch } } })
  const resync = await client.next('resync_required')
  assert.equal(resync.payload.reason, 'epoch_changed')
  assert.equal(resync.payload.current_seq, 0)
})

test('subscribing while events flow gives each one exactly once and in order', async t => {
  const it = await startHub(t)
  await emitNotes(it, 500)
  let emitting = true
  const emitter = (async () => {
    // Fewer than a replay may have, however slow the clients are.
    for (let round = 0; emitting && round < 250; round++) {
      for (let n = 0; n < 3; n++) it.hub.emit(noted, { n }, 's1')
      it.hub.emit(typed, { delta: 'x' }, 's1')
      await new Promise(resolve => setImmediate(resolve))
    }
  })()
  const clients = await Promise.all(Array.from({ length: 8 }, () => it.connect()))
  await Promise.all(clients.map(client => client.request('subscribe', { session_ids: ['s1'], cursors: { s1: { seq: 400 } } })))
  await Promise.all(clients.map(client => client.next(frame => (frame.seq ?? 0) > 600)))
  emitting = false
  await emitter
  await it.hub.flushed('s1')
  const last = it.hub.watermark('s1')!.seq
  for (const client of clients) {
    await client.next(frame => frame.seq === last && frame.type === noted.type)
    assert.deepEqual(numbers(notes(client)), range(401, last))
    let seen = 400
    for (const frame of client.frames.filter(frame => frame.seq !== undefined)) {
      assert.ok(frame.volatile ? frame.seq === seen || seen === 400 : frame.seq === seen + 1)
      if (!frame.volatile) seen = frame.seq!
    }
  }
})

test('clients that come and go while the journal is shortened miss nothing and get nothing twice', async t => {
  const it = await startHub(t)
  const { epoch } = await it.hub.open('s1')
  let emitting = true
  const emitter = (async () => {
    for (let n = 0; n < 9000 && emitting; n++) {
      it.hub.emit(noted, { n }, 's1')
      if (n % 20 === 0) await new Promise(resolve => setImmediate(resolve))
      if (n % 500 === 0) await it.hub.flushed('s1')
    }
    emitting = false
  })()
  async function follow() {
    let seq = it.hub.watermark('s1')!.seq
    while (emitting) {
      const client = await it.connect()
      const ack = await client.request('subscribe', { session_ids: ['s1'], cursors: { s1: { seq, epoch } } })
      if (emitting) await client.next(frame => (frame.seq ?? 0) > seq + 50 || !emitting)
      const seen = numbers(notes(client))
      if (ack.payload.resync_required.length > 0) seq = seen[0] ? seen[0] - 1 : ack.payload.cursors.s1.seq
      assert.deepEqual(seen, range(seq + 1, seq + seen.length))
      seq += seen.length
      client.terminate()
    }
  }
  const followers = Promise.all(Array.from({ length: 6 }, follow))
  const ticking = (async () => {
    await emitter
    // One more, so that nobody waits for ever.
    for (let n = 0; n < 60; n++) it.hub.emit(noted, { n }, 's1')
  })()
  await Promise.all([followers, ticking])
  await it.hub.flushed('s1')
  assert.equal(it.hub.watermark('s1')?.seq, 9060)
})

test('events for everyone that happen while a session is loaded for its subscriber come in the replay, not before it', async t => {
  const it = await startHub(t)
  const { epoch } = await emitNotes(it, 3)
  await it.hub.close('s1')
  it.hooks.attachStream.tapPromise({ name: 'repair', stage: -1 }, async id => {
    if (id !== 's1' || it.hub.watermark('s1')) return 'live'
    it.hub.emit(noted, { n: 4 }, 's1')
    it.hub.emit(worked, {}, 's1')
    await it.hub.flushed('s1')
    return 'live'
  })
  const client = await it.connect()
  const other = await it.connect()
  await client.request('client_hello', { subscriptions: ['s2', 's1'], cursors: { s1: { seq: 2, epoch }, s2: { seq: 0 } } })
  assert.deepEqual(numbers(client.frames.filter(frame => frame.session_id === 's1')), [3, 4, 5])
  await other.next(worked.type)
  it.hub.emit(worked, {}, 's1')
  await it.hub.flushed('s1')
  await client.request('unsubscribe', { session_ids: ['s1'] })
  assert.deepEqual(numbers(client.frames.filter(frame => frame.session_id === 's1')), [3, 4, 5, 6])
})

test('an event for everyone does not overtake the replay of a client that has not asked for it yet, or whose frame waits for others', async t => {
  const it = await startHub(t)
  const { epoch } = await emitNotes(it, 3)
  const cursors = { s1: { seq: 2, epoch } }
  const own = (client: SocketClient) => numbers(client.frames.filter(frame => frame.session_id === 's1'))
  // Recovery tells what it finds while a client reads `server_hello`.
  const client = await it.connect()
  it.hub.emit(worked, {}, 's1')
  await it.hub.flushed('s1')
  await client.request('client_hello', { subscriptions: ['s1'], cursors })
  assert.deepEqual(own(client), [3, 4])

  const busy = await it.connect()
  const loading = latch()
  it.hooks.attachStream.tapPromise({ name: 'slow', stage: -1 }, async id => {
    if (id === 's2') await loading.opened
    return 'live'
  })
  const slow = busy.request('subscribe', { session_ids: ['s2'] })
  const refused = busy.request('subscribe', { session_ids: ['s3'], cursors: { s3: { seq: 'x' } } })
  const asked = busy.request('subscribe', { session_ids: ['s1'], cursors })
  const listener = await it.connect()
  await listener.request('unsubscribe', { session_ids: [] }) // by now the server has read the subscriptions
  it.hub.emit(worked, {}, 's1')
  await it.hub.flushed('s1')
  await listener.next(frame => frame.seq === 5)
  loading.open()
  await Promise.all([slow, asked])
  assert.deepEqual(own(busy), [3, 4, 5])
  assert.equal((await refused).code, 40001)
  it.hub.emit(worked, {}, 's3')
  await busy.next(frame => frame.session_id === 's3')
})

test('a client that says nothing gets what is for everyone all the same', async t => {
  const it = await startHub(t)
  await it.hub.open('s1')
  const client = await it.connect()
  it.hub.emit(worked, {}, 's1')
  await client.next(worked.type)
})

test('a client that says nothing yet hears at once of a session that begins, of those from before when its time is over', async t => {
  for (const firstFrameMs of [longest, 1]) {
    const it = await startHub(t, { firstFrameMs })
    it.hub.setEvents([noted, worked, founded])
    for (const id of ['old', 'new']) await it.hub.open(id)
    const client = await it.connect()
    it.hub.emit(founded, {}, 'new')
    it.hub.emit(worked, {}, 'new')
    await client.next(worked.type)
    it.hub.emit(worked, {}, 'old')
    await it.hub.flushed('old')
    if (firstFrameMs === 1) await client.next(({ session_id }) => session_id === 'old')
    const others = await it.connect()
    await others.request('client_hello', {})
    const heard = client.frames.flatMap(({ session_id }) => session_id ?? [])
    assert.deepEqual(heard, firstFrameMs === 1 ? ['new', 'new', 'old'] : ['new', 'new'])
  }
})

test('what waits for the first frame of a client is 64 KiB at most; then all of it comes, in its order', async t => {
  const it = await startHub(t)
  const large = defineEvent({ ...worked, type: 'event.session.large', payload: Type.Object({ text: Type.String() }) })
  const changed = defineEvent({ type: 'event.config.changed', scope: 'global', durable: true, payload: Type.Object({}) })
  it.hub.setEvents([large, changed])
  await it.hub.open('old')
  const client = await it.connect()
  const emit = async (chars: number) => {
    it.hub.emit(large, { text: 'x'.repeat(chars) }, 'old')
    await it.hub.flushed()
    it.hub.emit(changed, {})
    await it.hub.flushed()
  }
  await emit(40_000)
  await emit(40_000)
  await client.next(large.type)
  assert.deepEqual(
    client.frames.flatMap(({ type, seq }) => (type === large.type || type === changed.type ? [`${type} ${seq}`] : [])).slice(0, 3),
    [`${changed.type} 1`, `${large.type} 1`, `${large.type} 2`]
  )
})

test('while something of a session waits for the first frame, global events and those of sessions that begin come at once', async t => {
  const it = await startHub(t, { firstFrameMs: longest })
  const passing = defineEvent({ ...worked, type: 'event.session.passing', durable: false })
  const changed = defineEvent({ type: 'event.config.changed', scope: 'global', durable: true, payload: Type.Object({}) })
  it.hub.setEvents([founded, worked, passing, changed])
  for (const id of ['old', 'new']) await it.hub.open(id)
  const client = await it.connect()
  const heard = () => client.frames.flatMap(({ type, session_id }) => (session_id === undefined ? [] : `${session_id} ${type}`))
  it.hub.emit(worked, {}, 'old')
  it.hub.emit(passing, {}, 'old')
  await it.hub.flushed()
  it.hub.emit(founded, {}, 'new')
  it.hub.emit(worked, {}, 'new')
  await it.hub.flushed()
  it.hub.emit(changed, {})
  await it.hub.flushed()
  await client.request('client_hello', {})
  const atOnce = [`new ${founded.type}`, `new ${worked.type}`, `__global__ ${changed.type}`]
  assert.deepEqual(heard(), [...atOnce, `old ${worked.type}`, `old ${passing.type}`])
})

test('a client that subscribes long after it connected gets the whole gap, also what it has heard as something for everyone', async t => {
  const it = await startHub(t, { firstFrameMs: 1 })
  const { epoch } = await emitNotes(it, 3)
  const client = await it.connect()
  it.hub.emit(worked, {}, 's1')
  await client.next(worked.type)
  await client.request('subscribe', { session_ids: ['s1'], cursors: { s1: { seq: 2, epoch } } })
  assert.deepEqual(numbers(client.frames.filter(frame => frame.session_id === 's1')), [4, 3, 4])
})

test('a session that is closed keeps its subscriptions, and who has one gets what comes when it is opened again', async t => {
  const it = await startHub(t)
  await emitNotes(it, 2)
  const client = await it.connect()
  await client.request('subscribe', { session_ids: ['s1'] })
  await it.hub.close('s1')
  assert.equal(it.hub.subscribers('s1'), 1)
  assert.equal(it.hub.watermark('s1'), undefined)
  await emitNotes(it, 1)
  await client.next(frame => frame.seq === 3)
  assert.deepEqual(numbers(notes(client)), [3])
})

test('what is on disk is appended to and replayed even when a killed process left a torn line', async t => {
  const first = await startHub(t)
  const { epoch } = await emitNotes(first, 3)
  await first.hub.stop()
  await appendFile(join(first.dir, 's1.jsonl'), '{"type":"note.added","se')
  const second = await startHub(t, { dir: first.dir })
  const client = await second.connect()
  await client.request('subscribe', { session_ids: ['s1'], cursors: { s1: { seq: 1, epoch } } })
  await emitNotes(second, 2)
  await client.next(frame => frame.seq === 5)
  assert.deepEqual(numbers(notes(client)), [2, 3, 4, 5])
})

test('a cursor just before a hole is told to resync, one just behind it is served', async t => {
  const first = await startHub(t)
  const { epoch } = await emitNotes(first, 6)
  await first.hub.stop()
  const path = join(first.dir, 's1.jsonl')
  await writeFile(path, (await readFile(path, 'utf8')).replace('"seq":3', '"seq"!3'))
  const second = await startHub(t, { dir: first.dir })
  const ask = async (seq: number) => {
    const client = await second.connect()
    await client.request('subscribe', { session_ids: ['s1'], cursors: { s1: { seq, epoch } } })
    return [client.frames.find(frame => frame.type === 'resync_required')?.payload.reason, numbers(notes(client))]
  }
  assert.deepEqual(await ask(2), ['buffer_overflow', []])
  assert.deepEqual(await ask(3), [undefined, [4, 5, 6]])
  await emitNotes(second, 1)
  assert.deepEqual(await ask(2), ['buffer_overflow', []])
  assert.deepEqual(await ask(3), [undefined, [4, 5, 6, 7]])
})

test('a replay leaves no file open, however it ends', async t => {
  const it = await startHub(t)
  const { epoch } = await emitNotes(it, 1000)
  const before = await openFiles(it.dir)
  const whole = await it.connect()
  await whole.request('subscribe', { session_ids: ['s1'], cursors: { s1: { seq: 0, epoch } } })
  assert.equal(await openFiles(it.dir), before, 'after a replay')
  const gone = await it.connect()
  gone.send({ type: 'subscribe', payload: { session_ids: ['s1'], cursors: { s1: { seq: 0, epoch } } } })
  gone.terminate()
  await whole.request('subscribe', { session_ids: ['s1'], cursors: { s1: { seq: 1000, epoch } } })
  await whole.request('subscribe', { session_ids: ['s1'], cursors: { s1: { seq: 0, epoch: 'ep_other' } } })
  const over = performance.now() + 10_000
  while ((await openFiles(it.dir)) > before && performance.now() < over) await new Promise(resolve => setImmediate(resolve))
  assert.equal(await openFiles(it.dir), before, 'after one whose client went away')
})

test('every event a client has seen survives kill -9', async t => {
  const dir = await freshDir()
  const child = startChild(t, 'hub', dir)
  await child.atLeast(300)
  await child.kill()
  const [seq, epoch] = (child.lines.at(-1) ?? '').split(' ')
  const it = await startHub(t, { dir })
  const mark = await it.hub.open('s1')
  assert.equal(mark.epoch, epoch)
  assert.ok(mark.seq >= Number(seq), `${mark.seq} on disk, ${seq} seen`)
  assert.deepEqual(
    child.lines.map(line => Number(line.split(' ')[0])),
    range(1, Number(seq))
  )
  const client = await it.connect()
  const from = Math.max(0, mark.seq - 1000)
  await client.request('subscribe', { session_ids: ['s1'], cursors: { s1: { seq: from, epoch } } })
  assert.deepEqual(numbers(notes(client)), range(from + 1, mark.seq))
})

test('two servers on one home number their global events apart, and the second leaves no file', async t => {
  const changed = defineEvent({ type: 'event.thing.changed', scope: 'global', durable: true, payload: Type.Object({}) })
  const first = await startHub(t)
  first.hub.emit(changed, {})
  await first.hub.flushed()
  const second = await startHub(t, { dir: first.dir, server_id: 'second' })
  second.hub.emit(changed, {})
  await second.hub.flushed()
  assert.equal(second.hub.watermark('__global__')?.seq, 1)
  assert.notEqual(second.hub.watermark('__global__')?.epoch, first.hub.watermark('__global__')?.epoch)
  assert.match(await readFile(join(first.dir, '__global__.second.jsonl'), 'utf8'), /event\.thing\.changed/)
  await second.hub.stop()
  await assert.rejects(readFile(join(first.dir, '__global__.second.jsonl')))
  assert.match(await readFile(join(first.dir, '__global__.jsonl'), 'utf8'), /event\.thing\.changed/)
})

const founded = defineEvent({
  type: 'session.founded',
  scope: 'session',
  durable: true,
  deliver: 'everyone',
  once: true,
  payload: Type.Object({})
})

test('what comes once is in no replay of a connection that was sent it; everything else after the cursor is', async t => {
  const it = await startHub(t)
  it.hub.setEvents([noted, worked, founded])
  await it.hub.open('s1')
  const listener = await it.connect()
  await listener.request('client_hello', {})
  it.hub.emit(founded, {}, 's1')
  it.hub.emit(worked, {}, 's1')
  it.hub.emit(noted, { n: 1 }, 's1')
  await it.hub.flushed('s1')
  const types = (client: SocketClient) => client.frames.filter(frame => frame.seq !== undefined).map(frame => frame.type)
  const all = { session_ids: ['s1'], cursors: { s1: { seq: 0 } } }
  await listener.request('subscribe', all)
  assert.deepEqual(types(listener), [founded.type, worked.type, worked.type, noted.type])

  const late = await it.connect()
  await late.request('subscribe', all)
  await late.request('unsubscribe', { session_ids: ['s1'] })
  await late.request('subscribe', all)
  assert.deepEqual(types(late), [founded.type, worked.type, noted.type, worked.type, noted.type])

  const filtered = await it.connect()
  await filtered.request('subscribe', { ...all, agent_filter: { s1: ['nobody'] } })
  assert.deepEqual(types(filtered), [founded.type, worked.type])
})

test('a connection remembers the newest thousand events that come once', async t => {
  const it = await startHub(t)
  it.hub.setEvents([founded])
  const listener = await it.connect()
  await listener.request('client_hello', {})
  it.hub.emit(founded, {}, 'oldest')
  await it.hub.flushed()
  for (let n = 0; n < 1000; n++) it.hub.emit(founded, {}, 's1')
  await it.hub.flushed()
  await Promise.all(['s1', 'oldest'].map(id => it.hub.open(id)))
  for (const id of ['s1', 'oldest']) await listener.request('subscribe', { session_ids: [id], cursors: { [id]: { seq: 0 } } })
  const told = listener.frames.filter(frame => frame.type === founded.type).map(frame => frame.session_id)
  assert.equal(told.length, 1002)
  assert.equal(told.at(-1), 'oldest')
})
