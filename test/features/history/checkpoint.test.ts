/** Opening a long history: a checkpoint stands for what came before it, and a mark for what was told; both only where they are right. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { protocolVersion, wireStore } from '../../../features/history/contract.ts'
import { copiedEpoch } from '../../../features/history/copy.ts'
import type { HistoryPorts } from '../../../features/history/history.ts'
import type { CoreRecord, History, HistoryRecord, StateSpec } from '../../../features/history/index.ts'
import { hasPrompt, readStored, wasClosed } from '../../../features/history/open.ts'
import { told } from '../../../features/history/records.ts'
import type { AgentHost } from '../../../features/sessions/index.ts'
import type { PackContext } from '../../../kernel/index.ts'
import { createStorage } from '../../../kernel/storage/index.ts'
import { latch } from '../../helpers/latch.ts'
import { type MemoryLog, memoryLog, openHistory } from '../../helpers/memory-history.ts'
import { freshDir, warnings } from '../../helpers/temp.ts'
import { silent } from '../tools/fakes.ts'

const text = (value: string) => [{ type: 'text', text: value }]
const call = (id: string) => ({ id, name: 'Read', arguments: '{}' })
const usage = { inputOther: 100, output: 20, inputCacheRead: 3, inputCacheCreation: 4 }
const filler = (n: number): CoreRecord => ({ type: 'message', role: 'user', content: text(`${n} ${'x'.repeat(60 * 1024)}`) })

/** A log on disk, whose positions are bytes. */
async function aLog(t: TestContext): Promise<MemoryLog> {
  const storage = createStorage({ home: await freshDir(), log: warnings() })
  t.after(() => storage.close())
  return Object.assign(storage.open(wireStore, { namespace: 'test', dir: 'test' }), { lines: [], refuse: false }) // these two it does not need
}

async function lastCheckpoint(log: MemoryLog): Promise<HistoryRecord | undefined> {
  for await (const { value } of log.scan('wire', { reverse: true })) if (value.type === 'checkpoint') return value as HistoryRecord
  return undefined
}

/** What a history says of itself. */
async function whole(history: History) {
  const { messages, has_more } = await history.messages.page({ size: 1_000 })
  return {
    messages,
    has_more,
    count: history.messages.count(),
    named: await history.messages.find('named'),
    turn: history.lastTurn(),
    turns: history.turnCount(),
    prompts: history.prompts(),
    usage: [history.usage(), history.usageByModel()],
    tokens: history.contextTokens(),
    calls: ['c0', 'c1', 'c2', 'c9'].map(id => history.hasToolCall(id)),
    open: [history.openStep(), history.openCalls()],
    reminder: history.reminder('mode'),
    model: await history.project()
  }
}

/** Everything that a state can be made of; a step is left open. */
const life: readonly CoreRecord[] = [
  { type: 'prompt.accepted', prompt_id: 'p0', content: text('early'), origin: { kind: 'task' } },
  { type: 'message', role: 'user', id: 'named', prompt_id: 'p0' },
  { type: 'step.message', turn_id: 0, step: 1, content: text('gone'), tool_calls: [call('c0')] },
  { type: 'context.undone', from: 2, context_tokens: 7 },
  { type: 'message', role: 'user', content: text('before') },
  {
    type: 'context.compacted',
    messages: [
      { role: 'user', content: text('kept') },
      { role: 'user', content: text('summary') }
    ]
  },
  { type: 'message', role: 'user', content: text('remember'), origin: { kind: 'injection', variant: 'mode' } },
  { type: 'prompt.accepted', prompt_id: 'p1', content: text('later') },
  { type: 'turn.started', turn_id: 3, origin: { kind: 'user' }, prompt_id: 'p1' },
  { type: 'message', role: 'user', prompt_id: 'p1' },
  { type: 'step.begin', turn_id: 3, step: 1, step_id: 's1' },
  { type: 'step.message', turn_id: 3, step: 1, content: text('answer'), tool_calls: [call('c1'), call('c2')] },
  { type: 'tool.begin', turn_id: 3, step: 1, tool_call_id: 'c2', tool_name: 'Read', args: {} },
  { type: 'tool.result', turn_id: 3, step: 1, tool_call_id: 'c1', tool_name: 'Read', content: text('data') },
  { type: 'step.end', turn_id: 3, step: 1, reason: 'tool_use', model: 'm', usage },
  { type: 'prompt.accepted', prompt_id: 'p2', content: text('waits') },
  { type: 'step.begin', turn_id: 3, step: 2, step_id: 's2' }
]

