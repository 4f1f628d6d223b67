/** Conversations through the whole engine over the chat completions wire. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import llmChat from '../../../features/llm-chat/pack.ts'
import { playConversation } from '../../helpers/llm-turn.ts'
import { chatWire } from '../../helpers/upstream-chat.ts'

for (const protocol of ['compat_chat', 'svc']) {
  test(`${protocol}: a tool turn and the prompt after a restart carry reasoning in its field, calls and results`, async t => {
    const { sent, items, events } = await playConversation(t, { protocol, pack: llmChat, wire: chatWire })

    const call = (x: number) => ({ id: `call_${x}`, type: 'function', function: { name: 'Echo', arguments: `{"x":${x}}` } })
    const result = (x: number) => ({ role: 'tool', tool_call_id: `call_${x}`, content: `echo of ${x}` })
    const step = [
      { role: 'assistant', content: 'Looking. ', reasoning_content: 'let me see', tool_calls: [call(1), call(2)] },
      result(1),
      result(2)
    ]
    // Before it stand the system prompt, the prompt and the reminder of the date.
    const messages = (n: number) => (sent(n).messages as unknown[]).slice(3)
    assert.deepEqual(messages(1), step)
    assert.deepEqual(messages(2), [
      ...step,
      { role: 'assistant', content: 'It says hello.', reasoning_content: 'I know' },
      { role: 'user', content: 'and now?' }
    ])
    assert.ok(items.some(item => item.content.some(part => part.type === 'thinking')))
    assert.ok(!JSON.stringify(events).includes('secret-key'))
  })
}
