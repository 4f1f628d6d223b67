import assert from 'node:assert/strict'
import { test } from 'node:test'
import { listMessages } from '../../../features/messages/index.ts'
import { readSnapshot } from '../../../features/session-views/index.ts'
import { latch } from '../../helpers/latch.ts'
import { failure, scriptedLlm, toolCalls } from '../../helpers/scripted-llm.ts'
import { copyOfHome, echoRunner, runner, type Started, startAgent } from './start.ts'

const more = () => [{ type: 'text', text: 'abc ' } as const, ...toolCalls({ id: 'a', name: 'Echo' })]
const snapshotOf = async (agent: Started) => (await agent.call(readSnapshot, { params: { session_id: agent.session_id } })).data

/** Begin and text of every delta that a subscriber got. */
async function deltas(agent: Started, work: () => Promise<unknown>): Promise<(readonly [number | undefined, string])[]> {
  const socket = await agent.connect()
  await socket.request('subscribe', { session_ids: [agent.session_id] })
  await work()
  await socket.next('prompt.completed')
  return socket.frames
    .filter(frame => frame.type === 'assistant.delta')
    .map(frame => [frame.offset, frame.payload.delta as string] as const)
}

test('the offset of a delta counts over the turn, over steps and over what a failed attempt told', async t => {
  const llm = scriptedLlm(more(), [{ type: 'text', text: 'lost ' }, ...failure()], 'kept')
  const agent = await startAgent(t, llm, { packs: [echoRunner()] })

  const told = await deltas(agent, () => agent.prompt('go'))

  assert.deepEqual(told, [
    [0, 'abc '],
    [4, 'lost '],
    [9, 'kept']
  ])
  assert.deepEqual(await deltas(agent, () => agent.prompt('another turn')), [[0, 'kept']])
})

test('with delta_offset = "step" the offset counts anew with every step, and the snapshot agrees', async t => {
  const done = latch()
  const llm = scriptedLlm(more(), [
    { type: 'text', text: 'de' },
    { type: 'wait', until: done.opened },
    { type: 'text', text: 'f' },
    { type: 'finish', reason: 'completed' }
  ])
  const agent = await startAgent(t, llm, { packs: [echoRunner()], config: { agent: { delta_offset: 'step' } } })

  const told = await deltas(agent, async () => {
    await agent.prompt('go')
    await agent.waitFor(event => event.type === 'assistant.delta' && (event.payload as { delta: string }).delta === 'de')
    const { in_flight_turn } = await snapshotOf(agent)
    assert.deepEqual([in_flight_turn?.assistant_text, in_flight_turn?.assistant_offset], ['de', 0])
    done.open()
  })

  assert.deepEqual(told, [
    [0, 'abc '],
    [0, 'de'],
    [2, 'f']
  ])
})

test('a message that streams is in the running turn of the snapshot only, a sealed one in its messages only', async t => {
  const calling = latch()
  const streaming = latch()
  const slow = runner(async ({ calls }) => {
    await calling.opened
    return calls.map(call => ({ call, result: { output: 'ran' } }))
  })
  const llm = scriptedLlm(
    [{ type: 'thinking', text: 'Hm' }, { type: 'text', text: 'first ' }, ...toolCalls({ id: 'a', name: 'Echo' })],
    [
      { type: 'text', text: 'second ' },
      { type: 'wait', until: streaming.opened },
      { type: 'text', text: 'end' },
      { type: 'finish', reason: 'completed' }
    ]
  )
  const agent = await startAgent(t, llm, { packs: [slow] })
  const { prompt_id } = await agent.prompt('go')
  const shown = async () => {
    const { in_flight_turn: flight, messages } = await snapshotOf(agent)
    const sealed = messages.items
      .filter(item => item.role === 'assistant')
      .flatMap(item => item.content.map(part => ('text' in part ? part.text : part.type)))
    return [sealed, flight && [flight.thinking_offset, flight.thinking_text, flight.assistant_offset, flight.assistant_text]]
  }
  await agent.waitFor(event => event.type === 'agent.status.updated' && JSON.stringify(event.payload).includes('"tool_call"'))
  await llm.arrived(0)

  while (JSON.stringify(await shown()).includes('"first "]]')) await new Promise(setImmediate) // until the message is sealed
  assert.deepEqual(await shown(), [
    ['thinking', 'first ', 'tool_use'],
    [2, '', 6, '']
  ])

  calling.open()
  await agent.waitFor(event => event.type === 'assistant.delta' && (event.payload as { delta: string }).delta === 'second ')
  assert.deepEqual(await shown(), [
    ['thinking', 'first ', 'tool_use'],
    [2, '', 6, 'second ']
  ])
  const { in_flight_turn: flight, session } = await snapshotOf(agent)
  assert.deepEqual([flight?.current_prompt_id, session.busy, session.agent_config.model], [prompt_id, true, 'test'])
  const { items } = (await agent.call(listMessages, { params: { session_id: agent.session_id } })).data
  assert.equal(items[0]?.role, 'tool')
  streaming.open()
  await agent.settled(1)
  assert.deepEqual(await shown(), [['thinking', 'first ', 'tool_use', 'second end'], null])
})