const notes = (version: number): StateSpec<Map<string, number>> => ({
  name: 'notes',
  version,
  initial: () => new Map(),
  reduce(state, record) {
    if (record.type === 'note') state.set(String(record.id), version)
    return state
  },
  save: state => [...state],
  load: saved => new Map(saved as [string, number][])
})

/** Changed in place, and saved as it is. */
const texts: StateSpec<string[]> = {
  name: 'texts',
  version: 1,
  initial: () => [],
  reduce(state, record) {
    if (record.type === 'message') state.push(JSON.stringify(record.content ?? '').slice(0, 40))
    return state
  }
}

test('whether a prompt was ever accepted is read from the end of the journal back to its last checkpoint, however that looks', async t => {
  const log = await aLog(t)
  const live = await openHistory(log)
  await live.append({ type: 'prompt.accepted', prompt_id: 'early', content: text('one') })
  for (let n = 0; n < 12; n++) await live.append(filler(n))
  await live.append({ type: 'prompt.accepted', prompt_id: 'late', content: text('two') })
  const reads: number[] = []
  const watched: typeof log = {
    ...log,
    async *scan(id, range) {
      for await (const entry of log.scan(id, range)) {
        reads.push(entry.at)
        yield entry
      }
    }
  }
  const found = await Promise.all(['early', 'late', 'never'].map(id => hasPrompt(watched, id)))
  assert.deepEqual(found, [true, true, false])
  assert.ok(Math.min(...reads) > 200 * 1024, 'not from the beginning')

  const old = memoryLog()
  const states = (await lastCheckpoint(log))?.states as { conversation: object }
  const another = { type: 'checkpoint', states: { conversation: { ...states.conversation, version: 1 } } }
  for (const record of [{ type: 'prompt.accepted', prompt_id: 'early', content: [] }, another]) await old.append('wire', record)
  assert.deepEqual(await Promise.all(['early', 'never'].map(id => hasPrompt(old, id))), [true, false])
})

test('a history that is opened from a checkpoint says the same as the one that wrote it', async t => {
  const log = await aLog(t)
  const live = await openHistory(log)
  const kept = await live.track(notes(1))
  const seen = await live.track(texts)
  await live.append({ type: 'note', id: 'a' })
  for (const record of life) await live.append(record)
  await live.project()
  for (let n = 0; n < 100; n++) await live.append({ type: 'message', role: 'user', content: text(`short ${n}`) })
  for (let n = 0; n < 80; n++) await live.append(filler(n))
  await live.append({ type: 'note', id: 'b' }, { type: 'context.undone', from: 80, context_tokens: 500 })
  await live.append({ type: 'message', role: 'user', content: text('last'), origin: { kind: 'injection', variant: 'mode' } })
  for (let round = 0; round < 3; round++) await Promise.all(Array.from({ length: 12 }, (_, n) => live.append(filler(n))))
  const checkpoints: string[] = []
  for await (const { value } of log.scan('wire')) {
    if (value.type === 'checkpoint') checkpoints.push(...Object.keys((value as HistoryRecord).states as object))
  }
  assert.ok(checkpoints.length > 0 && checkpoints.length < 60, 'not with every record')
  assert.ok(!checkpoints.includes('context'), 'what the model is given is large, and only a turn needs it')

  const again = await openHistory(log)
  assert.deepEqual(await whole(again), await whole(live))
  assert.deepEqual((await again.track(texts)).value, seen.value)
  assert.deepEqual((await (await openHistory(log, { states: [notes(2) as StateSpec<unknown>] })).track(notes(2))).value.get('b'), 2)
  assert.deepEqual(await again.messages.page({ size: 2, before: 'named' }), { messages: [], has_more: false })
  assert.deepEqual((await again.messages.page({ size: 1, after: 'named' })).has_more, true)
  assert.deepEqual((await again.track(notes(1))).value, kept.value)
  assert.deepEqual(
    [...(await (await openHistory(log)).track(notes(2))).value],
    [
      ['a', 2],
      ['b', 2]
    ],
    'a state of another version is computed anew'
  )
  const far = { size: 2, before: 'msg_session_a_000010' }
  assert.deepEqual((await again.messages.page(far)).messages, (await live.messages.page(far)).messages)
  await again.append({ type: 'message', role: 'user', content: text('on') })
  const times = (await again.messages.page({ size: 1_000 })).messages.map(message => message.created_at)
  assert.deepEqual(times, times.toSorted())
  assert.equal(again.openCalls().length, 1)
})

