import assert from 'node:assert/strict'
import { test } from 'node:test'
import { listMessages, readMessage } from '../../../features/messages/index.ts'
import { messageObject } from '../../../features/messages/view.ts'
import { readSnapshot } from '../../../features/session-views/index.ts'
import type { QueryOf } from '../../../kernel/index.ts'
import { scriptedLlm, toolCalls } from '../../helpers/scripted-llm.ts'
import { echoRunner, startAgent } from '../agent/start.ts'

const at = '2026-01-01T00:00:00.000Z'

test('pages are newest first; an unknown cursor counts as none; the role filter comes after slicing', async t => {
  const agent = await startAgent(t, scriptedLlm('one', 'two'))
  const params = { session_id: agent.session_id }
  await agent.prompt('go')
  await agent.prompt('on')
  await agent.settled(2)
  const list = async (query: QueryOf<typeof listMessages>) => (await agent.call(listMessages, { params, query })).data
  const all = (await list({})).items
  const [d, c, b, a] = all.filter(item => item.role !== 'user' || item.prompt_id).map(item => item.id)
  assert.equal(all.length, 5)
  const ids = async (query: QueryOf<typeof listMessages>) => {
    const { items, has_more } = await list(query)
    return [items.map(item => item.id), has_more]
  }
  assert.deepEqual(await ids({ page_size: 2 }), [[d, c], true])
  assert.deepEqual(await ids({ page_size: 5 }), [all.map(item => item.id), false])
  assert.deepEqual(
    (await ids({ before_id: c ?? '' }))[0],
    all.slice(2).map(item => item.id)
  )
  assert.deepEqual(await ids({ after_id: a ?? '', page_size: 2 }), [[d, c], true])
  assert.deepEqual(await ids({ after_id: c ?? '' }), [[d], false])
  assert.deepEqual(await ids({ before_id: 'zzz', page_size: 1 }), [[d], true])
  assert.deepEqual(await ids({ page_size: 2, role: 'user' }), [[c], true])
  assert.deepEqual(await ids({ before_id: a ?? '' }), [[], false])
  assert.ok(b)
  const times = all.map(item => Date.parse(item.created_at))
  assert.deepEqual(
    times,
    [...new Set(times)].sort((x, y) => y - x),
    'times rise strictly even when messages share an instant'
  )
})

test('a thinking part that is a signature alone is not shown', () => {
  const content = [
    { type: 'thinking', thinking: 'y', signature: 'one' },
    { type: 'thinking', thinking: '', signature: 'two' }
  ]
  const shown = messageObject({ id: 'm', role: 'assistant', created_at: at, content }, 's')
  assert.deepEqual(shown.content, [content[0]])
})

test('an assistant shows thinking, text and calls in this order; arguments are parsed where they parse', () => {
  const shown = messageObject(
    {
      id: 'm',
      role: 'assistant',
      created_at: at,
      content: [
        { type: 'text', text: 'x' },
        { type: 'thinking', thinking: 'y' }
      ],
      tool_calls: [
        { id: 'c', name: 'Read', arguments: '{"path":"a"}' },
        { id: 'd', name: 'Read', arguments: '{half' }
      ]
    },
    's'
  )
  assert.deepEqual(shown.content, [
    { type: 'thinking', thinking: 'y' },
    { type: 'text', text: 'x' },
    { type: 'tool_use', tool_call_id: 'c', tool_name: 'Read', input: { path: 'a' } },
    { type: 'tool_use', tool_call_id: 'd', tool_name: 'Read', input: '{half' }
  ])
})

test('tool results are messages of their own, single messages can be read, the snapshot is oldest first', async t => {
  const llm = scriptedLlm(toolCalls({ id: 'a', name: 'Echo' }), 'done')
  const agent = await startAgent(t, llm, { packs: [echoRunner()] })
  const params = { session_id: agent.session_id }
  assert.deepEqual((await agent.call(listMessages, { params })).data, { items: [], has_more: false })
  const empty = (await agent.call(readSnapshot, { params })).data
  assert.deepEqual([empty.messages.items, empty.in_flight_turn, empty.pending_questions], [[], null, []])

  await agent.prompt('go')
  await agent.settled(1)

  const { items } = (await agent.call(listMessages, { params })).data
  assert.deepEqual(items[1]?.content, [{ type: 'tool_result', tool_call_id: 'a', output: 'Echo ran' }])
  const one = await agent.call(readMessage, { params: { ...params, message_id: items[1]?.id ?? '' } })
  assert.deepEqual(one.data, items[1])
  assert.equal((await agent.call(readMessage, { params: { ...params, message_id: 'nope' } })).code, 40403)
  assert.equal((await agent.call(listMessages, { params, query: { before_id: 'a', after_id: 'b' } })).code, 40001)
  const snapshot = (await agent.call(readSnapshot, { params })).data
  assert.deepEqual(
    snapshot.messages.items.map(item => item.id),
    items.map(item => item.id).reverse()
  )
})
