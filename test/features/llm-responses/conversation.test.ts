/** A conversation through the whole engine over the responses wire. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import llmResponses from '../../../features/llm-responses/pack.ts'
import { submitPrompt } from '../../../features/prompts/index.ts'
import { conversation, playConversation } from '../../helpers/llm-turn.ts'
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

test('reasoning that came as plain text goes back as it came, until another model answers', async t => {
  const events = (...all: readonly object[]) => ({ raw: all.map(event => `data: ${JSON.stringify(event)}\n\n`).join('') })
  const content = [{ type: 'reasoning_text', text: 'let me see' }]
  const item = { type: 'reasoning', id: 'rs_1', summary: [], content }
  const script = [
    [
      events(
        { type: 'response.output_item.added', output_index: 0, item: { ...item, content: [] } },
        { type: 'response.reasoning_text.delta', output_index: 0, item_id: 'rs_1', content_index: 0, delta: 'let me see' },
        { type: 'response.output_item.done', output_index: 0, item },
        {
          type: 'response.output_item.done',
          output_index: 1,
          item: { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'Echo', arguments: '{"x":1}' }
        },
        { type: 'response.completed', response: { id: 'r', status: 'completed' } }
      ),
      { end: true as const }
    ],
    [{ text: 'It says one.' }],
    [{ text: 'Nothing new.' }]
  ]
  const record = '[models.other]\nprovider = "p"\nmodel = "other"\nmax_context_size = 64000'
  const { upstream, start, open, ask } = await conversation(t, {
    protocol: 'compat_responses',
    pack: llmResponses,
    wire: responsesWire,
    script,
    record
  })
  const kernel = await start()
  const session_id = await open(kernel)

  await ask(kernel, session_id, 'what does it say?')
  await kernel.call(submitPrompt, { params: { session_id }, body: { content: [{ type: 'text', text: 'and now?' }], model: 'other' } })
  await upstream.arrived(2)

  const reasoning = (n: number) => (upstream.requests[n]!.body.input as { type: string }[]).filter(({ type }) => type === 'reasoning')
  assert.deepEqual(reasoning(1), [item])
  assert.deepEqual(reasoning(2), [])
})
