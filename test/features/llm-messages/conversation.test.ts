/** A conversation through the whole engine over the messages wire. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import llmMessages from '../../../features/llm-messages/pack.ts'
import { playConversation } from '../../helpers/llm-turn.ts'
import { messagesWire } from '../../helpers/upstream-messages.ts'

const cached = { cache_control: { type: 'ephemeral' } }

test('a tool turn and the prompt after a restart carry thinking with its signature, calls and results', async t => {
  const model = 'claude-opus-4-5'
  const { sent, items, events } = await playConversation(t, {
    protocol: 'compat_messages',
    pack: llmMessages,
    wire: messagesWire,
    model
  })

  const step = {
    role: 'assistant',
    content: [
      { type: 'thinking', thinking: 'let me see', signature: 'sig-0-0' },
      { type: 'text', text: 'Looking. ' },
      { type: 'tool_use', id: 'call_1', name: 'Echo', input: { x: 1 } },
      { type: 'tool_use', id: 'call_2', name: 'Echo', input: { x: 2 } }
    ]
  }
  const result = (x: number) => ({ type: 'tool_result', tool_use_id: `call_${x}`, content: [{ type: 'text', text: `echo of ${x}` }] })
  // The end of the request before has its breakpoint as well.
  const [prompt] = (sent(1).messages as { content: object[] }[]).slice(0, 1)
  assert.deepEqual(Object.keys(prompt?.content.at(-1) ?? {}), ['type', 'text', 'cache_control'])
  assert.deepEqual((sent(1).messages as unknown[]).slice(1), [step, { role: 'user', content: [result(1), { ...result(2), ...cached }] }])
  assert.deepEqual((sent(2).messages as unknown[]).slice(1), [
    step,
    { role: 'user', content: [result(1), { ...result(2), ...cached }] },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'I know', signature: 'sig-1-0' },
        { type: 'text', text: 'It says hello.' }
      ]
    },
    { role: 'user', content: [{ type: 'text', text: 'and now?', ...cached }] }
  ])
  assert.ok(items.some(item => item.content.some(part => part.type === 'thinking')))
  assert.ok(!JSON.stringify(events).includes('secret-key'))
})
