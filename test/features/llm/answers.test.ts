/** What becomes of a turn when a provider refuses for a moment, or an answer breaks off in a call: through the whole engine, over HTTP. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import llmChat from '../../../features/llm-chat/pack.ts'
import llmGenai from '../../../features/llm-genai/pack.ts'
import type { TestContextLike } from '../../../kernel/testing.ts'
import type { Script } from '../../helpers/fake-upstream.ts'
import { conversation, type TurnSetup } from '../../helpers/llm-turn.ts'
import { chatWire } from '../../helpers/upstream-chat.ts'
import { genaiWire } from '../../helpers/upstream-genai.ts'
import { providerErrors } from './provider-errors.ts'

const chat: TurnSetup = { protocol: 'compat_chat', pack: llmChat, wire: chatWire }

async function play(t: TestContextLike, setup: TurnSetup, script: Script) {
  const { upstream, start, open, ask } = await conversation(t, { ...setup, script })
  const kernel = await start()
  await ask(kernel, await open(kernel), 'go')
  const of = (type: string) => kernel.events.filter(event => event.type === type).map(({ payload }) => payload as Record<string, unknown>)
  return { requests: upstream.requests.length, retries: of('turn.step.retrying').length, ended: of('turn.ended')[0] }
}

const passing = providerErrors.filter(({ status, means }) => status !== undefined && (means === 'rate' || means === 'overloaded'))

for (const { who, status = 0, body } of passing.filter(({ who }) => /minute|throttled|side by side|overloaded$/.test(who))) {
  test(`${who} (HTTP ${status}): the turn waits and goes on`, async t => {
    const { requests, retries, ended } = await play(t, chat, [[{ status, body }], [{ text: 'done' }]])

    assert.deepEqual([requests, retries, ended?.reason], [2, 1, 'completed'])
  })
}

test('a prompt that is too long by the words of a throttled provider is none: it is asked again as it is', async t => {
  const body = { message: 'Too many tokens, please wait before trying again.' }
  const { requests, retries, ended } = await play(t, chat, [[{ status: 429, body }], [{ text: 'done' }]])

  assert.deepEqual([requests, retries, ended?.reason], [2, 1, 'completed'])
})

test('an answer that broke off in a call is asked for again, although a text came before it', async t => {
  const genai: TurnSetup = { protocol: 'compat_genai', pack: llmGenai, wire: genaiWire }
  const broken = [
    [genai, 'MALFORMED_FUNCTION_CALL'],
    [genai, 'UNEXPECTED_TOOL_CALL'],
    [genai, 'MISSING_THOUGHT_SIGNATURE'],
    [chat, 'MALFORMED_FUNCTION_CALL']
  ] as const
  for (const [setup, finish] of broken) {
    const { requests, retries, ended } = await play(t, setup, [[{ text: 'I call.' }, { finish }], [{ text: 'done' }]])

    assert.deepEqual([requests, retries, ended?.reason], [2, 1, 'completed'], `${setup.protocol} ${finish}`)
  }
})

test('an answer that ends with a call which never came is followed by another request', async t => {
  for (const finish of ['tool_calls', 'function_call']) {
    const { requests, ended } = await play(t, chat, [[{ text: 'I call.' }, { finish }], [{ text: 'done' }]])

    assert.deepEqual([requests, ended?.reason], [2, 'completed'], finish)
  }
})