test('a page ends where it is asked to, and leaves out what was taken back', async () => {
  const history = await openHistory()
  for (let n = 0; n < 300; n++) await history.append({ type: 'message', role: 'user', content: text(`${n}`) })
  await history.append({ type: 'context.undone', from: 290, context_tokens: 0 })
  await history.append({ type: 'message', role: 'user', content: text('new') })
  const page = async (query: object) => {
    const { messages, has_more } = await history.messages.page({ size: 3, ...query })
    return [messages.map(message => (message.content[0] as { text?: string } | undefined)?.text), has_more]
  }
  const id = (n: number) => `msg_session_a_${String(n).padStart(6, '0')}`
  assert.deepEqual(await page({}), [['288', '289', 'new'], true])
  assert.deepEqual(await page({ before: id(3) }), [['0', '1', '2'], false])
  assert.deepEqual(await page({ before: id(100) }), [['97', '98', '99'], true])
  assert.deepEqual(await page({ after: id(286) }), [['288', '289', 'new'], true])
  assert.deepEqual(await page({ after: id(287) }), [['288', '289', 'new'], false])
  assert.deepEqual(await page({ before: id(295) }), [['288', '289', 'new'], true], 'one that was taken back counts as none')
  assert.deepEqual(await page({ before: id(999) }), [['288', '289', 'new'], true])
  assert.deepEqual(
    [history.messages.count(), await history.messages.find(id(295)), await history.messages.find(id(900))],
    [291, undefined, undefined]
  )
  const times = (await history.messages.page({ size: 1_000 })).messages.map(message => message.created_at)
  assert.deepEqual(new Set(times).size, 291, 'clients sort messages by their time')
})

test('a message has the words of its prompt, however long ago that was accepted', async () => {
  const history = await openHistory()
  await history.append({ type: 'prompt.accepted', prompt_id: 'p', content: text('long ago') })
  for (let n = 0; n < 200; n++) await history.append({ type: 'message', role: 'user', content: text(`${n}`) })
  await history.append(
    { type: 'message', role: 'user', prompt_id: 'p' },
    { type: 'prompt.settled', prompt_ids: ['p'], status: 'completed' }
  )
  assert.deepEqual((await history.messages.page({ size: 1 })).messages[0]?.content, text('long ago'))
})

/** A journal of events that is as far as it is told to be. */
function journal() {
  const it = { given: 0, written: 0, epoch: 'e' }
  const ports: Partial<HistoryPorts> = {
    given: () => ({ seq: it.given, epoch: it.epoch }),
    written: () => ({ seq: it.written, epoch: it.epoch })
  }
  return { it, ports }
}

const events = (record: HistoryRecord) =>
  record.type === 'message' ? [{ type: 'event', payload: { id: record.id }, at: new Date(0) }] : []
