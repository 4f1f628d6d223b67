/** Pages of a transcript over REST, of a session that is loaded and of one on disk. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { archiveSession, SessionMissing } from '../../../features/sessions/index.ts'
import { type Item, readOps, readTranscript, readUserMessages, type TranscriptPage } from '../../../features/transcript/index.ts'
import transcript from '../../../features/transcript/pack.ts'
import { undoSession } from '../../../features/undo/index.ts'
import undo from '../../../features/undo/pack.ts'
import type { TestContextLike } from '../../../kernel/testing.ts'
import { type ScriptedLlm, scriptedLlm } from '../../helpers/scripted-llm.ts'
import { freshDir } from '../../helpers/temp.ts'
import { copyOfHome, type Started, type StartOptions, startAgent } from '../agent/start.ts'

const start = (t: TestContextLike, llm: ScriptedLlm, options: Pick<StartOptions, 'home' | 'session_id' | 'config'>) =>
  startAgent(t, llm, { packs: [transcript, undo], ...options })

type Query = { agent_id?: string; before_turn?: string; after_turn?: string; page_size?: number }
const pageOf = (server: Started, query: Query = {}) =>
  server.call(readTranscript, { params: { session_id: server.session_id }, query: { agent_id: 'main', ...query } })

/** What does not say whether the session is loaded. */
const lasting = ({ seq: _seq, ...page }: TranscriptPage) => page
const names = (items: readonly Item[]) =>
  items.map(item => (item.kind === 'turn' ? `${item.turnId} ${item.state}` : item.kind === 'marker' ? item.marker : item.taskId))

/** The same page by another server on the same home, which has not loaded the session. */
async function cold(t: TestContextLike, server: Started, home: string, query: Query = {}) {
  await server.kernel.stop()
  const other = await start(t, scriptedLlm(), { home, session_id: server.session_id })
  const { data } = await other.call(readOps, { params: { session_id: server.session_id }, query: { agent_id: 'main', since_seq: 0 } })
  assert.deepEqual([data.complete, data.batches], [false, []], 'a session that is not loaded has no batches to go on from')
  return await pageOf(other, query)
}

test('a turn with thinking and text is a page, and the same one from disk', async t => {
  const home = await freshDir()
  const server = await start(
    t,
    scriptedLlm([
      { type: 'thinking', text: 'Hmm, ' },
      { type: 'thinking', text: 'yes.' },
      { type: 'text', text: 'Hello ' },
      { type: 'text', text: 'you' },
      { type: 'usage', usage: { inputOther: 10, output: 5, inputCacheRead: 2, inputCacheCreation: 1 } },
      { type: 'finish', reason: 'completed', raw_reason: 'stop' }
    ]),
    { home }
  )
  await server.prompt('hi')
  await server.settled(1)

  const { data } = await pageOf(server)
  const [turn] = data.items
  assert.equal(turn?.kind, 'turn')
  if (turn?.kind !== 'turn') return
  assert.deepEqual(
    [turn.turnId, turn.ordinal, turn.state, turn.origin.kind, turn.prompt, turn.usage],
    ['t0', 0, 'completed', 'user', 'hi', { inputTokens: 11, outputTokens: 5, cachedTokens: 2 }]
  )
  assert.deepEqual(
    turn.steps.map(({ stepId, state, finishReason }) => [stepId, state, finishReason]),
    [['t0.1', 'completed', 'end_turn']]
  )
  assert.deepEqual(turn.steps[0]?.frames, [
    { kind: 'thinking', frameId: 't0.1.f1', text: 'Hmm, yes.' },
    { kind: 'text', frameId: 't0.1.f2', role: 'assistant', text: 'Hello you' }
  ])
  assert.deepEqual(
    data.prompts.map(({ status, content }) => [status, content]),
    [['completed', [{ type: 'text', text: 'hi' }]]]
  )
  assert.deepEqual(data.agents, [{ agentId: 'main', type: 'main' }])
  assert.deepEqual(lasting((await cold(t, server, home)).data), lasting(data))
})

