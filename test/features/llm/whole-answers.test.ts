/** Servers that do not stream although they are asked to: a whole turn with a tool, over HTTP through the engine. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import llmChat from '../../../features/llm-chat/pack.ts'
import llmGenai from '../../../features/llm-genai/pack.ts'
import llmMessages from '../../../features/llm-messages/pack.ts'
import llmResponses from '../../../features/llm-responses/pack.ts'
import { listMessages } from '../../../features/messages/index.ts'
import { conversation, type TurnSetup } from '../../helpers/llm-turn.ts'
import { chatWire } from '../../helpers/upstream-chat.ts'
import { genaiWire } from '../../helpers/upstream-genai.ts'
import { messagesWire } from '../../helpers/upstream-messages.ts'
import { responsesWire } from '../../helpers/upstream-responses.ts'

const json = '{"x":1}'
const genai = (part: object) => ({
  candidates: [{ content: { parts: [part] }, finishReason: 'STOP' }],
  usageMetadata: { promptTokenCount: 7 }
})
const chat = (message: object, finish_reason: string) => ({ object: 'chat.completion', choices: [{ index: 0, message, finish_reason }] })
const message = (block: object, stop_reason: string) => ({ type: 'message', role: 'assistant', content: [block], stop_reason })
const response = (item: object) => ({ object: 'response', status: 'completed', error: null, output: [item] })

const servers: readonly [setup: TurnSetup, call: unknown, text: unknown][] = [
  [
    { protocol: 'compat_chat', pack: llmChat, wire: chatWire },
    chat({ role: 'assistant', content: null, tool_calls: [{ id: 'c1', function: { name: 'Echo', arguments: json } }] }, 'tool_calls'),
    chat({ role: 'assistant', content: 'done' }, 'stop')
  ],
  [
    { protocol: 'compat_messages', pack: llmMessages, wire: messagesWire },
    message({ type: 'tool_use', id: 'c1', name: 'Echo', input: { x: 1 } }, 'tool_use'),
    message({ type: 'text', text: 'done' }, 'end_turn')
  ],
  [
    { protocol: 'compat_responses', pack: llmResponses, wire: responsesWire },
    response({ type: 'function_call', id: 'f', call_id: 'c1', name: 'Echo', arguments: json }),
    response({ type: 'message', id: 'm', content: [{ type: 'output_text', text: 'done' }] })
  ],
  [
    { protocol: 'compat_genai', pack: llmGenai, wire: genaiWire },
    [genai({ functionCall: { name: 'Echo', args: { x: 1 } } })],
    genai({ text: 'done' })
  ]
]
for (const [setup, call, text] of servers) {
  test(`${setup.protocol}: an answer that comes whole is an answer`, async t => {
    const script = [call, text].map(body => [{ status: 200, body }])
    const { upstream, start, open, ask } = await conversation(t, { ...setup, script })
    const kernel = await start()
    const session_id = await open(kernel)

    await ask(kernel, session_id, 'go')

    const { items } = (await kernel.call(listMessages, { params: { session_id } })).data
    const said = items.filter(({ role }) => role === 'assistant').map(({ content }) => content.map(part => part.text ?? part.input))
    assert.deepEqual(said, [['done'], [{ x: 1 }]])
    assert.match(JSON.stringify(items), /echo of 1/)
    assert.equal(upstream.requests.length, 2)
  })
}

test('compat_chat: a message that is repeated behind its pieces is not said twice', async t => {
  const pieces = 'data: {"choices":[{"index":0,"delta":{"content":"once"}}]}\n\n'
  const whole = `data: ${JSON.stringify(chat({ role: 'assistant', content: 'once' }, 'stop'))}\n\n`
  const setup = { protocol: 'compat_chat', pack: llmChat, wire: chatWire }
  const { start, open, ask } = await conversation(t, { ...setup, script: [[{ raw: pieces + whole }, { end: true }]] })
  const kernel = await start()
  const session_id = await open(kernel)

  await ask(kernel, session_id, 'go')

  const { items } = (await kernel.call(listMessages, { params: { session_id } })).data
  assert.deepEqual(items[0]?.content, [{ type: 'text', text: 'once' }])
})