const said = (id: string): CoreRecord => ({ type: 'message', role: 'user', id, content: text(id) })
const marks = (log: MemoryLog) =>
  log.lines.map(line => JSON.parse(line) as HistoryRecord).flatMap(record => (record.type === 'told' ? [record.seq] : []))

test('how far events were told is on record when the event journal has them on disk, in order, and once', async () => {
  const log = memoryLog()
  const { it, ports } = journal()
  const history = await openHistory(log, { ...ports, events, toldBytes: 0 })
  const first = await history.write(said('a'))
  const second = await history.write(said('b'))
  it.given = 2
  second.tell()
  it.written = 2
  await history.append(said('c'))
  assert.deepEqual(marks(log), [], 'the first write was not told')
  first.tell()
  it.given = 3
  await history.append(said('d'))
  it.given = 4
  await history.append(said('waits'))
  assert.equal(marks(log).at(-1), 2, 'the event journal has no more on disk')
  log.refuse = true
  await assert.rejects(history.append(said('lost')))
  log.refuse = false
  it.written = 4
  await history.append(said('e'))
  const before = marks(log).length
  await history.close()
  await history.close()
  assert.ok(marks(log).length - before <= 1)
  assert.equal(marks(log).at(-1), 4, 'a refused write holds up nothing')
  await history.append(said('f'))
  Object.assign(it, { epoch: 'anew', given: 1, written: 1 })
  await history.append(said('g'))
  await history.append(said('h'))
  assert.equal(marks(log).at(-1), 1, 'a journal that began anew')
})

test('an agent that is new to a session with many events has on record how far these are on disk', async () => {
  const log = memoryLog()
  const { it, ports } = journal()
  Object.assign(it, { given: 600, written: 520 })
  await (await openHistory(log, { ...ports, events })).append(said('a'))
  assert.deepEqual(marks(log), [520])
})

test('an agent that rested while others of its session were told much has on record that its next events come behind that', async () => {
  const log = memoryLog()
  const { it, ports } = journal()
  const history = await openHistory(log, { ...ports, events })
  await history.append(said('a'))
  Object.assign(it, { given: 1300, written: 1200 })
  await history.append(said('b'))
  assert.deepEqual(marks(log), [1200])
})

test('marks of how far events were told come again in a journal of events that began anew', async () => {
  const log = memoryLog()
  const { it, ports } = journal()
  Object.assign(it, { given: 5000, written: 5000 })
  const history = await openHistory(log, { ...ports, events })
  await history.append(said('a'))
  Object.assign(it, { epoch: 'anew', given: 500, written: 500 })
  await history.append(said('b'))
  await history.append(said('c'))
  assert.equal(marks(log).at(-1), 500)
})

test('writes that get on disk at once are told in their order, whoever takes longer to do it', async () => {
  const told: unknown[] = []
  const history = await openHistory(memoryLog(), { events, tell: event => void told.push(event.payload.id) })
  const slow = async (id: string) => {
    const written = await history.write(said(id))
    for (let promise = 0; promise < 20; promise++) await null
    written.tell()
  }
  await Promise.all([slow('a'), history.append(said('b')), slow('c'), history.append(said('d'))])
  assert.deepEqual(told, ['a', 'b', 'c', 'd'])
})

test('a write that is told in two goes counts as told behind the second; marks are no more than one per 16 KB', async () => {
  const log = memoryLog()
  const { it, ports } = journal()
  const history = await openHistory(log, { ...ports, events, toldBytes: 0 })
  const both = await history.write(said('a'), said('b'))
  both.tell(1)
  Object.assign(it, { given: 1, written: 1 })
  await history.append(said('c'))
  assert.deepEqual(marks(log), [])
  both.tell()
  await history.append(said('d'))
  assert.deepEqual(marks(log), [1])

  const seldom = memoryLog()
  const rare = await openHistory(seldom, { ...ports, events })
  for (const id of ['a', 'b', 'c']) await rare.append(said(id))
  assert.deepEqual(marks(seldom), [])
  await rare.close()
  assert.deepEqual(marks(seldom), [1])
})

