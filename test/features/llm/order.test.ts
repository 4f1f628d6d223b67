/** Answers that think, call, think and call again go back as they came, through the whole engine. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import llmChat from '../../../features/llm-chat/pack.ts'
import llmGenai from '../../../features/llm-genai/pack.ts'
import llmMessages from '../../../features/llm-messages/pack.ts'
import llmResponses from '../../../features/llm-responses/pack.ts'
import { conversation, type TurnSetup } from '../../helpers/llm-turn.ts'
import { chatWire } from '../../helpers/upstream-chat.ts'
import { genaiWire } from '../../helpers/upstream-genai.ts'
import { messagesWire } from '../../helpers/upstream-messages.ts'
import { responsesWire } from '../../helpers/upstream-responses.ts'

const call = (x: number) => ({ tool: { name: 'Echo', args: { x }, id: `call_${x}` } })
const script = [
  [{ thinking: 'first' }, call(1), { text: 'Meanwhile.' }, { thinking: 'second' }, call(2), { text: 'Wait.' }],
  [{ text: 'done' }],
  [{ text: 'good' }]
]
type Fields = Readonly<Record<string, unknown>>
const said = (value: unknown): string => {
  const { type, thinking, text, name, summary, content, functionCall, thought } = value as Fields
  if (functionCall) return `call ${JSON.stringify((functionCall as Fields).args)}`
  if (thought) return `think ${text}`
  if (type === 'thinking') return `think ${thinking}`
  if (type === 'reasoning') return `think ${(summary as Fields[])[0]?.text}`
  if (type === 'tool_use') return `call ${JSON.stringify((value as Fields).input)}`
  if (type === 'function_call') return `call ${(value as Fields).arguments}`
  if (type === 'message') return `say ${(content as Fields[])[0]?.text}`
  return name === undefined ? `say ${text}` : String(name)
}
const order = ['think first', 'call {"x":1}', 'say Meanwhile.', 'think second', 'call {"x":2}', 'say Wait.']

/** What the provider gets of the first answer, before the results of its calls. */
const wires: readonly (readonly [setup: TurnSetup, first: (body: Fields) => unknown[]])[] = [
  [
    { protocol: 'compat_messages', pack: llmMessages, wire: messagesWire, model: 'claude-opus-4-5' },
    body => (body.messages as { role: string; content: unknown[] }[]).find(({ role }) => role === 'assistant')!.content.map(said)
  ],
  [
    { protocol: 'compat_responses', pack: llmResponses, wire: responsesWire },
    body => (body.input as Fields[]).filter(({ role, type }) => role !== 'user' && type !== 'function_call_output').map(said)
  ],
  [
    { protocol: 'compat_genai', pack: llmGenai, wire: genaiWire },
    body => (body.contents as { role: string; parts: unknown[] }[]).find(({ role }) => role === 'model')!.parts.map(said)
  ]
]

for (const [setup, first] of wires) {
  test(`${setup.protocol}: thoughts, texts and calls go back in the order in which they came, also after a restart`, async t => {
    const { upstream, start, open, ask } = await conversation(t, { ...setup, script })
    const one = await start()
    const session_id = await open(one)
    await ask(one, session_id, 'go')
    assert.deepEqual(first(upstream.requests[1]!.body), order)
    await one.stop()

    await ask(await start(), session_id, 'and now?')

    assert.deepEqual(first(upstream.requests[2]!.body).slice(0, order.length), order)
  })
}

test('compat_chat: each kind of content has one place on this wire, and keeps its order there', async t => {
  const { upstream, start, open, ask } = await conversation(t, { protocol: 'compat_chat', pack: llmChat, wire: chatWire, script })
  const kernel = await start()
  await ask(kernel, await open(kernel), 'go')

  const answer = (upstream.requests[1]!.body.messages as Fields[]).find(({ role }) => role === 'assistant')!
  assert.deepEqual(
    [answer.reasoning_content, answer.content, (answer.tool_calls as Fields[]).map(one => (one.function as Fields).arguments)],
    ['firstsecond', 'Meanwhile.Wait.', ['{"x":1}', '{"x":2}']]
  )
})
