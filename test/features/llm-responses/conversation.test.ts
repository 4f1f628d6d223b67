/** A conversation through the whole engine over the responses wire. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import llmResponses from '../../../features/llm-responses/pack.ts'
import { playConversation } from '../../helpers/llm-turn.ts'
import { responsesWire } from '../../helpers/upstream-responses.ts'

test('a tool turn and the prompt after a restart carry encrypted reasoning, calls and results', async t => {
  const { sent, items, events } = await playConversation(t, { protocol: 'compat_responses', pack: llmResponses, wire: responsesWire })

  const reasoning = (id: string, text: string, encrypted_content: string) => ({
    type: 'reasoning',
    id,
    summary: [{ type: 'summary_text', text }],
    encrypted_content
  })
  const said = (text: string, id: string) => ({
    type: 'message',
    id,
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text, annotations: [] }]
  })
  const step = [
    reasoning('rs_0_0', 'let me see', 'enc-0-0'),
    said('Looking. ', 'msg_2_1'),
    ...[1, 2].map(x => ({ type: 'function_call', call_id: `call_${x}`, name: 'Echo', arguments: `{"x":${x}}` })),
    ...[1, 2].map(x => ({ type: 'function_call_output', call_id: `call_${x}`, output: `echo of ${x}` }))
  ]
  // Before it stand the prompt and the reminder of the date.
  const input = (n: number) => (sent(n).input as { type: string }[]).slice(2)
  assert.deepEqual(input(1), step)
  assert.deepEqual(input(2), [
    ...step,
    reasoning('rs_1_0', 'I know', 'enc-1-0'),
    said('It says hello.', 'msg_5_1'),
    { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'and now?' }] }
  ])
  assert.ok(items.some(item => item.content.some(part => part.type === 'thinking')))
  assert.ok(!JSON.stringify(events).includes('secret-key'))
})