test('a journal was closed when its last record says that all was told, and the event journal still has that', async () => {
  const wasTold = async (kept: { seq: number; epoch: string } | undefined, ...records: { readonly type: string }[]) => {
    const log = memoryLog()
    for (const record of records) await log.append('wire', record)
    const ctx = { streams: { watermark: () => kept } } as unknown as PackContext
    return await wasClosed(ctx, { session: { id: 'session_a' } } as AgentHost, log)
  }
  const last = told.of({ at: 1, seq: 7, epoch: 'e' })
  assert.equal(await wasTold(undefined), true, 'nothing is on record')
  assert.equal(await wasTold({ seq: 7, epoch: 'e' }, said('a'), last), true)
  assert.equal(await wasTold({ seq: 6, epoch: 'e' }, said('a'), last), false, 'a power failure took events')
  assert.equal(await wasTold({ seq: 7, epoch: 'anew' }, said('a'), last), false, 'the event journal began anew')
  assert.equal(await wasTold(undefined, said('a'), last), false)
  assert.equal(await wasTold({ seq: 7, epoch: 'e' }, last, said('a')), false, 'something came behind')
  assert.equal(await wasTold({ seq: 7, epoch: 'e' }, said('a'), said('b'), last), false, 'something came before the mark')
  assert.equal(await wasTold(undefined, said('a'), told.of({ at: 1, seq: 0, epoch: copiedEpoch })), true, 'a copy')
  const started = { type: 'turn.started', turn_id: 0 }
  const behind = (at: number) => told.of({ at, seq: 7, epoch: 'e' })
  assert.equal(await wasTold({ seq: 7, epoch: 'e' }, started, said('a'), behind(2)), false, 'a turn is open')
  assert.equal(await wasTold({ seq: 7, epoch: 'e' }, started, { type: 'turn.ended' }, said('a'), behind(3)), true, 'the turn is over')
})

test('what is known of a stored journal is brought up to date, unless the journal is another one, or undo may have come', async () => {
  const counted = (rewinds: boolean): StateSpec<number> => ({
    name: 'counted',
    version: 1,
    initial: () => 0,
    reduce: (state, record) => (record.type === 'message' ? state + 1 : state),
    rewinds
  })
  const read = async (records: number, known: { state: number; end: number }, rewinds = false) => {
    const log = memoryLog()
    for (let n = 0; n < records; n++) await log.append('wire', said(`m${n}`))
    const ctx = { log: silent, now: () => new Date(0) } as unknown as PackContext
    const { state, end } = await readStored(ctx, log, counted(rewinds), known)
    return [state, end]
  }
  const known = { state: 100, end: 2 }
  assert.deepEqual(await read(2, known), [100, 2])
  assert.deepEqual(await read(3, known), [101, 3])
  assert.deepEqual(await read(1, known), [1, 1])
  assert.deepEqual(await read(3, known, true), [3, 3])
})

test('what was not told before a process died is told once by the next one, and only what the event journal does not have', async () => {
  const log = memoryLog()
  const first = await openHistory(log, { events })
  const { it, ports } = journal()
  it.written = 9
  it.given = 9
  await first.append(said('a'), said('b'), said('a'))
  const anew: string[] = []
  await (await openHistory(log, { ...ports, events, told: anew, eventsAfter: async () => undefined })).recover()
  assert.deepEqual(anew, ['known event', 'known event', 'known event'], 'without their journal clients read the state anew')
  const told: string[] = []
  const eventsAfter = async () => [{ seq: 1, type: 'event', timestamp: '', payload: { id: 'a', more: 1 } }]
  const next = await openHistory(log, { ...ports, events, told, eventsAfter })
  assert.ok(next.untoldSince())
  await Promise.all([next.recover(), next.append(said('c')), next.recover()])
  assert.deepEqual(told, ['known event', 'event', 'event', 'event'])
  assert.equal(next.untoldSince(), undefined)
  await next.close()
  assert.equal((await openHistory(log, { ...ports, events })).untoldSince(), undefined)

  const reader = await openHistory(log, { events, writable: false })
  assert.equal(reader.untoldSince(), undefined)
})

