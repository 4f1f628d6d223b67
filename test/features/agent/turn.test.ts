import assert from 'node:assert/strict'
import { test } from 'node:test'
import { listMessages } from '../../../features/messages/index.ts'
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
    'event.session.status_changed',
    'turn.step.started',
    'assistant.delta',
    'assistant.delta',
    'turn.step.completed',
    'turn.ended',
    'event.session.work_changed',
    'event.session.status_changed',
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
