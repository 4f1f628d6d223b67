/** Servers that take one form of a conversation alone: the turn goes on in that form, and so does everything that is asked later. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compactSession } from '../../../features/compaction/contract.ts'
import compaction from '../../../features/compaction/pack.ts'
import llmChat from '../../../features/llm-chat/pack.ts'
import requestRepair from '../../../features/request-repair/pack.ts'
import type { TestContextLike } from '../../../kernel/testing.ts'
import type { Step } from '../../helpers/fake-upstream.ts'
import { conversation } from '../../helpers/llm-turn.ts'
import { chatWire } from '../../helpers/upstream-chat.ts'

interface Message {
  readonly role: string
  readonly content: unknown
  readonly reasoning_content?: string
  readonly tool_calls?: readonly { readonly id: string }[]
  readonly tool_call_id?: string
}
/** What a server says of a conversation that it does not take. */
type Judge = (messages: readonly Message[]) => Step | undefined

const refusal = (status: number, message: string, type = 'invalid_request_error'): Step => ({
  status,
  body: { object: 'error', message, type, param: null, code: '3230' }
})

/** After results the model speaks, and ids are nine letters and digits. */
const orderly: Judge = messages => {
  const at = messages.findIndex(({ role }, index) => role === 'user' && messages[index - 1]?.role === 'tool')
  if (at >= 0) return refusal(400, "Unexpected role 'user' after role 'tool'", 'invalid_request_message_order')
  const ids = messages.flatMap(({ tool_calls = [], tool_call_id }) => [
    ...tool_calls.map(({ id }) => id),
    ...(tool_call_id ? [tool_call_id] : [])
  ])
  const odd = ids.find(id => !/^[a-zA-Z0-9]{9}$/.test(id))
  return odd === undefined
    ? undefined
    : refusal(400, `Tool call id was ${odd} but must be a-z, A-Z, 0-9, with a length of 9.`, 'invalid_function_call')
}

/** A chat template that breaks off, on a server that calls this an error of its own. */
const alternating: Judge = messages => {
  const roles = messages.filter(({ role }) => role !== 'system').map(({ role }) => role)
  const words = 'Error: Jinja Exception: After the optional system message, conversation roles must alternate user and assistant roles'
  return roles.some((role, at) => role === 'user' && roles[at - 1] === 'user')
    ? { status: 500, body: { error: { code: 500, message: `While executing CallExpression at line 47: ${words}`, type: 'server_error' } } }
    : undefined
}

/** A model that thinks wants to see that it has thought, with each call or with each answer. */
const thoughtful =
  (words: string, every: boolean): Judge =>
  messages => {
    const lacks = messages.some(
      ({ role, reasoning_content = '', tool_calls = [] }) =>
        role === 'assistant' && reasoning_content === '' && (every || tool_calls.length > 0)
    )
    return lacks ? refusal(400, words) : undefined
  }

/** The first answers come from a server that takes everything, those from `from` on pass the judge. */
async function bench(t: TestContextLike, judge: Judge, from: number, answers: readonly (readonly Step[])[]) {
  let played = 0
  const { upstream, start, open, ask } = await conversation(t, {
    protocol: 'compat_chat',
    pack: llmChat,
    wire: chatWire,
    packs: [requestRepair, compaction],
    script: ({ messages }) => {
      const refused = played >= from ? judge(messages as Message[]) : undefined
      return refused ? [refused] : (answers[played++] ?? [{ text: 'done' }])
    }
  })
  const kernel = await start()
  const session_id = await open(kernel)
  const reasons = () =>
    kernel.events.filter(({ type }) => type === 'turn.ended').map(({ payload }) => (payload as { reason: string }).reason)
  const retried = () => kernel.events.some(({ type }) => type === 'turn.step.retrying')
  const compact = async () => {
    assert.equal((await kernel.call(compactSession, { params: { session_id } })).code, 0)
    const { type } = await kernel.waitFor(event => event.type === 'compaction.completed' || event.type === 'compaction.cancelled')
    return type
  }
  return { upstream, reasons, retried, compact, ask: (text: string) => ask(kernel, session_id, text) }
}

