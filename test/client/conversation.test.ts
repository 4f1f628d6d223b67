/** What the reference client makes of a step that was cut. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SessionEvent } from '../../client/index.ts'
import { type Conversation, reduce } from '../../examples/client/conversation.ts'
import { startAgent } from '../features/agent/start.ts'
import { scriptedLlm } from '../helpers/scripted-llm.ts'

const empty: Conversation = {
  title: '',
  busy: false,
  pending_interaction: 'none',
  last_turn_reason: undefined,
  approvals: [],
  questions: [],
  subagents: [],
  entries: [],
  turn: undefined,
  open: undefined
}
const main = (type: string, payload: object) => ({ type, payload: { type, agentId: 'main', turnId: 0, ...payload } }) as SessionEvent
const words = main('assistant.delta', { delta: 'so far' })
const folded = (...events: SessionEvent[]) =>
  events.reduce(reduce, empty).entries.map(entry => (entry.who === 'assistant' ? entry.text : ''))

test('words of a step that was cut stay when they are in a message, and go when the server ended while they came', () => {
  const cut = (payload: object = {}) => main('turn.step.interrupted', { step: 1, reason: 'aborted', ...payload })
  assert.deepEqual(folded(words, cut({ assistantEnd: 6 })), ['so far'])
  assert.deepEqual(folded(words, cut()), [])
  assert.deepEqual(folded(words, main('tool.call.started', { toolCallId: 'c', name: 'n', args: {}, assistantEnd: 6 }), cut()), ['so far'])
})

test('words before a failure that nothing takes the place of are in a message, and its event says so', async t => {
  const filtered = [{ type: 'text', text: 'so far' } as const, { type: 'finish', reason: 'filtered' } as const]
  const agent = await startAgent(t, scriptedLlm(filtered))
  await agent.prompt('go')
  await agent.settled(1)
  const of = (type: string) => agent.events.flatMap(event => (event.type === type ? [main(type, event.payload as object)] : []))
  assert.deepEqual(folded(...of('assistant.delta'), ...of('turn.step.interrupted')), ['so far'])
})
