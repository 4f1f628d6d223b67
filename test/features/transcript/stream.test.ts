/** Transcripts over the socket: grades, baselines, going on from a batch, and the events that they stand for. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Op, readOps, readTranscript } from '../../../features/transcript/index.ts'
import transcript from '../../../features/transcript/pack.ts'
import { undoSession } from '../../../features/undo/index.ts'
import undo from '../../../features/undo/pack.ts'
import type { SocketClient, TestContextLike } from '../../../kernel/testing.ts'
import { latch } from '../../helpers/latch.ts'
import { failure, type ScriptedLlm, scriptedLlm, text, toolCalls } from '../../helpers/scripted-llm.ts'
import { freshDir } from '../../helpers/temp.ts'
import { copyOfHome, echoRunner, type Started, type StartOptions, startAgent } from '../agent/start.ts'

const start = (t: TestContextLike, llm: ScriptedLlm, options: StartOptions = {}) =>
  startAgent(t, llm, { packs: [transcript, echoRunner()], ...options })

const follow = (socket: SocketClient, server: Started, transcript: Record<string, string>, transcript_since?: Record<string, number>) =>
  socket.request('subscribe_v2', { session_id: server.session_id, transcript, ...(transcript_since ? { transcript_since } : {}) })

const opsIn = (socket: SocketClient): Op[] => socket.frames.flatMap(({ type, payload }) => (type === 'transcript.ops' ? payload.ops : []))
const seqsIn = (socket: SocketClient): number[] =>
  socket.frames.flatMap(({ type, payload }) => (type === 'transcript.ops' ? [payload.seq] : []))
const resetsIn = (socket: SocketClient) => socket.frames.filter(({ type }) => type === 'transcript.reset')
const kinds = (ops: readonly Op[]) => new Set(ops.map(({ op }) => op))

/** Resolves when everything that was sent to the socket so far has come. */
const caughtUp = (socket: SocketClient) => socket.request('unsubscribe_v2', { session_id: 'session_none' })

test('each grade gets its operations, in batches that count on', async t => {
  const server = await start(t, scriptedLlm([{ type: 'text', text: 'calling ' }, ...toolCalls({ id: 'a', name: 'Echo' })], 'done now'))
  const [turn, block, delta, off] = await Promise.all([server.connect(), server.connect(), server.connect(), server.connect()])
  for (const [socket, grade] of [
    [turn, 'turn'],
    [block, 'block'],
    [delta, 'delta'],
    [off, 'off']
  ] as const) {
    const ack = await follow(socket, server, { '*': grade })
    assert.deepEqual([ack.code, ack.payload.accepted], [0, [server.session_id]])
  }
  await server.prompt('go')
  await server.settled(1)
  for (const socket of [turn, block, delta, off]) await caughtUp(socket)

  assert.deepEqual(
    [turn, block, delta].map(socket =>
      ['turn.upsert', 'step.upsert', 'frame.upsert', 'append'].map(op => kinds(opsIn(socket)).has(op as Op['op']))
    ),
    [
      [true, false, false, false],
      [true, true, true, false],
      [true, true, true, true]
    ]
  )
  const seqs = seqsIn(delta)
  assert.deepEqual(
    seqs,
    seqs.map((_, at) => (seqs[0] ?? 0) + at)
  )
  assert.deepEqual(opsIn(off), [])
  const texts = opsIn(block).flatMap(op => (op.op === 'frame.upsert' && op.frame.kind === 'text' ? [op.frame.text] : []))
  assert.ok(texts.includes('calling ') && texts.includes('done now'), 'who gets no pieces gets the whole text')
  for (const { envelope } of [...resetsIn(delta), ...delta.frames.filter(({ type }) => type === 'transcript.ops')].map(frame => ({
    envelope: frame
  }))) {
    assert.deepEqual(
      [envelope.volatile, envelope.session_id, typeof envelope.seq, typeof envelope.epoch],
      [true, server.session_id, 'number', 'string']
    )
  }
})

