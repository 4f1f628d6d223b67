import assert from 'node:assert/strict'
import { test } from 'node:test'
import { listMessages, readMessage } from '../../../features/messages/index.ts'
import { abortPrompt, listPrompts, steerPrompts, submitPrompt } from '../../../features/prompts/index.ts'
import { archiveSession, readSession, restoreSession, Sessions } from '../../../features/sessions/index.ts'
import { definePack } from '../../../kernel/index.ts'
import { latch } from '../../helpers/latch.ts'
import { scriptedLlm, toolCalls } from '../../helpers/scripted-llm.ts'
import { copyOfHome, runner, type Started, startAgent } from './start.ts'

const never = new Promise<never>(() => undefined)
const hanging = (until: Promise<unknown> = never) => [
  { type: 'text', text: 'so far' } as const,
  { type: 'wait', until } as const,
  { type: 'finish', reason: 'completed' } as const
]
const of = (agent: Started, type: string) =>
  agent.events.filter(event => event.type === type).map(event => event.payload as Record<string, unknown>)

test('a prompt that is aborted after it was steered never runs, and the turn it was steered into goes on', async t => {
  const more = latch()
  const llm = scriptedLlm(hanging(more.opened), 'never asked')
  const agent = await startAgent(t, llm)
  const params = { session_id: agent.session_id }
  const one = await agent.prompt('one')
  await llm.arrived(0)
  const two = await agent.prompt('two')
  await agent.call(steerPrompts, { params, body: { prompt_ids: [two.prompt_id] } })

  assert.equal((await agent.call(abortPrompt, { params: { ...params, prompt_id: two.prompt_id } })).code, 0)

  more.open()
  await agent.settled(2)
  assert.equal(llm.requests.length, 1)
  assert.deepEqual(
    [of(agent, 'prompt.aborted'), of(agent, 'prompt.completed')].map(list => list.map(payload => payload.promptId)),
    [[two.prompt_id], [one.prompt_id]]
  )
  assert.deepEqual((await agent.call(listPrompts, { params })).data, { active: null, queued: [] })
  assert.equal((await agent.call(abortPrompt, { params: { ...params, prompt_id: two.prompt_id } })).code, 40903)
})

test('nothing is steered into a turn that is being aborted', async t => {
  const end = latch()
  const deaf = runner(async ({ calls }) => {
    await end.opened
    return calls.map(call => ({ call, result: { output: 'late' } }))
  })
  const llm = scriptedLlm(toolCalls({ id: 'a', name: 'Deaf' }), 'done')
  const agent = await startAgent(t, llm, { packs: [deaf] })
  const params = { session_id: agent.session_id }
  const one = await agent.prompt('one')
  await llm.arrived(0)
  await agent.waitFor(event => event.type === 'tool.call.delta')
  const two = await agent.prompt('two')
  const aborting = agent.call(abortPrompt, { params: { ...params, prompt_id: one.prompt_id } })
  await agent.call(listPrompts, { params })

  assert.equal((await agent.call(steerPrompts, { params, body: { prompt_ids: [two.prompt_id] } })).code, 40402)

  end.open()
  assert.equal((await aborting).code, 0)
  await agent.settled(2)
  assert.deepEqual(
    of(agent, 'prompt.steered').map(payload => payload.promptIds),
    []
  )
})

test('a prompt that was steered and not taken when the process died is still in use, and runs after the next start', async t => {
  const llm = scriptedLlm(hanging())
  const agent = await startAgent(t, llm)
  const { session_id } = agent
  const params = { session_id }
  await agent.prompt('one')
  await llm.arrived(0)
  const { prompt_id } = await agent.prompt('two')
  await agent.call(steerPrompts, { params, body: { prompt_ids: [prompt_id] } })
  const again = { content: [{ type: 'text' as const, text: 'two' }], prompt_id }
  assert.equal((await agent.call(submitPrompt, { params, body: again })).code, 40927)
  const home = await copyOfHome(agent.home)

  const next = await startAgent(t, scriptedLlm('late answer'), { home, session_id })
  await next.call(listPrompts, { params })
  await next.settled(2)

  assert.deepEqual(
    of(next, 'prompt.completed').map(payload => payload.promptId),
    [prompt_id]
  )
})