test('a checkpoint waits for what has not been told, and says how far the telling was', async t => {
  const log = await aLog(t)
  const { it, ports } = journal()
  const history = await openHistory(log, { ...ports, events })
  const untold = await history.write(said('a'))
  for (let n = 0; n < 8; n++) await history.append(filler(n))
  const told: string[] = []
  const killed = await openHistory(log, { ...ports, events, told })
  await killed.recover()
  assert.ok(told.length >= 9, 'what a process that died here had not told')
  it.given = 20
  it.written = 20
  untold.tell()
  for (let n = 0; n < 8; n++) await history.append(filler(n))
  await history.write(said('b'))
  const marks: unknown[] = []
  const eventsAfter: HistoryPorts['eventsAfter'] = async mark => {
    marks.push(mark?.seq)
    return []
  }
  await (await openHistory(log, { ...ports, events, eventsAfter })).recover()
  assert.deepEqual(marks, [20])
})

test('a mark that the event journal does not reach any more counts for nothing, the one before it does', async () => {
  const log = memoryLog()
  const records = [
    { type: 'metadata', protocol_version: protocolVersion },
    said('a'),
    { type: 'told', at: 2, seq: 1, epoch: 'e' },
    said('b'),
    { type: 'told', at: 4, seq: 2, epoch: 'e' }
  ]
  log.lines.push(...records.map(record => JSON.stringify(record)))
  const { it, ports } = journal()
  const untold = async () => (await openHistory(log, { ...ports, events })).untoldSince() !== undefined
  it.given = 2
  assert.equal(await untold(), false)
  it.given = 1
  assert.equal(await untold(), true, 'a power failure took the end of the journal')
  log.lines[0] = JSON.stringify({ type: 'metadata', protocol_version: '0.1' })
  log.lines.splice(2, 3)
  assert.equal(await untold(), false, 'older histories have no marks')
})

test('a failed write is in no state, also in one that is asked for later; a pack that fails keeps nobody from writing', async () => {
  const log = memoryLog()
  const failing: StateSpec<number> = {
    name: 'failing',
    version: 1,
    initial: () => 0,
    reduce() {
      throw new Error('a bug')
    }
  }
  const history = await openHistory(log, {
    events: () => {
      throw new Error('a bug')
    }
  })
  await history.track(failing)
  await history.append(said('a'))
  log.refuse = true
  await assert.rejects(history.append(said('lost')))
  log.refuse = false
  const ids: StateSpec<unknown[]> = {
    name: 'ids',
    version: 1,
    initial: () => [],
    reduce: (state, record) => (record.type === 'message' ? [...state, record.id] : state)
  }
  assert.deepEqual((await history.track(ids)).value, ['a'])
})

test('a state that is asked for while a record is on its way has it; the end waits for it, too', async () => {
  const log = memoryLog()
  const writing = latch()
  const order: string[] = []
  const slow: MemoryLog = {
    ...log,
    async append(id, ...records) {
      await writing.opened
      order.push('written')
      return log.append(id, ...records)
    },
    release: async () => void order.push('released')
  }
  const history = await openHistory(slow)
  const pending = history.append(said('a'))
  const ids: StateSpec<unknown[]> = {
    name: 'ids',
    version: 1,
    initial: () => [],
    reduce: (state, record) => (record.type === 'message' ? [...state, record.id] : state)
  }
  const state = await history.track(ids)
  assert.deepEqual(state.value, ['a'])
  const page = history.messages.page({ size: 1 })
  const closing = history.close()
  await new Promise(setImmediate)
  writing.open()
  await Promise.all([pending, closing])
  assert.deepEqual(order, ['written', 'released'])
  assert.equal((await page).messages[0]?.id, 'a', 'what was appended before a page was asked for is on it')
  assert.deepEqual(state.value, ['a'])
})