test('pages go by turns, from the newest, in both directions', async t => {
  const home = await freshDir()
  const server = await start(t, scriptedLlm('ok'), { home })
  for (let n = 0; n < 5; n++) {
    await server.prompt(`prompt ${n}`)
    await server.settled(n + 1)
  }
  const check = async (server: Started) => {
    const shown = async (query: Query) => {
      const { items, has_more } = (await pageOf(server, query)).data
      return [items.map(item => (item.kind === 'turn' ? item.turnId : item.kind)), has_more]
    }
    assert.deepEqual(await shown({ page_size: 2 }), [['t3', 't4'], true])
    assert.deepEqual(await shown({ page_size: 2, before_turn: 't3' }), [['t1', 't2'], true])
    assert.deepEqual(await shown({ page_size: 2, before_turn: 't1' }), [['t0'], false])
    assert.deepEqual(await shown({ page_size: 2, after_turn: 't0' }), [['t1', 't2'], true])
    assert.deepEqual(await shown({ page_size: 2, after_turn: 't2' }), [['t3', 't4'], false])
    assert.deepEqual(await shown({ before_turn: 't99' }), [['t0', 't1', 't2', 't3', 't4'], false])
    assert.deepEqual(await shown({ before_turn: 'none' }), [[], false])
  }
  await check(server)
  await server.kernel.stop()
  await check(await start(t, scriptedLlm(), { home, session_id: server.session_id }))
})

test('what undo took back is gone and leaves a marker; turns behind it keep their numbers', async t => {
  const home = await freshDir()
  const server = await start(t, scriptedLlm('ok'), { home })
  for (let n = 0; n < 3; n++) {
    await server.prompt(`prompt ${n}`)
    await server.settled(n + 1)
  }
  assert.equal((await server.call(undoSession, { params: { session_id: server.session_id }, body: { count: 2 } })).code, 0)
  await server.prompt('again')
  await server.settled(4)
  const { data } = await pageOf(server)
  assert.deepEqual(names(data.items), ['t0 completed', 'undo', 't3 completed'])
  const page = await pageOf(server, { page_size: 1 })
  assert.deepEqual([names(page.data.items), page.data.has_more], [['t3 completed'], true])
  const inputs = await server.call(readUserMessages, { params: { session_id: server.session_id }, query: {} })
  assert.deepEqual(
    inputs.data.agents[0]?.messages.map(({ turn_id, prompt, state }) => [turn_id, prompt, state]),
    [
      ['t0', 'prompt 0', 'completed'],
      ['t3', 'again', 'completed']
    ]
  )
  assert.deepEqual(lasting((await cold(t, server, home)).data), lasting(data))
})

test('wrong questions are refused, agents that are not there have an empty page', async t => {
  const server = await start(t, scriptedLlm('ok'), { home: await freshDir() })
  for (const query of [
    { agent_id: '../main' },
    { agent_id: '..' },
    { page_size: 0 },
    { page_size: 101 },
    { before_turn: 't1', after_turn: 't0' }
  ]) {
    const { code, details } = await pageOf(server, query)
    assert.deepEqual([code, details !== undefined], [40001, true], JSON.stringify(query))
  }
  const missing = await server.call(readTranscript, { params: { session_id: 'session_none' }, query: { agent_id: 'main' } })
  assert.equal(missing.code, SessionMissing.code)
  const { data } = await pageOf(server, { agent_id: 'agent-7' })
  assert.deepEqual([data.items, data.has_more, data.agents.map(({ agentId }) => agentId)], [[], false, ['main']])
  assert.equal(server.kernel.features().find(({ name }) => name === 'transcript')?.state, 'Active')
  await server.call(archiveSession, { params: { session_id: server.session_id } })
  assert.equal((await pageOf(server)).code, 0)
})

test('a turn that a killed server left open is shown as the repair says, whoever looks first', async t => {
  const home = await freshDir()
  const server = await start(
    t,
    scriptedLlm([
      { type: 'text', text: 'so far' },
      { type: 'wait', until: new Promise<never>(() => undefined) }
    ]),
    {
      home
    }
  )
  await server.prompt('hi')
  await server.waitFor(({ type }) => type === 'assistant.delta')
  const copy = await copyOfHome(home)
  for (const take_over of [false, true]) {
    const config = { sessions: { take_over } }
    const next = await start(t, scriptedLlm(), { home: await copyOfHome(copy), session_id: server.session_id, config })
    const { data } = await pageOf(next)
    const [turn] = data.items
    assert.ok(turn?.kind === 'turn')
    assert.deepEqual([turn.state, turn.steps.map(({ state }) => state)], ['cancelled', ['interrupted']])
    await next.stop()
  }
})