const call = (id: string): Step => ({ tool: { name: 'Echo', args: { x: 1 }, id } })
const broken: readonly Step[] = [{ status: 400, body: { error: { message: 'temperature: range 0..1' } } }]
const sent = ({ body }: { readonly body: Record<string, unknown> } | undefined = { body: {} }) => body.messages as Message[]

test('results that the user speaks after, and ids of another provider, go to a server that takes neither', async t => {
  const { upstream, reasons, ask } = await bench(t, orderly, 2, [[call('call_1'), call('call_2')], broken])

  await ask('a')
  await ask('b')
  await ask('c')

  assert.deepEqual(reasons(), ['failed', 'completed', 'completed'])
  assert.equal(upstream.requests.length, 5) // one was refused: its form is known from then on
  const messages = sent(upstream.requests.at(-1))
  assert.deepEqual(
    messages.map(({ role }) => role),
    ['system', 'user', 'assistant', 'tool', 'tool', 'assistant', 'user', 'assistant', 'user']
  )
  assert.deepEqual(
    messages.filter(({ role }) => role === 'tool').map(({ tool_call_id }) => tool_call_id),
    messages[2]?.tool_calls?.map(({ id }) => id)
  )
})

test('a summary of such a conversation goes out in that form, also as the first request', async t => {
  const { reasons, compact, ask } = await bench(t, orderly, 2, [[call('call_1')], broken])
  await ask('a')

  assert.equal(await compact(), 'compaction.completed')
  assert.deepEqual(reasons(), ['failed'])
})

test('a template that breaks off is no failure that passes: the conversation goes out in the strict form at once', async t => {
  const { upstream, reasons, retried, ask } = await bench(t, alternating, 0, [])

  await ask('a')
  await ask('b')

  assert.deepEqual([reasons(), retried(), upstream.requests.length], [['completed', 'completed'], false, 3])
})

const demands: readonly [words: string, every: boolean][] = [
  ['thinking is enabled but reasoning_content is missing in assistant tool call message at index 2', false],
  ['The `reasoning_content` in the thinking mode must be passed back to the API.', true],
  ['Missing `reasoning_content` field in the assistant message at message index 2.', true]
]
for (const [words, every] of demands) {
  test(`answers of a model that did not think go to one that does with the field for it (${words})`, async t => {
    const later: readonly Step[] = [{ thinking: 'hm' }, { text: 'two' }]
    const { upstream, reasons, ask } = await bench(t, thoughtful(words, every), 2, [[call('call_1')], [{ text: 'one' }], later])

    await ask('a')
    await ask('b')
    await ask('c')

    assert.deepEqual(reasons(), ['completed', 'completed', 'completed'])
    assert.equal(upstream.requests.length, 5)
    const thoughts = sent(upstream.requests.at(-1)).flatMap(({ role, reasoning_content }) =>
      role === 'assistant' ? [reasoning_content] : []
    )
    assert.deepEqual(thoughts, [' ', ' ', 'hm'])
  })
}

const refusals = [
  "'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : property 'reasoning_content' is unsupported)]",
  "messages.2.assistant.reasoning_content: property 'messages.2.assistant.reasoning_content' is unsupported",
  "Extra inputs are not permitted, field: 'messages[2].reasoning_content', value: 'hm'",
  "property 'reasoning_content' is unsupported"
]
for (const words of refusals) {
  test(`reasoning goes back to no server that does not know its field (${words})`, async t => {
    const knowsNone: Judge = messages => (messages.some(message => 'reasoning_content' in message) ? refusal(400, words) : undefined)
    const { upstream, reasons, ask } = await bench(t, knowsNone, 0, [
      [{ thinking: 'hm' }, call('call_1')],
      [{ thinking: 'so' }, { text: 'one' }]
    ])

    await ask('a')
    await ask('b')

    assert.deepEqual([reasons(), upstream.requests.length], [['completed', 'completed'], 4])
  })
}
