/** What a session has used and cost, in its snapshot. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Llm, type ModelPrice, NoProvider } from '../../../features/llm/index.ts'
import { readSnapshot, readStatus } from '../../../features/session-views/index.ts'
import { readSession } from '../../../features/sessions/index.ts'
import { AppError } from '../../../kernel/index.ts'
import { stub, type TestContextLike, type TestKernel } from '../../../kernel/testing.ts'
import { latch } from '../../helpers/latch.ts'
import { type Reply, scriptedLlm, toolCalls } from '../../helpers/scripted-llm.ts'
import { copyOfHome, runner, startAgent } from '../agent/start.ts'

function start(t: TestContextLike, prices: Readonly<Record<string, ModelPrice>>, reply: Reply = 'done') {
  const llm = scriptedLlm(reply)
  return startAgent(t, { ...llm, pack: stub(Llm, { ...llm.llm, price: alias => prices[alias] }) })
}

test('the snapshot sums the cost over the models of the session; models without a price are left out', async t => {
  const agent = await start(t, { test: { input: 1, output: 10 }, other: { input: 100, output: 1000 } })
  const params = { session_id: agent.session_id }
  const cost = async () => (await agent.call(readSnapshot, { params })).data.session.usage.total_cost_usd
  assert.equal(await cost(), undefined)

  await agent.prompt('go')
  await agent.settled(1)
  assert.equal(await cost(), 0.00006) // 10 in, 5 out

  await agent.prompt('go', { model: 'other' })
  await agent.settled(2)
  await agent.prompt('go', { model: 'unpriced' })
  await agent.settled(3)
  assert.equal(await cost(), 0.00606)
  assert.equal((await agent.call(readSession, { params })).data.usage.total_cost_usd, 0)
})

test('the snapshot counts the turns of the session; other answers say zero', async t => {
  const agent = await start(t, {})
  const params = { session_id: agent.session_id }
  const turns = async () => (await agent.call(readSnapshot, { params })).data.session.usage.turn_count
  assert.equal(await turns(), 0)

  for (const n of [1, 2]) {
    await agent.prompt('go')
    await agent.settled(n)
    assert.equal(await turns(), n)
  }
  assert.equal((await agent.call(readSession, { params })).data.usage.turn_count, 0)
})

test('what a request has spent counts while its calls run, once, also when the server dies in the middle', async t => {
  const run = latch()
  const slow = runner(async ({ calls, report }) => {
    for (const call of calls) await report({ type: 'started', call, args: {} })
    await run.opened
    const result = { output: 'ran' }
    for (const call of calls) await report({ type: 'finished', call, result })
    return calls.map(call => ({ call, result }))
  })
  const agent = await startAgent(t, scriptedLlm(toolCalls({ id: 'a', name: 'Echo' }), 'done'), { packs: [slow] })
  const { session_id } = agent
  const used = async ({ call }: Pick<TestKernel, 'call'>) => {
    const { input_tokens, output_tokens, context_tokens } = (await call(readSnapshot, { params: { session_id } })).data.session.usage
    return [input_tokens, output_tokens, context_tokens]
  }
  await agent.prompt('go')
  await agent.waitFor(event => event.type === 'tool.call.started')
  assert.deepEqual(await used(agent), [10, 5, 15])
  const told = agent.events.flatMap(({ type, payload }) => (type === 'agent.status.updated' ? [payload as { contextTokens?: number }] : []))
  assert.equal(told.findLast(status => status.contextTokens !== undefined)?.contextTokens, 15)
  const home = await copyOfHome(agent.home)

  run.open()
  await agent.settled(1)
  assert.deepEqual((await used(agent)).slice(0, 2), [20, 10])
  const again = await startAgent(t, scriptedLlm(), { home, session_id })
  assert.deepEqual((await used(again)).slice(0, 2), [10, 5])
})

test('without a known price there is no cost', async t => {
  const agent = await start(t, {})
  await agent.prompt('go')
  await agent.settled(1)
  const { usage } = (await agent.call(readSnapshot, { params: { session_id: agent.session_id } })).data.session
  assert.deepEqual([usage.input_tokens, 'total_cost_usd' in usage], [10, false])
})

test('each kind of token is counted for itself; more than the window holds is a window that is full', async t => {
  const usage = { inputOther: 150_000, output: 5, inputCacheRead: 3, inputCacheCreation: 2 }
  const agent = await start(t, {}, [
    { type: 'text', text: 'done' },
    { type: 'usage', usage },
    { type: 'finish', reason: 'completed', raw_reason: 'stop' }
  ])
  await agent.prompt('go')
  await agent.settled(1)
  const params = { session_id: agent.session_id }
  const { usage: shown } = (await agent.call(readSnapshot, { params })).data.session
  const { input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens } = shown
  assert.deepEqual([input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens], [150_000, 5, 3, 2])
  const { context_tokens, max_context_tokens, context_usage } = (await agent.call(readStatus, { params })).data
  assert.deepEqual([context_tokens > 150_000, max_context_tokens, context_usage], [true, 100_000, 1])
})

test('before its first prompt a session has the window of the default model, empty; without a model it has none', async t => {
  const { llm } = scriptedLlm('done')
  let model = true
  const resolve = (alias?: string) => {
    if (model) return llm.resolve(alias)
    throw new AppError(NoProvider)
  }
  const agent = await startAgent(t, { ...scriptedLlm('done'), pack: stub(Llm, { ...llm, resolve }) })
  const params = { session_id: agent.session_id }
  const window = async () => {
    const { max_context_tokens, context_usage } = (await agent.call(readStatus, { params })).data
    return [max_context_tokens, context_usage, (await agent.call(readSnapshot, { params })).data.session.usage.context_limit]
  }
  assert.deepEqual(await window(), [100_000, 0, 100_000])
  model = false
  assert.deepEqual(await window(), [undefined, undefined, undefined])
})