test('while records are under way no checkpoint goes with those behind them; it comes with the next ones', async () => {
  const log = memoryLog()
  let lands: ReturnType<typeof latch<void>> | undefined
  const slow: MemoryLog = {
    ...log,
    async append(id, ...records) {
      const places = await log.append(id, ...records)
      await lands?.opened
      return places
    }
  }
  const types = () => log.lines.map(line => (JSON.parse(line) as HistoryRecord).type)
  const history = await openHistory(slow, { checkpoints: { bytes: 4, share: 1 } })
  for (let n = 0; n < 3; n++) await history.append({ type: 'note', id: `${n}` })
  lands = latch()
  const writes = [history.append({ type: 'note', id: 'with one' }), history.append({ type: 'note', id: 'behind' })]
  lands.open()
  await Promise.all(writes)
  assert.deepEqual(types().slice(-3), ['checkpoint', 'note', 'note'])

  for (const id of ['a', 'b', 'c', 'd']) await history.append({ type: 'message', role: 'user', content: text(id) })
  assert.equal(types().filter(type => type === 'checkpoint').length, 2)
  assert.deepEqual(await whole(await openHistory(log)), await whole(history))
})

test('a checkpoint that is too far back is not looked for: the journal is read whole, and one is written at once', async () => {
  const log = memoryLog()
  const megabyte = 1024 * 1024
  let lookedBack = 0
  // Each line takes a megabyte.
  const large: MemoryLog = {
    ...log,
    async append(id, ...records) {
      const { at, end } = await log.append(id, ...records)
      return { at: at.map(line => line * megabyte), end: end * megabyte }
    },
    async *scan(id, { from = 0, to = Number.POSITIVE_INFINITY, reverse = false } = {}) {
      for await (const { at, next, value } of log.scan(id, {
        from: from / megabyte,
        to: Math.min(to / megabyte, log.lines.length),
        reverse
      })) {
        if (reverse) lookedBack++
        yield { at: at * megabyte, next: next * megabyte, value }
      }
    }
  }
  const told: string[] = []
  const events = (record: HistoryRecord) =>
    record.type === 'message' ? [{ type: JSON.stringify(record.content), payload: {}, at: new Date(0) }] : []
  const marks = { given: () => ({ seq: 7, epoch: 'e' }), written: () => ({ seq: 7, epoch: 'e' }) }
  const never = { bytes: Number.POSITIVE_INFINITY, share: 1 }
  const live = await openHistory(large, { checkpoints: { bytes: 2 * megabyte, share: 1 }, ...marks, events, told })
  for (let n = 0; n < 6; n++) await live.append({ type: 'message', role: 'user', content: text(`${n}`) })
  await live.close()
  assert.ok(log.lines.some(line => line.includes('"checkpoint"')))
  const more = await openHistory(large, { checkpoints: never, ...marks, events, told })
  for (let n = 0; n < 40; n++) await more.append({ type: 'note', id: `${n}` })
  await more.close()
  // This one's events were never told, and it has no mark behind it.
  await log.append('wire', { type: 'message', role: 'user', content: text('untold'), time: 5, number: 6 } as { type: string })
  told.length = 0

  lookedBack = 0
  const again = await openHistory(large, { ...marks, events, told })
  assert.equal(lookedBack, 33)
  assert.equal(again.messages.count(), 7)
  await again.recover()
  assert.deepEqual(told, [JSON.stringify(text('untold'))], 'the mark at the end counts, although no checkpoint was seen')
  await again.append({ type: 'note', id: 'on' })
  const last = log.lines.slice(-2).map(line => (JSON.parse(line) as HistoryRecord).type)
  assert.deepEqual(last, ['checkpoint', 'note'])
  assert.deepEqual((await openHistory(large, { ...marks, events })).messages.count(), 7)
})

