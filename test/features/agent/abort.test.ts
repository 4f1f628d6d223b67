import assert from 'node:assert/strict'
import { test } from 'node:test'
import { listMessages } from '../../../features/messages/index.ts'
import { abortPrompt, abortSession, listPrompts, submitPrompt } from '../../../features/prompts/index.ts'
import { readSnapshot } from '../../../features/session-views/index.ts'
import { readSession } from '../../../features/sessions/index.ts'
import { latch } from '../../helpers/latch.ts'
import { scriptedLlm, toolCalls } from '../../helpers/scripted-llm.ts'
import { copyOfHome, echoRunner, runner, type Started, startAgent } from './start.ts'

const payloads = (agent: Started, type: string) =>
  agent.events.filter(event => event.type === type).map(event => event.payload as Record<string, unknown>)
const never = new Promise<never>(() => undefined)
const hanging = [
  { type: 'text', text: 'so far' } as const,
  { type: 'tool_call', id: 'x', name: 'Echo' } as const,
  { type: 'wait', until: never } as const
]

test('a user abort keeps the text, drops half a tool call, and leaves the next turn startable', async t => {
  const llm = scriptedLlm(hanging, 'next answer')
  const agent = await startAgent(t, llm)
  const { session_id } = agent
  await agent.prompt('go')
  await agent.waitFor(event => event.type === 'tool.call.delta')

  assert.deepEqual((await agent.call(abortSession, { params: { session_id } })).data, { aborted: true })
  await agent.settled(1)

  const order = agent.events.map(event => event.type).filter(type => type !== 'agent.status.updated')
  assert.deepEqual(order.slice(order.indexOf('turn.step.interrupted')), [
    'turn.step.interrupted',
    'turn.ended',
    'event.session.work_changed',
    'event.session.status_changed',
    'prompt.aborted'
  ])
  const [ended] = payloads(agent, 'turn.ended')
  assert.deepEqual([ended?.reason, ended?.interruptReason], ['cancelled', 'user_cancelled'])
  const { data } = await agent.call(listMessages, { params: { session_id } })
  assert.deepEqual(data.items[1]?.content, [{ type: 'text', text: 'so far' }])
  assert.equal((data.items[0]?.metadata?.origin as { variant: string } | undefined)?.variant, 'interruption')
  await agent.prompt('again')
  await agent.settled(2)
  assert.equal(payloads(agent, 'turn.ended')[1]?.reason, 'completed')
})

test('an abort during a tool call ends it with a result and the turn as cancelled', async t => {
  const slow = runner(async ({ calls, report, signal }) => {
    for (const call of calls) await report({ type: 'started', call, args: {} })
    await new Promise<void>(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))
    const result = { output: 'aborted', is_error: true }
    for (const call of calls) await report({ type: 'finished', call, result })
    return calls.map(call => ({ call, result }))
  })
  const agent = await startAgent(t, scriptedLlm(toolCalls({ id: 'a', name: 'Echo' })), { packs: [slow] })
  const { session_id } = agent
  const prompt = await agent.prompt('go')
  await agent.waitFor(event => event.type === 'tool.call.started')
  const snapshot = await agent.call(readSnapshot, { params: { session_id } })
  assert.equal(snapshot.data.in_flight_turn?.running_tools[0]?.tool_call_id, 'a')

  await agent.call(abortPrompt, { params: { session_id, prompt_id: prompt.prompt_id } })

  assert.equal(payloads(agent, 'tool.result').length, 1)
  assert.equal(payloads(agent, 'turn.step.interrupted')[0]?.reason, 'aborted')
  assert.equal((await agent.call(readSession, { params: { session_id } })).data.last_turn_reason, 'cancelled')
})

test('prompts queue, run in order, and can be aborted while they wait', async t => {
  const more = latch()
  const llm = scriptedLlm(
    [
      { type: 'wait', until: more.opened },
      { type: 'text', text: 'a' },
      { type: 'finish', reason: 'completed' }
    ],
    'b'
  )
  const agent = await startAgent(t, llm)
  const { session_id } = agent
  const first = await agent.prompt('one')
  const second = await agent.prompt('two')
  const third = await agent.prompt('three')
  const list = (await agent.call(listPrompts, { params: { session_id } })).data
  assert.equal(list.active?.prompt_id, first.prompt_id)
  assert.deepEqual(
    list.queued.map(prompt => prompt.prompt_id),
    [second.prompt_id, third.prompt_id]
  )
  await agent.call(abortPrompt, { params: { session_id, prompt_id: second.prompt_id } })
  more.open()
  await agent.settled(3)
  assert.deepEqual(
    payloads(agent, 'turn.started').map(payload => payload.promptId),
    [first.prompt_id, third.prompt_id]
  )
})