test('the events that a transcript stands for do not come on that connection, others and other connections have them', async t => {
  const server = await start(t, scriptedLlm('hello'))
  const [quiet, loud] = [await server.connect(), await server.connect()]
  await follow(quiet, server, { main: 'turn' })
  await loud.request('subscribe', { session_ids: [server.session_id] })
  await server.prompt('go')
  await server.settled(1)
  await loud.next('prompt.completed')
  await caughtUp(quiet)
  const types = (socket: SocketClient) =>
    new Set(socket.frames.filter(({ payload }) => payload?.sessionId !== undefined).map(({ type }) => type))
  assert.ok(types(loud).has('turn.started') && types(loud).has('assistant.delta'))
  for (const type of ['turn.started', 'turn.ended', 'assistant.delta', 'prompt.submitted', 'prompt.completed', 'agent.status.updated']) {
    assert.equal(types(quiet).has(type), false, type)
  }
  for (const type of ['agent.created', 'session.meta.updated', 'event.session.work_changed']) assert.ok(types(quiet).has(type), type)

  await quiet.request('unsubscribe_v2', { session_id: server.session_id })
  const before = quiet.frames.length
  await server.prompt('again')
  await quiet.next(({ type, payload }) => type === 'turn.ended' && payload.turnId === 1)
  assert.deepEqual(
    quiet.frames.slice(before).filter(({ type }) => type.startsWith('transcript.')),
    []
  )
})

test('the phase is what is on record: while an answer streams the agent runs, live, in a baseline and in pages', async t => {
  const gate = latch()
  const answer = [
    { type: 'thinking', text: 'hm' } as const,
    { type: 'text', text: 'I will ' } as const,
    { type: 'wait', until: gate.opened } as const,
    ...toolCalls({ id: 'a', name: 'Echo' })
  ]
  const server = await start(t, scriptedLlm(answer, 'done'))
  const [quiet, loud] = [await server.connect(), await server.connect()]
  await follow(quiet, server, { main: 'turn' })
  await loud.request('subscribe', { session_ids: [server.session_id] })
  const page = async () =>
    (await server.call(readTranscript, { params: { session_id: server.session_id }, query: { agent_id: 'main' } })).data

  await server.prompt('go')
  await loud.next(({ type, payload }) => type === 'agent.status.updated' && payload.phase?.stream === 'assistant')
  const late = await server.connect()
  await follow(late, server, { main: 'turn' })
  const meanwhile = [resetsIn(late)[0]?.payload.snapshot.meta.agent.phase, (await page()).meta.agent?.phase]
  gate.open()
  await server.settled(1)
  await loud.next('prompt.completed')
  await caughtUp(quiet)

  for (const phase of meanwhile) assert.equal(phase?.kind, 'running')
  const kinds = (phases: readonly { readonly kind: string }[]) => [...new Set(phases.map(({ kind }) => kind))]
  const told = loud.frames.flatMap(({ type, payload }) => (type === 'agent.status.updated' && payload.phase ? [payload.phase] : []))
  const shown = opsIn(quiet).flatMap(op => (op.op === 'meta.merge' && op.meta.agent?.phase ? [op.meta.agent.phase] : []))
  assert.deepEqual(
    [kinds(told), kinds(shown)],
    [
      ['running', 'streaming', 'tool_call', 'ended'],
      ['running', 'tool_call', 'ended']
    ]
  )
  assert.deepEqual((await page()).meta.agent?.phase, shown.at(-1))
})