test('prompts that are steered together can be read each by its id, and reach the model as one', async t => {
  const more = latch()
  const llm = scriptedLlm(hanging(more.opened), 'done')
  const agent = await startAgent(t, llm)
  const params = { session_id: agent.session_id }
  await agent.prompt('one')
  await llm.arrived(0)
  const prompt_ids = [(await agent.prompt('two')).prompt_id, (await agent.prompt('three')).prompt_id]
  await agent.call(steerPrompts, { params, body: { prompt_ids } })
  more.open()
  await agent.settled(1)

  for (const [n, message_id] of prompt_ids.entries()) {
    const { data } = await agent.call(readMessage, { params: { ...params, message_id } })
    assert.deepEqual([data.prompt_id, data.content], [message_id, [{ type: 'text', text: n === 0 ? 'two' : 'three' }]])
  }
  assert.deepEqual(llm.requests[1]?.messages.at(-1)?.content, [{ type: 'text', text: 'two\n\nthree' }])
})

test('a prompt of any agent can be aborted, running or queued', async t => {
  let sessions: Sessions | undefined
  const probe = definePack({
    name: 'probe',
    needs: { sessions: Sessions },
    setup(_ctx, services) {
      sessions = services.sessions
    }
  })
  const agent = await startAgent(t, scriptedLlm(hanging()), { packs: [probe] })
  const { session_id } = agent
  const { id: agent_id } = await (await sessions?.load(session_id))!.createAgent({ type: 'sub' })
  const running = await agent.prompt('one', { agent_id })
  const queued = await agent.prompt('two', { agent_id })

  for (const { prompt_id } of [queued, running]) {
    assert.deepEqual((await agent.call(abortPrompt, { params: { session_id, prompt_id } })).data, { aborted: true })
  }

  assert.deepEqual(
    of(agent, 'prompt.aborted').map(payload => payload.promptId),
    [queued.prompt_id, running.prompt_id]
  )
  assert.equal((await agent.call(abortPrompt, { params: { session_id, prompt_id: 'nobody' } })).code, 40402)
})

test('archiving a session ends its running turn, and what waits behind it never runs', async t => {
  const llm = scriptedLlm(hanging(), 'never asked')
  const agent = await startAgent(t, llm)
  const params = { session_id: agent.session_id }
  const prompts = [await agent.prompt('one')]
  await llm.arrived(0)
  prompts.push(await agent.prompt('two'), await agent.prompt('three'))
  await agent.call(steerPrompts, { params, body: { prompt_ids: [prompts[2]?.prompt_id ?? ''] } })

  assert.equal((await agent.call(archiveSession, { params })).code, 0)

  const { busy, archived, last_turn_reason } = (await agent.call(readSession, { params })).data
  assert.deepEqual([busy, archived, last_turn_reason], [false, true, 'cancelled'])
  assert.deepEqual(new Set(of(agent, 'prompt.aborted').map(payload => payload.promptId)), new Set(prompts.map(prompt => prompt.prompt_id)))
  assert.equal(llm.requests.length, 1)
  assert.ok(
    agent.events.findIndex(event => event.type === 'turn.ended') < agent.events.findIndex(event => event.type === 'event.session.archived')
  )
  const { items } = (await agent.call(listMessages, { params })).data
  assert.ok(!JSON.stringify(items).includes('interrupted'))
})

test('a prompt to an archived session is taken and runs; the session stays archived until it is restored', async t => {
  const agent = await startAgent(t, scriptedLlm('one', 'two'))
  const params = { session_id: agent.session_id }
  await agent.prompt('one')
  await agent.settled(1)
  await agent.call(archiveSession, { params })
  const { archived_at } = (await agent.call(readSession, { params })).data

  assert.equal((await agent.prompt('two')).status, 'running')
  await agent.settled(2)

  const after = (await agent.call(readSession, { params })).data
  assert.deepEqual([after.archived, after.archived_at, after.last_prompt, after.last_turn_reason], [true, archived_at, 'two', 'completed'])
  assert.equal((await agent.call(restoreSession, { params })).data.archived, false)
})