test('who subscribes after a cursor in the middle of a text is told where it goes on; who heard all of it is told nothing', async t => {
  const [thought, done] = [latch(), latch()]
  const llm = scriptedLlm([
    { type: 'thinking', text: 'Hm' },
    { type: 'wait', until: thought.opened },
    { type: 'text', text: 'first' },
    { type: 'wait', until: done.opened },
    { type: 'text', text: ' end' },
    { type: 'finish', reason: 'completed' }
  ])
  const agent = await startAgent(t, llm)
  const { session_id } = agent
  const [listener, early, newcomer] = [await agent.connect(), await agent.connect(), await agent.connect()]
  const follow = async (client: typeof listener, next: string) => {
    const { as_of_seq: seq, epoch } = await snapshotOf(agent)
    await client.request('subscribe', { session_ids: [session_id], cursors: { [session_id]: { seq, epoch } } })
    await client.next(next)
  }
  await listener.request('subscribe', { session_ids: [session_id] })
  await agent.prompt('go')
  await listener.next(frame => frame.payload?.delta === 'Hm')
  await follow(early, 'thinking.delta')
  thought.open()
  await listener.next(frame => frame.payload?.delta === 'first')
  await follow(newcomer, 'assistant.delta')
  done.open()
  for (const client of [listener, early, newcomer]) await client.next('prompt.completed')

  const told = (client: typeof listener) =>
    client.frames.filter(({ type }) => /\.delta$/.test(type)).map(({ type, offset, payload }) => [type, offset, payload.delta])
  assert.deepEqual(told(newcomer), [
    ['thinking.delta', 2, ''],
    ['assistant.delta', 5, ''],
    ['assistant.delta', 5, ' end']
  ])
  assert.deepEqual(told(early), [
    ['thinking.delta', 2, ''],
    ['assistant.delta', 0, 'first'],
    ['assistant.delta', 5, ' end']
  ])
  assert.deepEqual(told(listener), [
    ['thinking.delta', 0, 'Hm'],
    ['assistant.delta', 0, 'first'],
    ['assistant.delta', 5, ' end']
  ])
})

test('the first event behind the texts of a step says where they end, live and in a replay, which has no text', async t => {
  const llm = scriptedLlm(
    [{ type: 'thinking', text: 'Hm' }, { type: 'text', text: 'one ' }, ...toolCalls({ id: 'a', name: 'Echo' }, { id: 'b', name: 'Echo' })],
    'end'
  )
  const agent = await startAgent(t, llm, { packs: [runner(async ({ calls }) => calls.map(call => ({ call, result: { output: 'ran' } })))] })
  const { session_id } = agent
  const listener = await agent.connect()
  await listener.request('subscribe', { session_ids: [session_id] })
  const { as_of_seq: seq, epoch } = await snapshotOf(agent)
  await agent.prompt('go')
  await listener.next('prompt.completed')
  const late = await agent.connect()
  await late.request('subscribe', { session_ids: [session_id], cursors: { [session_id]: { seq, epoch } } })

  assert.ok(!late.frames.some(frame => frame.volatile))
  for (const client of [listener, late]) {
    const ends = client.frames.filter(({ type }) => type === 'tool.call.started' || type === 'turn.step.completed')
    assert.deepEqual(
      ends.map(({ type, payload }) => [type, payload.thinkingEnd, payload.assistantEnd]),
      [
        ['tool.call.started', 2, 4],
        ['tool.call.started', undefined, undefined],
        ['turn.step.completed', undefined, undefined],
        ['turn.step.completed', undefined, 7]
      ]
    )
  }
})