test('a failed attempt shows as a phase that says what failed and what comes next, as its event does', async t => {
  const server = await start(t, scriptedLlm([{ type: 'text', text: 'half' }, ...failure()], 'whole'))
  const [quiet, loud] = [await server.connect(), await server.connect()]
  await follow(quiet, server, { main: 'turn' })
  await loud.request('subscribe', { session_ids: [server.session_id] })
  await server.prompt('go')
  await server.settled(1)
  await loud.next('prompt.completed')
  await caughtUp(quiet)

  const phases = opsIn(quiet).flatMap(op =>
    op.op === 'meta.merge' && op.meta.agent?.phase?.kind === 'retrying' ? [op.meta.agent.phase] : []
  )
  const event = loud.frames.find(({ type }) => type === 'turn.step.retrying')!.payload
  const { since: _since, stepId: _step, ...phase } = { ...phases[0] } as Record<string, unknown>
  const { turnId, step, failedAttempt, nextAttempt, maxAttempts, delayMs, errorName, statusCode } = event
  assert.deepEqual([phases.length, statusCode], [1, 503])
  assert.deepEqual(phase, { kind: 'retrying', turnId, step, failedAttempt, nextAttempt, maxAttempts, delayMs, errorName, statusCode })
})

test('the effort that a bound model thinks with stands beside its name, live and on disk', async t => {
  const home = await freshDir()
  const server = await start(t, scriptedLlm('hello'), { home })
  const socket = await server.connect()
  await follow(socket, server, { '*': 'delta' })
  await server.prompt('go')
  await server.settled(1)
  await caughtUp(socket)
  const efforts = opsIn(socket).flatMap(op => (op.op === 'meta.merge' && op.meta.agent?.model ? [op.meta.agent.thinkingEffort] : []))
  assert.deepEqual(efforts, ['off'])
  await server.stop()

  const other = await start(t, scriptedLlm('on'), { home, session_id: server.session_id })
  const { data } = await other.call(readTranscript, { params: { session_id: server.session_id }, query: { agent_id: 'main' } })
  assert.deepEqual([data.meta.agent?.model, data.meta.agent?.thinkingEffort], ['test', 'off'])
})

test('unsubscribe ends the transcripts too, and a later subscription has its events', async t => {
  const server = await start(t, scriptedLlm('hello'))
  const socket = await server.connect()
  await follow(socket, server, { '*': 'delta' })
  await socket.request('unsubscribe', { session_ids: [server.session_id] })
  await socket.request('subscribe', { session_ids: [server.session_id] })
  await server.prompt('go')
  await socket.next('turn.ended')
  assert.deepEqual(opsIn(socket), [])
})

test('an explicit off is stronger than the default, and stays off', async t => {
  const server = await start(t, scriptedLlm('hello'))
  const socket = await server.connect()
  await follow(socket, server, { '*': 'delta' })
  await socket.request('unsubscribe_v2', { session_id: server.session_id, agent_ids: ['main'] })
  await server.prompt('go')
  await socket.next('turn.ended')
  assert.deepEqual([opsIn(socket), resetsIn(socket)], [[], []])
})

test('a finer grade gets a baseline, the same or a coarser one gets none', async t => {
  const server = await start(t, scriptedLlm('hello'))
  await server.prompt('go')
  await server.settled(1)
  const socket = await server.connect()
  const counts: number[] = []
  for (const grade of ['turn', 'turn', 'delta', 'block', 'off', 'turn']) {
    await follow(socket, server, { main: grade })
    counts.push(resetsIn(socket).length)
  }
  assert.deepEqual(counts, [1, 1, 2, 2, 2, 3])
  const [reset] = resetsIn(socket)
  assert.deepEqual([reset?.payload.snapshot.items, reset?.payload.has_more_older, reset?.payload.snapshot.hasMoreOlder], [[], true, true])
  assert.equal(reset?.payload.snapshot.prompts.length, 1)
})

