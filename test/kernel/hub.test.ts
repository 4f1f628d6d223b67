import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { defineEvent, Type } from '../../kernel/index.ts'
import { startHub } from '../helpers/hub.ts'
import { freshDir } from '../helpers/temp.ts'

const noted = defineEvent({ type: 'note.added', scope: 'session', durable: true, payload: Type.Object({ text: Type.String() }) })
const typed = defineEvent({ type: 'note.delta', scope: 'session', durable: false, payload: Type.Object({ delta: Type.String() }) })
const changed = defineEvent({ type: 'event.thing.changed', scope: 'global', durable: true, payload: Type.Object({ id: Type.String() }) })

async function lines(path: string) {
  const text = await readFile(path, 'utf8')
  return text
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line) as Record<string, unknown>)
}

test('durable events are numbered from 1 and lie on disk as they are sent', async t => {
  const { hub, dir } = await startHub(t)
  hub.emit(noted, { text: 'a' }, 's1')
  hub.emit(typed, { delta: 'x' }, 's1')
  hub.emit(noted, { text: 'b' }, { session_id: 's1', subject: 'agent-1', time: new Date(5) })
  await hub.flushed('s1')

  const [header, first, second, ...rest] = await lines(join(dir, 's1.jsonl'))
  const { epoch } = await hub.open('s1')
  assert.deepEqual(header, { kind: 'journal_header', version: 1, epoch, created_at: 0 })
  const base = { type: 'note.added', epoch, session_id: 's1' }
  const payload = { type: 'note.added', sessionId: 's1' }
  assert.deepEqual(first, { ...base, seq: 1, timestamp: new Date(0).toISOString(), payload: { ...payload, agentId: 'main', text: 'a' } })
  assert.deepEqual(second, {
    ...base,
    seq: 2,
    timestamp: new Date(5).toISOString(),
    payload: { ...payload, agentId: 'agent-1', time: 5, text: 'b' }
  })
  assert.deepEqual(rest, [])
  assert.deepEqual(hub.watermark('s1'), { seq: 2, epoch })
})

test('the number of an event is known at once when the journal is open', async t => {
  const { hub } = await startHub(t)
  assert.equal(hub.watermark('s1'), undefined)
  const { seq, epoch } = await hub.open('s1')
  assert.equal(seq, 0)
  hub.emit(noted, { text: 'a' }, 's1')
  assert.deepEqual(hub.watermark('s1'), { seq: 1, epoch })
})

test('what is written follows what was numbered, once the disk has it', async t => {
  const { hub } = await startHub(t)
  assert.equal(hub.written('s1'), undefined)
  const { epoch } = await hub.open('s1')
  hub.emit(noted, { text: 'a' }, 's1')
  assert.deepEqual([hub.watermark('s1')?.seq, hub.written('s1')], [1, { seq: 0, epoch }])
  await hub.flushed('s1')
  assert.deepEqual(hub.written('s1'), { seq: 1, epoch })
})

test('a new hub on the same directory goes on with epoch and numbers', async t => {
  const first = await startHub(t)
  await first.hub.open('s1')
  first.hub.emit(noted, { text: 'a' }, 's1')
  first.hub.emit(changed, { id: 'x' })
  await first.hub.flushed()
  const before = first.hub.watermark('s1')
  const globalBefore = first.hub.watermark('__global__')
  await first.hub.stop()

  const second = await startHub(t, { dir: first.dir })
  assert.deepEqual(await second.hub.open('s1'), before)
  second.hub.emit(changed, { id: 'y' })
  await second.hub.flushed()
  assert.deepEqual(second.hub.watermark('__global__'), { epoch: globalBefore?.epoch, seq: 2 })
})

test('events reach clients in order even when the journal cannot be written', async t => {
  const dir = await freshDir()
  await writeFile(join(dir, 'file'), '')
  const { hub, connect } = await startHub(t, { dir: join(dir, 'file') })
  const client = await connect()
  const ack = await client.request('subscribe', { session_ids: ['s1'] })
  for (const text of ['a', 'b', 'c']) hub.emit(noted, { text }, 's1')
  hub.emit(changed, { id: 'x' })
  await hub.flushed()
  hub.emit(noted, { text: 'd' }, 's1')
  const last = await client.next(frame => frame.payload.text === 'd')
  assert.equal(last.epoch, ack.payload.cursors.s1.epoch)
  const frames = client.frames.filter(frame => frame.session_id === 's1')
  assert.deepEqual(
    frames.map(frame => frame.seq),
    [1, 2, 3, 4]
  )
  const late = await connect()
  await late.request('subscribe', { session_ids: ['s1'], cursors: { s1: { seq: 2, epoch: last.epoch } } })
  assert.equal((await late.next('resync_required')).payload.reason, 'buffer_overflow')
})

test("the owner's own sessionId and agentId win, the type never", async t => {
  const archived = defineEvent({ type: 'event.session.archived', scope: 'global', durable: true, payload: Type.Any() })
  const { hub, connect } = await startHub(t)
  const client = await connect()
  hub.emit(archived, { sessionId: 's9', agentId: 'agent-2', type: 'other' })
  const frame = await client.next(archived.type)
  assert.equal(frame.session_id, '__global__')
  assert.deepEqual(frame.payload, { type: archived.type, agentId: 'agent-2', sessionId: 's9' })
})

test('an event without its session, or with one that cannot be a file, is refused', async t => {
  const { hub } = await startHub(t)
  assert.throws(() => hub.emit(noted, { text: 'a' }))
  assert.throws(() => hub.emit(noted, { text: 'a' }, '../escape'))
})

test('a payload that is no JSON is refused where it is emitted and costs no number', async t => {
  const odd = defineEvent({ type: 'odd', scope: 'session', durable: true, payload: Type.Any() })
  const { hub } = await startHub(t)
  await hub.open('s1')
  assert.throws(() => hub.emit(odd, { n: 1n }, 's1'), TypeError)
  assert.equal(hub.watermark('s1')?.seq, 0)
})

test('events after the end reach listeners and harm nothing', async t => {
  const { hub, dir } = await startHub(t)
  hub.emit(noted, { text: 'a' }, 's1')
  await hub.stop()
  const heard: string[] = []
  hub.on(undefined, event => heard.push(event.type))
  hub.emit(noted, { text: 'b' }, 's1')
  assert.deepEqual(heard, [noted.type])
  assert.equal((await lines(join(dir, 's1.jsonl'))).length, 2)
})