test('who comes back after a kill in the middle of a step is told to take the snapshot, which has none of its words', async t => {
  const gate = latch()
  t.after(() => gate.open())
  const first = await startAgent(
    t,
    scriptedLlm([
      { type: 'text', text: 'words' },
      { type: 'wait', until: gate.opened }
    ])
  )
  const { session_id } = first
  const before = await first.connect()
  await before.request('subscribe', { session_ids: [session_id] })
  await first.prompt('go')
  const { seq, epoch } = await before.next('assistant.delta')
  const again = await startAgent(t, scriptedLlm(), { home: await copyOfHome(first.home), session_id })

  const back = await again.connect()
  const { payload } = await back.request('subscribe', { session_ids: [session_id], cursors: { [session_id]: { seq, epoch } } })

  assert.deepEqual(payload.resync_required, [session_id])
  const { as_of_seq, messages, in_flight_turn } = await snapshotOf(again)
  assert.deepEqual([messages.items.map(({ role }) => role).includes('assistant'), in_flight_turn], [false, null])
  const resync = await back.next('resync_required')
  assert.deepEqual([resync.payload.current_seq, resync.payload.epoch], [as_of_seq, epoch])
  const late = await again.connect()
  const { payload: whole } = await late.request('subscribe', {
    session_ids: [session_id],
    cursors: { [session_id]: { seq: as_of_seq, epoch } }
  })
  assert.deepEqual(whole.resync_required, [])
})

test('who subscribes again after a cursor in the middle of a text lost none of it and is told nothing', async t => {
  const done = latch()
  const script = [
    { type: 'text', text: 'first' },
    { type: 'wait', until: done.opened },
    { type: 'finish', reason: 'completed' }
  ] as const
  const agent = await startAgent(t, scriptedLlm([...script]))
  const { session_id } = agent
  const client = await agent.connect()
  await client.request('subscribe', { session_ids: [session_id] })
  await agent.prompt('go')
  await client.next(frame => frame.payload?.delta === 'first')
  const { as_of_seq: seq, epoch } = await snapshotOf(agent)
  const cursors = { [session_id]: { seq, epoch } }

  await client.request('subscribe', { session_ids: [session_id], cursors })
  await client.request('client_hello', { client_id: 'c', subscriptions: [session_id], cursors })
  done.open()
  await client.next('prompt.completed')

  const deltas = client.frames.filter(frame => frame.type === 'assistant.delta').map(frame => frame.payload.delta)
  assert.deepEqual(deltas, ['first'])
})

test('the first chunk of a text is told at once, fast ones after it together, in the order of the stream', async t => {
  const chunks = Array.from({ length: 200 }, (_, n) => ({ type: n < 100 ? 'thinking' : 'text', text: `${n} ` }) as const)
  const agent = await startAgent(t, scriptedLlm([...chunks, { type: 'finish', reason: 'completed' }]))

  await agent.prompt('go')
  await agent.settled(1)

  const told = agent.events
    .filter(event => /\.delta$/.test(event.type))
    .map(event => [event.type, (event.payload as { delta: string }).delta])
  assert.deepEqual(told[0], ['thinking.delta', '0 '])
  assert.ok(told.some(([type, text]) => type === 'assistant.delta' && text === '100 '))
  assert.ok(told.length < 20, `${told.length} deltas`)
  assert.equal(told.map(([, text]) => text).join(''), chunks.map(chunk => chunk.text).join(''))
})

test('the arguments of a call are told as texts are: behind what came before the call, the first piece at once, fast ones together', async t => {
  const script = JSON.stringify({ text: 'x'.repeat(200) })
  const pieces = [...script].map(text => ({ type: 'tool_arguments', id: 'c1', text }) as const)
  const said = [{ type: 'text', text: 'I ' } as const, { type: 'text', text: 'write.' } as const]
  const call = { type: 'tool_call', id: 'c1', name: 'Note' } as const
  const agent = await startAgent(
    t,
    scriptedLlm([...said, call, ...pieces, { type: 'finish', reason: 'tool_calls' }], [{ type: 'finish', reason: 'completed' }])
  )

  await agent.prompt('go')
  await agent.settled(1)

  type Told = { delta?: string; name?: string; argumentsPart?: string }
  const told = agent.events.filter(event => /\.delta$/.test(event.type)).map(event => event.payload as Told)
  assert.deepEqual(
    told.slice(0, 4).map(({ delta, name, argumentsPart }) => delta ?? name ?? argumentsPart),
    ['I ', 'write.', 'Note', '{']
  )
  assert.ok(told.length < 20, `${told.length} deltas`)
  assert.equal(told.map(({ argumentsPart }) => argumentsPart ?? '').join(''), script)
})