test('who comes in the middle of a turn gets the turn as it is, and goes on from there', async t => {
  const [gate, never] = [latch(), latch()]
  const long = [{ type: 'text', text: 'x'.repeat(257 * 1024) } as const, { type: 'wait', until: never.opened } as const]
  const server = await start(t, scriptedLlm([{ type: 'text', text: 'one ' }, { type: 'wait', until: gate.opened }, ...text('two')], long))
  await server.prompt('go')
  await server.waitFor(({ type }) => type === 'assistant.delta')
  const socket = await server.connect()
  await follow(socket, server, { '*': 'delta' })
  const [reset] = resetsIn(socket)
  assert.equal(reset?.payload.snapshot.items[0].steps[0].frames[0].text, 'one ')
  gate.open()
  await server.settled(1)
  await caughtUp(socket)
  const append = opsIn(socket).find(op => op.op === 'append')
  assert.deepEqual([append?.op === 'append' && append.offset, append?.op === 'append' && append.text], [4, 'two'])

  await server.prompt('long')
  await server.waitFor(({ type, payload }) => type === 'assistant.delta' && (payload as { turnId: number }).turnId === 1)
  const late = await server.connect()
  await follow(late, server, { '*': 'delta' })
  assert.deepEqual(resetsIn(late)[0]?.payload.snapshot.items, [], 'one of more than 256 KB comes by pages')
  assert.equal(resetsIn(late)[0]?.payload.has_more_older, true)
  never.open()
})

test('who first looks at an older agent in the middle of the arguments of a call is shown the call when it is whole', async t => {
  const home = await freshDir()
  const before = await start(t, scriptedLlm('hello'), { home })
  await before.prompt('go')
  await before.settled(1)
  await before.stop()

  const gate = latch()
  const half = [{ type: 'tool_call', id: 'a', name: 'Echo' } as const, { type: 'tool_arguments', id: 'a', text: '{"text":' } as const]
  const rest = [{ type: 'tool_arguments', id: 'a', text: '"late"}' } as const, { type: 'finish', reason: 'tool_calls' } as const]
  const script = scriptedLlm([...half, { type: 'wait', until: gate.opened }, ...rest], 'done')
  const server = await start(t, script, { home, session_id: before.session_id })
  await server.prompt('again')
  await server.waitFor(({ type, payload }) => type === 'tool.call.delta' && (payload as { argumentsPart: string }).argumentsPart !== '')
  const socket = await server.connect()
  await follow(socket, server, { '*': 'delta' })
  gate.open()
  await server.settled(1)
  await caughtUp(socket)

  const shown = opsIn(socket).flatMap(op => (op.op === 'frame.upsert' && op.frame.kind === 'tool' ? [op.frame] : []))
  assert.ok(shown.length > 0)
  assert.deepEqual(
    shown.map(({ name, inputText }) => [name, inputText]),
    shown.map(() => ['Echo', '{"text":"late"}'])
  )
})

test('the batches of a new agent that nobody looked at are kept from the first on', async t => {
  const server = await start(t, scriptedLlm('hello'))
  await server.prompt('go')
  await server.settled(1)

  const { data } = await server.call(readOps, { params: { session_id: server.session_id }, query: { agent_id: 'main', since_seq: 0 } })
  assert.equal(data.complete, true)
  assert.deepEqual(
    data.batches.map(({ seq }) => seq),
    Array.from({ length: data.latest_seq }, (_, at) => at + 1)
  )
  assert.ok(data.batches.some(({ ops }) => ops.some(op => op.op === 'turn.upsert' && op.turn.state === 'completed')))
})

