import assert from 'node:assert/strict'
import { test } from 'node:test'
import { listMessages, readSnapshot } from '../../../features/messages/index.ts'
import { latch } from '../../helpers/latch.ts'
import { scriptedLlm } from '../../helpers/scripted-llm.ts'
import { startAgent } from './start.ts'

test('a prompt streams an answer, in the recorded order of events', async t => {
  const llm = scriptedLlm('Hello there')
  const agent = await startAgent(t, llm)
  const { session_id } = agent

  const prompt = await agent.prompt('hi')
  assert.equal(prompt.status, 'running')
  await agent.settled(1)

  const types = agent.events.map(event => event.type).filter(type => type !== 'agent.status.updated')
  assert.deepEqual(types, [
    'event.workspace.created',
    'event.session.created',
    'agent.created',
    'session.meta.updated',
    'prompt.submitted',
    'turn.started',
    'event.session.work_changed',
    'turn.step.started',
    'assistant.delta',
    'assistant.delta',
    'turn.step.completed',
    'turn.ended',
    'event.session.work_changed',
    'prompt.completed'
  ])
  const list = await agent.call(listMessages, { params: { session_id } })
  assert.deepEqual(
    list.data.items.map(message => [message.role, (message.metadata?.origin as { kind: string } | undefined)?.kind]),
    [
      ['assistant', undefined],
      ['user', 'injection'],
      ['user', 'user']
    ]
  )
  assert.equal(list.data.items.at(-1)?.id, prompt.prompt_id)
  assert.match(llm.requests[0]?.system ?? '', /Working directory/)
})

test('the snapshot agrees with the stream while a step runs', async t => {
  const more = latch()
  const llm = scriptedLlm([
    { type: 'thinking', text: 'Hm' },
    { type: 'text', text: 'half ' },
    { type: 'wait', until: more.opened },
    { type: 'text', text: 'done' },
    { type: 'finish', reason: 'completed' }
  ])
  const agent = await startAgent(t, llm)
  const { session_id } = agent
  const prompt = await agent.prompt('go')
  await agent.waitFor(event => event.type === 'assistant.delta')

  const snapshot = await agent.call(readSnapshot, { params: { session_id } })

  assert.equal(snapshot.data.in_flight_turn?.assistant_text, 'half ')
  assert.equal(snapshot.data.in_flight_turn?.thinking_text, 'Hm')
  assert.equal(snapshot.data.in_flight_turn?.current_prompt_id, prompt.prompt_id)
  assert.equal(snapshot.data.session.agent_config.model, 'test')
  assert.ok(snapshot.data.session.busy)
  assert.equal(snapshot.data.messages.items.at(-1)?.role, 'assistant')
  more.open()
  await agent.settled(1)
  const after = await agent.call(readSnapshot, { params: { session_id } })
  assert.equal(after.data.in_flight_turn, null)
  assert.equal(after.data.session.last_turn_reason, 'completed')
})
