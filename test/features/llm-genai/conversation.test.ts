/** Conversations through the whole engine over the generate-content wire. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import llmGenai from '../../../features/llm-genai/pack.ts'
import { playConversation } from '../../helpers/llm-turn.ts'
import { genaiWire } from '../../helpers/upstream-genai.ts'

const provider = 'env = { PROJECT = "p1", LOCATION = "l1" }'

for (const protocol of ['compat_genai', 'compat_cloud']) {
  test(`${protocol}: a tool turn and the prompt after a restart carry signatures, calls and results`, async t => {
    const { sent, items, events } = await playConversation(t, { protocol, pack: llmGenai, wire: genaiWire, provider })

    const call = (x: number) => ({ functionCall: { id: `call_${x}`, name: 'Echo', args: { x } } })
    const result = (x: number) => ({ functionResponse: { id: `call_${x}`, name: 'Echo', response: { output: `echo of ${x}` } } })
    const step = [
      {
        role: 'model',
        parts: [{ text: 'let me see', thought: true }, { text: 'Looking. ' }, { ...call(1), thoughtSignature: 'sig-0' }, call(2)]
      },
      { role: 'user', parts: [result(1), result(2)] }
    ]
    // Before it stand the prompt and the reminder of the date.
    const contents = (n: number) => (sent(n).contents as unknown[]).slice(2)
    assert.deepEqual(contents(1), step)
    assert.deepEqual(contents(2), [
      ...step,
      { role: 'model', parts: [{ text: 'I know', thought: true }, { text: 'It says hello.' }, { text: '', thoughtSignature: 'sig-1' }] },
      { role: 'user', parts: [{ text: 'and now?' }] }
    ])
    const thoughts = items.flatMap(({ content }) =>
      content.flatMap(part => (part.type === 'thinking' && 'thinking' in part ? [part.thinking] : []))
    )
    assert.deepEqual(thoughts.sort(), ['I know', 'let me see'])
    assert.ok(!JSON.stringify(events).includes('secret-key'))
  })
}