test('after a drop a client gets exactly what it missed, over the socket and over REST', async t => {
  const server = await start(t, scriptedLlm('hello'))
  const first = await server.connect()
  await follow(first, server, { '*': 'delta' })
  await server.prompt('go')
  await server.settled(1)
  await caughtUp(first)
  const since = seqsIn(first).at(-1) ?? 0
  first.terminate()
  const other = await server.connect()
  await follow(other, server, { '*': 'delta' })
  await server.prompt('again')
  await server.settled(2)
  await caughtUp(other)

  const again = await server.connect()
  await follow(again, server, { '*': 'delta' }, { '*': since })
  assert.deepEqual([resetsIn(again).length, seqsIn(again)[0]], [0, since + 1])
  assert.deepEqual(opsIn(again), opsIn(other))
  await follow(again, server, { '*': 'delta' }, { main: seqsIn(again).at(-1) ?? 0 })
  assert.deepEqual(opsIn(again), opsIn(other), 'nothing is missing: no frame')

  const params = { session_id: server.session_id }
  const { data } = await server.call(readOps, { params, query: { agent_id: 'main', since_seq: since } })
  assert.deepEqual([data.complete, data.latest_seq, data.batches.flatMap(({ ops }) => ops)], [true, seqsIn(other).at(-1), opsIn(other)])
  const whole = await server.call(readOps, { params, query: { agent_id: 'main', since_seq: 0 } })
  assert.deepEqual([whole.data.complete, whole.data.batches[0]?.seq], [true, 1])
  const page = await server.call(readTranscript, { params, query: { agent_id: 'main' } })
  assert.equal(page.data.seq, data.latest_seq)
  const beyond = await server.call(readOps, { params, query: { agent_id: 'main', since_seq: data.latest_seq + 1 } })
  assert.deepEqual([beyond.data.complete, beyond.data.batches], [false, []])
})

test('after kill -9 a client that goes on gets a baseline, and numbers above all that it had', async t => {
  const home = await freshDir()
  const gate = latch()
  const server = await start(
    t,
    scriptedLlm('hello', [
      { type: 'text', text: 'half ' },
      { type: 'wait', until: gate.opened }
    ]),
    { home }
  )
  const first = await server.connect()
  await follow(first, server, { '*': 'delta' })
  await server.prompt('go')
  await server.settled(1)
  await server.prompt('again')
  await server.waitFor(({ type, payload }) => type === 'assistant.delta' && (payload as { turnId: number }).turnId === 1)
  await caughtUp(first)
  const since = seqsIn(first).at(-1) ?? 0
  const copy = await copyOfHome(home)
  gate.open()
  await server.stop()

  const other = await start(t, scriptedLlm('on'), { home: copy, session_id: server.session_id })
  const cold = await other.call(readOps, { params: { session_id: server.session_id }, query: { agent_id: 'agent-9', since_seq: since } })
  assert.equal(cold.data.complete, false)
  const socket = await other.connect()
  await follow(socket, other, { '*': 'delta' }, { main: since })
  const [reset] = resetsIn(socket)
  assert.ok(reset && reset.payload.seq > since)
  await other.prompt('more')
  await socket.next(
    ({ type, payload }) => type === 'transcript.ops' && payload.ops.some((op: Op) => op.op === 'turn.upsert' && op.turn.ordinal === 2)
  )
  assert.ok(seqsIn(socket).every((seq, at, all) => seq === (all[at - 1] ?? reset.payload.seq) + 1))
  const { data } = await other.call(readTranscript, { params: { session_id: server.session_id }, query: { agent_id: 'main' } })
  assert.deepEqual(data.items.flatMap(item => (item.kind === 'turn' ? [`${item.turnId} ${item.state}`] : [])).slice(0, 2), [
    't0 completed',
    't1 cancelled'
  ])
})

test('prompts that waited before somebody first looked are shown when their turns begin', async t => {
  const home = await freshDir()
  const never = latch()
  const server = await start(t, scriptedLlm([{ type: 'wait', until: never.opened }]), { home })
  await server.prompt('one')
  await server.waitFor(({ type }) => type === 'turn.started')
  for (const text of ['two', 'three']) await server.prompt(text)
  const copy = await copyOfHome(home)
  never.open()
  await server.stop()

  const gate = latch()
  const other = await start(t, scriptedLlm([{ type: 'wait', until: gate.opened }], 'done'), { home: copy, session_id: server.session_id })
  await other.prompt('four')
  await other.waitFor(({ type, payload }) => type === 'turn.started' && (payload as { turnId: number }).turnId === 1)
  const socket = await other.connect()
  await follow(socket, other, { '*': 'delta' })
  gate.open()
  await socket.next(
    ({ type, payload }) =>
      type === 'transcript.ops' && payload.ops.some((op: Op) => op.op === 'turn.upsert' && op.turn.ordinal === 3 && op.turn.endedAt)
  )
  const begun = opsIn(socket).flatMap(op =>
    op.op === 'turn.upsert' && op.turn.state === 'running' ? [[op.turn.ordinal, op.turn.prompt]] : []
  )
  assert.deepEqual(begun, [
    [2, 'three'],
    [3, 'four']
  ])
})

