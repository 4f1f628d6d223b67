/** Streams at their edges: floods before the journal is open, gaps that cannot be recorded, ends that take long, subscribers meanwhile. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Connection, defineEvent, type Journals, Type } from '../../kernel/index.ts'
import { createKernelHooks } from '../../kernel/lifecycle/hooks.ts'
import type { Frame } from '../../kernel/testing.ts'
import { startHub } from '../helpers/hub.ts'
import { latch } from '../helpers/latch.ts'
import { journalsOf, MemoryJournal, memoryJournals } from '../helpers/memory-journals.ts'

const noted = defineEvent({ type: 'note.added', scope: 'session', durable: true, payload: Type.Object({ text: Type.String() }) })
const typed = defineEvent({
  type: 'note.delta',
  scope: 'session',
  durable: false,
  payload: Type.Object({ delta: Type.String() })
})
const changed = defineEvent({ type: 'event.thing.changed', scope: 'global', durable: false, payload: Type.Object({ text: Type.String() }) })
const text = 'x'.repeat(1000)
const waitingBytes = 512 * 1024
const turn = () => new Promise(resolve => setImmediate(resolve))

test('of events that come before their journal is open no more wait than afterwards; all have numbers, and none is replayed across the gap', async t => {
  const { hub, dir, connect } = await startHub(t, { waitingBytes })
  for (let n = 0; n < 5000; n++) hub.emit(noted, { text }, 's1')
  const { epoch } = await hub.open('s1')
  await hub.flushed('s1')
  assert.deepEqual(hub.watermark('s1'), { seq: 5000, epoch })
  const client = await connect()
  const { payload } = await client.request('subscribe', { session_ids: ['s1'], cursors: { s1: { seq: 4999, epoch } } })
  assert.deepEqual(payload.resync_required, ['s1'])
  hub.emit(typed, { delta: 'after' }, 's1')
  hub.emit(noted, { text: 'after' }, 's1')
  assert.equal((await client.next(frame => frame.payload?.text === 'after')).seq, 5001)
  assert.ok(
    client.frames.some(frame => frame.payload?.delta === 'after'),
    'there is room again'
  )
  assert.ok((await readFile(join(dir, 's1.jsonl'), 'utf8')).length < 1_000_000)
})

test('a gap that cannot be recorded ends the epoch', async t => {
  class Forgetful extends MemoryJournal {
    failing = true

    override async skip(seq: number): Promise<void> {
      if (this.failing) {
        this.failing = false
        throw new Error('no space left')
      }
      await super.skip(seq)
    }
  }
  const journal = new Forgetful()
  const { hub, connect } = await startHub(t, { waitingBytes, journals: journalsOf(journal) })
  const { epoch } = await hub.open('s1')
  const client = await connect()
  await client.request('subscribe', { session_ids: ['s1'] })
  for (let n = 0; n < 2000; n++) hub.emit(noted, { text }, 's1')
  const { payload } = await client.next('resync_required')
  assert.notEqual(journal.epoch, epoch)
  assert.deepEqual([payload.epoch, payload.current_seq], [journal.epoch, 2000])
  hub.emit(noted, { text: 'after' }, 's1')
  const after = await client.next(frame => frame.payload?.text === 'after')
  assert.deepEqual([after.seq, after.epoch], [2001, journal.epoch])
})

test('events that the journal refuses are told in another epoch: that of the file, which a restart goes on with, gives their numbers to others', async t => {
  class Failing extends MemoryJournal {
    refuses = false

    override async append(given: readonly Uint8Array[]): Promise<void> {
      if (this.refuses) throw new Error('no space left')
      await super.append(given)
    }
  }
  const journal = new Failing()
  const { hub, connect } = await startHub(t, { waitingBytes, journals: journalsOf(journal) })
  const { epoch } = await hub.open('s1')
  const client = await connect()
  await client.request('subscribe', { session_ids: ['s1'] })
  hub.emit(noted, { text: 'one' }, 's1')
  await hub.flushed('s1')
  journal.refuses = true
  hub.emit(noted, { text: 'two' }, 's1')
  hub.emit(typed, { delta: 'and text' }, 's1')
  hub.emit(noted, { text: 'three "epoch":"x"' }, 's1')
  await client.next(frame => /three/.test(frame.payload?.text))
  const frames = client.frames.filter(({ payload }) => payload?.text !== undefined || payload?.delta !== undefined)
  assert.deepEqual(
    frames.map(frame => [frame.payload.text ?? frame.payload.delta, frame.seq, frame.epoch]),
    [
      ['one', 1, epoch],
      ['two', 2, journal.epoch],
      ['and text', 2, journal.epoch],
      ['three "epoch":"x"', 3, journal.epoch]
    ]
  )
  assert.notEqual(journal.epoch, epoch)
})

test('what is emitted while a gap cannot be recorded reaches the subscribers once, in the epoch that follows, of whose journal it is no part', async t => {
  const asked = latch()
  const refused = latch()
  const lines: string[] = []
  class Forgetful extends MemoryJournal {
    failing = true

    override async append(given: readonly Uint8Array[]): Promise<void> {
      lines.push(...given.map(line => Buffer.from(line).toString('utf8')))
      await super.append(given)
    }

    override async skip(seq: number): Promise<void> {
      if (!this.failing) return await super.skip(seq)
      this.failing = false
      asked.open()
      await refused.opened
      throw new Error('no space left')
    }
  }
  const journal = new Forgetful()
  const { hub, connect } = await startHub(t, { waitingBytes, journals: journalsOf(journal) })
  const { epoch } = await hub.open('s1')
  const client = await connect()
  await client.request('subscribe', { session_ids: ['s1'] })
  for (let n = 0; n < 2000; n++) hub.emit(noted, { text }, 's1')
  await asked.opened
  hub.emit(noted, { text: 'meanwhile' }, 's1')
  hub.emit(typed, { delta: 'and text' }, 's1')
  refused.open()
  await hub.flushed('s1')
  hub.emit(noted, { text: 'after' }, 's1')
  await client.next(frame => frame.payload?.text === 'after')

  const frames = client.frames.filter(
    ({ payload }) => payload?.text !== text && (payload?.text !== undefined || payload?.delta !== undefined)
  )
  assert.deepEqual(
    frames.map(frame => [frame.payload.text ?? frame.payload.delta, frame.seq, frame.epoch]),
    [
      ['meanwhile', 2001, journal.epoch],
      ['and text', 2001, journal.epoch],
      ['after', 2002, journal.epoch]
    ]
  )
  const { payload } = client.frames.find(frame => frame.type === 'resync_required') ?? assert.fail()
  assert.deepEqual([payload.current_seq, payload.epoch], [2001, journal.epoch])
  assert.notEqual(journal.epoch, epoch)
  assert.deepEqual([lines.filter(line => line.includes('meanwhile')).length, journal.seq], [0, 2002])
  assert.deepEqual(hub.watermark('s1'), { seq: 2002, epoch: journal.epoch })
})

test('a session that is opened while it is closed waits for the end of its journal, and so does who closes it again', async t => {
  const order: string[] = []
  const closing = latch()
  const asked = latch()
  class Slow extends MemoryJournal {
    override async close(): Promise<void> {
      asked.open()
      await closing.opened
      order.push('closed')
    }
  }
  const journals: Journals = {
    open: async () => {
      order.push('opened')
      return new Slow()
    },
    find: async () => undefined,
    remove: async () => undefined,
    close: async () => undefined
  }
  const { hub } = await startHub(t, { journals })
  await hub.open('s1')
  const first = hub.close('s1')
  await asked.opened
  const second = hub.close('s1').then(() => order.push('told'))
  await turn()
  const again = hub.open('s1')
  await turn()
  closing.open()
  await Promise.all([first, second, again])
  assert.deepEqual(order.slice(0, 2), ['opened', 'closed'])
  assert.deepEqual(order.slice(2).sort(), ['opened', 'told'])
})

for (const cursors of [undefined, { s1: { seq: 0 } }])
  test(`a client whose session is closed while its journal is being opened is subscribed to it as it is then, ${cursors ? 'with' : 'without'} a cursor`, async t => {
    const asked = latch()
    const ready = latch()
    const journals: Journals = {
      ...journalsOf(new MemoryJournal()),
      open: async () => {
        asked.open()
        await ready.opened
        return new MemoryJournal()
      }
    }
    const { hub, connect } = await startHub(t, { journals })
    const client = await connect()
    const subscribed = client.request('subscribe', { session_ids: ['s1'], ...(cursors && { cursors }) })
    await asked.opened
    const closed = hub.close('s1')
    await turn()
    ready.open()
    const { payload } = await subscribed
    assert.deepEqual([payload.accepted, payload.resync_required], [['s1'], []])
    await closed
    hub.emit(noted, { text: 'live' }, 's1')
    await client.next(frame => frame.payload?.text === 'live')
  })

test('a replay that cannot be read is a resync, and the client is live all the same', async t => {
  class Broken extends MemoryJournal {
    readable = false

    override async *lines(): AsyncGenerator<readonly Buffer[]> {
      if (this.readable) yield []
      throw new Error('EMFILE')
    }
  }
  const journal = new Broken()
  const { hub, connect } = await startHub(t, { journals: journalsOf(journal) })
  const { epoch } = await hub.open('s1')
  hub.emit(noted, { text: 'past' }, 's1')
  await hub.flushed('s1')
  for (const readable of [false, true]) {
    journal.readable = readable
    const client = await connect()
    const { payload } = await client.request('subscribe', { session_ids: ['s1'], cursors: { s1: { seq: 0, epoch } } })
    assert.deepEqual([payload.accepted, payload.resync_required], [['s1'], ['s1']])
    assert.equal((await client.next('resync_required')).payload.reason, 'buffer_overflow')
    hub.emit(noted, { text: 'live' }, 's1')
    await client.next(frame => frame.payload?.text === 'live')
  }
})

test('what a session said before something that everyone hears comes before it, also on a busy stream', async t => {
  const { hub, connect } = await startHub(t)
  await hub.open('s1')
  const client = await connect()
  await client.request('subscribe', { session_ids: ['s1'] })
  for (let n = 0; n < 10; n++) {
    hub.emit(typed, { delta: `${n}` }, 's1')
    if (n < 8) await turn()
  }
  hub.emit(changed, { text: '!' })
  await client.next(changed.type)
  const said = client.frames.map((frame: Frame) => frame.payload?.delta ?? frame.payload?.text ?? '').join('')
  assert.equal(said, '0123456789!')
})

test('a session whose id can be no file is not found, whoever says that it exists', async t => {
  const { connect } = await startHub(t)
  const client = await connect()
  const { payload } = await client.request('subscribe', { session_ids: ['../s1', 's1'] })
  assert.deepEqual([payload.accepted, payload.not_found], [['s1'], ['../s1']])
})

test('a journal that only a subscription had opened is closed with the last one', async t => {
  let closed = 0
  class Counted extends MemoryJournal {
    override async close(): Promise<void> {
      closed++
    }
  }
  const { hub, connect } = await startHub(t, { journals: journalsOf(new Counted()) })
  const [client, other] = [await connect(), await connect()]
  for (const each of [client, other]) await each.request('subscribe', { session_ids: ['s1'] })
  await client.request('unsubscribe', { session_ids: ['s1'] })
  assert.deepEqual([closed, hub.watermark('s1')?.seq], [0, 0])
  await other.request('unsubscribe', { session_ids: ['s1'] })
  assert.deepEqual([closed, hub.watermark('s1')], [1, undefined])
})

test('a client that leaves while the journal opens is no subscriber', async t => {
  const asked = latch()
  const ready = latch()
  const journal = new MemoryJournal()
  const open = async () => {
    asked.open()
    await ready.opened
    return journal
  }
  const { hub, connect } = await startHub(t, { journals: { ...journalsOf(journal), open } })
  const [leaving, staying] = [await connect(), await connect()]
  void leaving.request('subscribe', { session_ids: ['s1'] }).catch(() => undefined)
  await asked.opened
  const subscribed = staying.request('subscribe', { session_ids: ['s1'] })
  await leaving.close()
  ready.open()
  await subscribed
  assert.equal(hub.subscribers('s1'), 1)
})

test('an open journal is no session for whoever says that there is none, or fails to say it', async t => {
  const hooks = createKernelHooks()
  const broken = async (id: string) => {
    if (id === 'broken') throw new Error('disk gone')
    return undefined as never // no opinion
  }
  hooks.attachStream.tapPromise('broken', broken)
  const { hub, connect } = await startHub(t, { hooks, sessions: ['s1'] })
  for (const id of ['missing', 'broken']) await hub.open(id)
  const client = await connect()
  const { payload } = await client.request('subscribe', { session_ids: ['missing', 'broken', 's1'] })
  assert.deepEqual([payload.accepted, payload.not_found], [['s1'], ['missing', 'broken']])
})

test('a pack that subscribes a client again without a filter keeps the one of before', async t => {
  const { hub, hooks, connect } = await startHub(t)
  const live: Connection[] = []
  hooks.subscribed.tap('test', (_, connection) => void live.push(connection))
  const client = await connect()
  const cursors = { s1: { seq: 0 } }
  await client.request('subscribe', { session_ids: ['s1'], cursors, agent_filter: { s1: ['agent-1'] } })
  assert.equal(await live[0]?.subscribe('s1'), true)
  for (const subject of ['main', 'agent-1']) hub.emit(noted, { text: subject }, { session_id: 's1', subject })
  await client.next(frame => frame.payload?.text === 'agent-1')
  assert.ok(!client.frames.some(frame => frame.payload?.text === 'main'))
})

test('an engine whose journals cannot be opened, given up or closed costs events their record: clients get them, and nobody waits for ever', async t => {
  class Bad extends MemoryJournal {
    override append = () => Promise.reject(new Error('append: boom'))
    override abandon = () => Promise.reject(new Error('abandon: boom'))
    override close = () => Promise.reject(new Error('close: boom'))
  }
  let opens = false
  let isClosed = false
  const engine = memoryJournals()
  const journals: Journals = {
    ...engine,
    open: async id => (id !== 's1' ? await engine.open(id) : opens ? new Bad() : Promise.reject(new Error('open: boom'))),
    close: async () => {
      isClosed = true
    }
  }
  const { hub, connect } = await startHub(t, { journals })
  const client = await connect()
  const heard = async (text: string) => {
    await client.request('subscribe', { session_ids: ['s1'] })
    hub.emit(noted, { text }, 's1')
    await hub.flushed('s1')
    await client.next(frame => frame.payload?.text === text)
    await client.request('unsubscribe', { session_ids: ['s1'] })
  }
  await heard('not opened')
  opens = true
  await heard('not given up')
  await heard('not closed')
  await hub.open('s1')
  await hub.stop()
  assert.ok(isClosed, 'the engine is closed all the same')
})

test('a session whose journal could not be deleted can be opened all the same', async t => {
  const begun = latch()
  const end = latch()
  const journals: Journals = {
    ...memoryJournals(),
    remove: async () => {
      begun.open()
      await end.opened
      throw new Error('boom')
    }
  }
  const { hub } = await startHub(t, { journals })
  const removed = hub.remove('s1')
  await begun.opened
  const opened = hub.open('s1')
  end.open()
  await assert.rejects(removed, /boom/)
  assert.equal((await opened).seq, 0)
})