test('a long journal of which nothing is untold gets its checkpoint with its opening', async () => {
  const log = memoryLog()
  for (let n = 0; n < 9; n++) await log.append('wire', { type: 'note', id: `${n}` } as { type: string })
  const large: MemoryLog = {
    ...log,
    async *scan(id, range) {
      for await (const entry of log.scan(id, range))
        yield { ...entry, next: entry.next === log.lines.length ? 9 * 1024 * 1024 : entry.next }
    }
  }
  const history = await openHistory(large)
  await history.close()
  assert.ok(log.lines.some(line => line.includes('"checkpoint"')))
})

test('a journal that is closed while the disk refuses says so, lets go of its file, and is told again by nobody', async () => {
  const log = memoryLog()
  let released = 0
  const refusing: MemoryLog = {
    ...log,
    append: async (id, ...records) => {
      if (log.refuse) throw new Error('disk full')
      return await log.append(id, ...records)
    },
    release: async () => void released++
  }
  const events = (record: HistoryRecord) => (record.type === 'note' ? [{ type: 'noted', payload: { id: record.id }, at: new Date(0) }] : [])
  const marks = { given: () => ({ seq: 1, epoch: 'e' }), written: () => ({ seq: 1, epoch: 'e' }) }
  const journaled = [{ type: 'noted', payload: { id: 'a' }, seq: 1 }] as never
  const history = await openHistory(refusing, { ...marks, events })
  await history.append({ type: 'note', id: 'a' })
  log.refuse = true
  await assert.rejects(history.close(), /disk full/)
  assert.equal(released, 1)

  const doubtful = await openHistory(refusing, { ...marks, events })
  await assert.rejects(doubtful.append({ type: 'note', id: 'refused' }), /disk full/)
  await doubtful.close().catch(() => undefined)
  assert.equal(released, 2)

  log.refuse = false
  const told: string[] = []
  const again = await openHistory(refusing, { ...marks, events, told, eventsAfter: async () => journaled })
  await again.recover()
  assert.deepEqual(told, ['known noted'])
})

for (const rewinds of [false, true]) {
  const kind = rewinds ? 'a state that undo takes back' : 'a state'
  const always = { checkpoints: { bytes: 1, share: 0 } }
  const record = (n: number) => ({ type: 'note', id: `n${n}` }) as HistoryRecord
  const spec = (more: Partial<StateSpec<readonly string[]>>): StateSpec<readonly string[]> => ({
    ...{ name: 'notes', version: 1, rewinds, initial: () => [] },
    reduce: (state, { type, id }) => (type === 'note' ? [...state, String(id)] : state),
    ...more
  })

  test(`${kind} that cannot be saved is in no checkpoint, and follows from all records`, async t => {
    const log = await aLog(t)
    const states = [spec({ save: () => undefined }) as StateSpec<unknown>]
    const first = await openHistory(log, { ...always, states })
    for (let n = 0; n < 3; n++) await first.append(record(n))
    await first.close()
    const saved = (await lastCheckpoint(log))?.states as Record<string, unknown>
    assert.deepEqual(Object.keys(saved), ['conversation'])
    const second = await openHistory(log, { ...always, states })
    assert.deepEqual((await second.track(spec({}))).value, ['n0', 'n1', 'n2'])
    await second.close()
  })

  test(`${kind} whose saved form cannot be loaded follows from all records`, async t => {
    const log = await aLog(t)
    const first = await openHistory(log, { ...always, states: [spec({}) as StateSpec<unknown>] })
    for (let n = 0; n < 3; n++) await first.append(record(n))
    await first.close()
    const broken = spec({ load: () => undefined })
    for (const states of [[broken as StateSpec<unknown>], []]) {
      const history = await openHistory(log, { ...always, states })
      assert.deepEqual((await history.track(broken)).value, ['n0', 'n1', 'n2'])
      await history.close()
    }
  })
}