test('who subscribes anew with a cursor has its replay first, without what the transcript says, and then a baseline', async t => {
  const server = await start(t, scriptedLlm('hello'))
  await server.prompt('go')
  await server.settled(1)
  const socket = await server.connect()
  await follow(socket, server, { '*': 'delta' })
  const before = socket.frames.length
  await socket.request('subscribe', { session_ids: [server.session_id], cursors: { [server.session_id]: { seq: 0 } } })
  const types = socket.frames.slice(before).map(({ type }) => type)
  assert.equal(types.includes('turn.started'), false)
  assert.ok(types.includes('agent.created') && types.indexOf('agent.created') < types.indexOf('transcript.reset'))
})

test('unknown sessions are not found, wrong frames are refused', async t => {
  const server = await start(t, scriptedLlm('hello'))
  const socket = await server.connect()
  const ack = await socket.request('subscribe_v2', { session_id: 'session_none', transcript: { '*': 'delta' } })
  assert.deepEqual([ack.code, ack.payload], [0, { accepted: [], not_found: ['session_none'], resync_required: [], cursors: {} }])
  for (const payload of [{}, { session_id: server.session_id }, { session_id: server.session_id, transcript: { '*': 'all' } }]) {
    const { code, msg, details } = await socket.request('subscribe_v2', payload)
    assert.deepEqual([code, msg], [1, 'invalid subscribe_v2 payload'])
    assert.match(String(details?.[0]?.path), /^payload\./)
  }
  const refused = await socket.request('unsubscribe_v2', { session_id: server.session_id, agent_ids: [] })
  assert.deepEqual([refused.code, refused.msg], [1, 'invalid unsubscribe_v2 payload'])
  assert.equal((await socket.request('unsubscribe_v2', { session_id: 'session_none' })).code, 0)
})

test('who follows transcripts is told to take the session anew when the pack is swapped, and can follow them again', async t => {
  const server = await start(t, scriptedLlm('one', 'two'))
  const socket = await server.connect()
  await follow(socket, server, { main: 'turn' })
  await server.prompt('go')
  await server.settled(1)

  await server.kernel.reload(transcript)

  const { payload } = await socket.next(({ type }) => type === 'resync_required')
  assert.equal(payload.session_id, server.session_id)
  assert.equal((await follow(socket, server, { main: 'turn' })).code, 0)
  const resets = resetsIn(socket).length
  assert.ok(resets > 0)
  const before = seqsIn(socket).length
  await server.prompt('again')
  await server.settled(2)
  await caughtUp(socket)
  assert.ok(seqsIn(socket).length > before)
})

test('a baseline has nothing of what was taken back, also when that was everything and the session is read anew', async t => {
  const packs = [transcript, undo]
  const server = await start(t, scriptedLlm('ok'), { packs })
  for (let n = 0; n < 2; n++) {
    await server.prompt(`prompt ${n}`)
    await server.settled(n + 1)
  }
  assert.equal((await server.call(undoSession, { params: { session_id: server.session_id }, body: { count: 2 } })).code, 0)
  const later = await start(t, scriptedLlm('ok'), { packs, home: await copyOfHome(server.home), session_id: server.session_id })
  const socket = await later.connect()
  await follow(socket, later, { main: 'delta' })
  const { data } = await later.call(readTranscript, { params: { session_id: later.session_id }, query: { agent_id: 'main' } })
  assert.deepEqual(
    data.items.map(item => (item.kind === 'marker' ? item.marker : item.kind)),
    ['undo']
  )
  assert.deepEqual(resetsIn(socket).at(-1)?.payload.snapshot.items, data.items)
})
