import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { defineEvent, Type } from '../../kernel/index.ts'
import { startHub } from '../helpers/hub.ts'

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
  hub.emit(noted, { text: 'b' }, { session_id: 's1', agent_id: 'agent-1', time: new Date(5) })
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

test('a new hub on the same directory goes on with epoch and numbers', async t => {
  const first = await startHub(t)
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