test('a prompt id is good for one submission, also after a restart', async t => {
  const more = latch()
  const llm = scriptedLlm(
    [
      { type: 'wait', until: more.opened },
      { type: 'text', text: 'a' },
      { type: 'finish', reason: 'completed' }
    ],
    'b'
  )
  const agent = await startAgent(t, llm)
  const { session_id, home } = agent
  const body = { content: [{ type: 'text' as const, text: 'x' }], prompt_id: 'mine' }
  assert.equal((await agent.call(submitPrompt, { params: { session_id }, body })).data.prompt_id, 'mine')
  assert.equal((await agent.call(submitPrompt, { params: { session_id }, body })).code, 40927)
  more.open()
  await agent.settled(1)
  const done = await agent.call(submitPrompt, { params: { session_id }, body })
  assert.deepEqual([done.code, done.data], [40903, { aborted: false }])
  await agent.stop()

  const again = await startAgent(t, scriptedLlm('c'), { home, session_id })
  assert.equal((await again.call(submitPrompt, { params: { session_id }, body })).code, 40903)
})

test('a graceful stop closes the running turn and the queue goes on after the restart', async t => {
  const agent = await startAgent(t, scriptedLlm(hanging))
  const { session_id, home } = agent
  await agent.prompt('one')
  await agent.waitFor(event => event.type === 'assistant.delta')
  const waiting = await agent.prompt('two')
  await agent.stop()
  const [ended] = payloads(agent, 'turn.ended')
  assert.deepEqual([ended?.reason, ended?.interruptReason], ['cancelled', 'aborted'])

  const again = await startAgent(t, scriptedLlm('answer'), { home, session_id })
  await again.call(listPrompts, { params: { session_id } })
  await again.settled(1)
  assert.equal(payloads(again, 'turn.started')[0]?.promptId, waiting.prompt_id)
  assert.equal(payloads(again, 'turn.started')[0]?.turnId, 1)
})

test('a killed server: the open turn is closed once, its tool call is answered, queued prompts start in order', async t => {
  const stuck = runner(async ({ calls, report, signal }) => {
    for (const call of calls) await report({ type: 'started', call, args: {} })
    await new Promise<void>(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))
    return []
  })
  const agent = await startAgent(t, scriptedLlm(toolCalls({ id: 'a', name: 'Echo' })), { packs: [stuck] })
  const { session_id } = agent
  const first = await agent.prompt('one')
  await agent.waitFor(event => event.type === 'tool.call.started')
  const second = await agent.prompt('two')
  const third = await agent.prompt('three')
  const home = await copyOfHome(agent.home)

  const llm = scriptedLlm('answer')
  const again = await startAgent(t, llm, { home, session_id, packs: [echoRunner()] })
  await again.call(listMessages, { params: { session_id } })
  await again.settled(3)

  const order = again.events.map(event => event.type).filter(type => type !== 'agent.status.updated')
  assert.deepEqual(order.slice(0, 5), [
    'tool.result',
    'turn.step.interrupted',
    'turn.ended',
    'event.session.work_changed',
    'prompt.aborted'
  ])
  assert.equal(payloads(again, 'prompt.aborted')[0]?.promptId, first.prompt_id)
  assert.deepEqual(
    payloads(again, 'turn.started').map(payload => payload.promptId),
    [second.prompt_id, third.prompt_id]
  )
  const tool = llm.requests[0]?.messages.filter(message => message.role === 'tool')
  assert.equal(tool?.length, 1)
  assert.ok(tool?.[0]?.role === 'tool' && tool[0].is_error)
  await again.stop()

  const third_time = await startAgent(t, scriptedLlm('x'), { home, session_id })
  await third_time.call(listMessages, { params: { session_id } })
  assert.equal(payloads(third_time, 'turn.ended').length, 0)
})
