/** Servers that allow shorter answers than are asked for. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compactSession } from '../../../features/compaction/contract.ts'
import compaction from '../../../features/compaction/pack.ts'
import llmChat from '../../../features/llm-chat/pack.ts'
import llmGenai from '../../../features/llm-genai/pack.ts'
import llmMessages from '../../../features/llm-messages/pack.ts'
import llmResponses from '../../../features/llm-responses/pack.ts'
import requestRepair from '../../../features/request-repair/pack.ts'
import { conversation } from '../../helpers/llm-turn.ts'
import { chatWire } from '../../helpers/upstream-chat.ts'
import { genaiWire } from '../../helpers/upstream-genai.ts'
import { messagesWire } from '../../helpers/upstream-messages.ts'
import { responsesWire } from '../../helpers/upstream-responses.ts'

type Body = Record<string, unknown>

const chat = { protocol: 'compat_chat', pack: llmChat, wire: chatWire }
const messages = { protocol: 'compat_messages', pack: llmMessages, wire: messagesWire }
const responses = { protocol: 'compat_responses', pack: llmResponses, wire: responsesWire }
const genai = { protocol: 'compat_genai', pack: llmGenai, wire: genaiWire }

const limitOf = (body: Body): number | undefined =>
  (body.max_tokens ??
    body.max_completion_tokens ??
    body.max_output_tokens ??
    (body.generationConfig as Body | undefined)?.maxOutputTokens) as number | undefined

const words: readonly [wire: typeof chat, allowed: number, say: (asked: number) => string][] = [
  [
    chat,
    4096,
    asked => `max_tokens is too large: ${asked}. This model supports at most 4096 completion tokens, whereas you provided ${asked}.`
  ],
  [chat, 8192, () => 'Invalid max_tokens value, the valid range of max_tokens is [1, 8192]'],
  [chat, 8192, () => '<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 8192]'],
  [
    chat,
    8192,
    () =>
      '`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the `context_window` for this model'
  ],
  [
    chat,
    4096,
    () => 'The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum tokens value that is lower than 4096.'
  ],
  [messages, 8192, asked => `max_tokens: ${asked} > 8192, which is the maximum allowed number of output tokens for some-model`],
  [messages, 8192, () => 'Invalid max_tokens value, the valid range of max_tokens is [1, 8192]'],
  [
    responses,
    8192,
    asked => `Invalid 'max_output_tokens': integer above maximum value. Expected a value <= 8192, but got ${asked} instead.`
  ],
  [
    genai,
    8192,
    asked =>
      `it has a maxOutputTokens value of ${asked} but the supported range is from 1 (inclusive) to 8193 (exclusive). Update the value`
  ]
]
for (const [wire, allowed, say] of words) {
  test(`${wire.protocol}: answers get as long as the server allows, in turns and summaries (${say(0).slice(0, 60)})`, async t => {
    const { upstream, start, open, ask } = await conversation(t, {
      ...wire,
      packs: [requestRepair, compaction],
      script: body => {
        const asked = limitOf(body) ?? 0
        return asked > allowed ? [{ status: 400, body: wire.wire.failure(400, say(asked)) }] : [{ text: 'done' }]
      }
    })
    const kernel = await start()
    const session_id = await open(kernel)
    await ask(kernel, session_id, 'a')
    assert.equal((await kernel.call(compactSession, { params: { session_id } })).code, 0)
    await kernel.waitFor(({ type }) => type === 'compaction.completed' || type === 'compaction.cancelled')
    await ask(kernel, session_id, 'b')

    const told = kernel.events.filter(({ type }) => type === 'turn.ended').map(({ payload }) => (payload as { reason: string }).reason)
    assert.deepEqual(told, ['completed', 'completed'])
    assert.ok(kernel.events.some(({ type }) => type === 'compaction.completed'))
    assert.equal(upstream.requests.length, 4) // one was refused
    assert.equal(limitOf(upstream.requests.at(-1)?.body ?? {}), allowed)
  })
}

test('a limit that a server does not know stays away, and so does the summary no longer fail', async t => {
  const { upstream, start, open, ask } = await conversation(t, {
    ...responses,
    packs: [requestRepair, compaction],
    script: body =>
      'max_output_tokens' in body ? [{ status: 400, body: { detail: 'Unsupported parameter: max_output_tokens' } }] : [{ text: 'done' }]
  })
  const kernel = await start()
  const session_id = await open(kernel)
  await ask(kernel, session_id, 'a')

  assert.equal((await kernel.call(compactSession, { params: { session_id } })).code, 0)
  await kernel.waitFor(({ type }) => type === 'compaction.completed' || type === 'compaction.cancelled')

  assert.ok(kernel.events.some(({ type }) => type === 'compaction.completed'))
  assert.equal(upstream.requests.length, 3)
})
