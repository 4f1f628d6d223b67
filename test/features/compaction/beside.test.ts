import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Agent, TurnInfo } from '../../../features/agent/index.ts'
import { type AutoPorts, ContextMemory } from '../../../features/compaction/auto.ts'
import config from '../../../features/config/pack.ts'
import type { History } from '../../../features/history/index.ts'
import type { LlmRequest } from '../../../features/llm/index.ts'
import { abortSession } from '../../../features/prompts/index.ts'
import { archiveSession } from '../../../features/sessions/index.ts'
import { undoSession } from '../../../features/undo/index.ts'
import undo from '../../../features/undo/pack.ts'
import type { TestContextLike } from '../../../kernel/testing.ts'
import { latch } from '../../helpers/latch.ts'
import { failure, type Reply, scriptedLlm, testModel, toolCalls } from '../../helpers/scripted-llm.ts'
import { freshDir } from '../../helpers/temp.ts'
import { copyOfHome, echoRunner } from '../agent/start.ts'
import { type Compacting, counted, isSummaryRequest, startCompacting, windowed } from './start.ts'

const words = ({ messages }: LlmRequest) => JSON.stringify(messages)
const types = (agent: Compacting) => agent.told().map(([type]) => type)
/** A call behind which the provider has counted so many tokens. */
const call = (id: string, tokens: number) => [
  ...toolCalls({ id, name: 'Echo' }).slice(0, 2),
  ...counted('', tokens).slice(1, 2),
  { type: 'finish', reason: 'tool_calls' } as const
]

/**
 * Half of a window of 100000 tokens is used after the first prompt; the second begins a compaction. `summary`: waits until it is let go. `undone`: a
 * prompt that is taken back before.
 */
async function start(t: TestContextLike, second: readonly Reply[], summary: Reply = counted('the summary', 10), undone?: string) {
  const home = await freshDir()
  await writeFile(join(home, 'config.toml'), '[loop_control]\nreserved_context_size = 0\ncompaction_trigger_ratio = 0.5\n')
  const gate = latch()
  const before = undone === undefined ? [] : [counted('taken back', 500)]
  const replies: Reply[] = [...before, counted('early answer', 60_000), ...second]
  const next = () => (replies.length > 1 ? replies.shift() : replies[0])
  const given = [{ type: 'wait', until: gate.opened } as const, ...(summary as [])]
  const llm = windowed(100_000, next as Reply, given)
  const packs = [config, undo, echoRunner()]
  const agent = await startCompacting(t, llm, { home, packs })
  const params = { session_id: agent.session_id }
  if (undone !== undefined) {
    await agent.prompt(undone)
    await agent.settled(1)
    assert.equal((await agent.call(undoSession, { params })).code, 0)
  }
  await agent.prompt('first')
  await agent.settled(1 + before.length)
  await agent.prompt('second')
  const until = (type: string) => agent.waitFor(event => event.type === type)
  return { agent, llm, letGo: () => gate.open(), until, params, packs }
}

test('a turn whose context the configuration wants smaller early goes on: what it says meanwhile stays behind the summary, after a restart, too', async t => {
  const { agent, llm, letGo, until, packs } = await start(t, [counted('late answer', 61_000)])
  await agent.settled(2)
  assert.deepEqual(agent.told(), [['compaction.started', { trigger: 'auto' }]])
  letGo()
  await until('compaction.completed')
  const { result } = agent.told().at(-1)![1] as { result: Record<string, number> }
  assert.equal(result.keptUserMessageCount, 2)
  assert.ok(result.tokensAfter! > 0 && result.tokensAfter! < 1000, `${result.tokensAfter}`)

  await agent.prompt('third')
  await agent.settled(3)
  const view = words(llm.requests.at(-1)!)
  assert.match(view, /first.*second.*the summary.*late answer.*third/)
  assert.doesNotMatch(view, /early answer/)

  const again = windowed(100_000, counted('ok', 100))
  const reopened = await startCompacting(t, again, { home: await copyOfHome(agent.home), session_id: agent.session_id, packs })
  await reopened.prompt('fourth')
  await reopened.settled(1)
  const read = words(again.requests.at(-1)!)
  assert.match(read, /first.*second.*the summary.*late answer.*third.*fourth/)
  assert.doesNotMatch(read, /early answer/)
})

test('where a turn was taken back before, nothing that the summary knows stays behind it, after a restart neither', async t => {
  const { agent, llm, letGo, until, packs } = await start(t, [counted('late answer', 61_000)], undefined, 'mistake')
  await agent.settled(3)
  letGo()
  await until('compaction.completed')
  await agent.prompt('third')
  await agent.settled(4)
  const again = windowed(100_000, counted('ok', 100))
  const reopened = await startCompacting(t, again, { home: await copyOfHome(agent.home), session_id: agent.session_id, packs })
  await reopened.prompt('fourth')
  await reopened.settled(1)
  for (const { requests } of [llm, again]) {
    const view = words(requests.at(-1)!)
    assert.match(view, /first.*second.*the summary.*late answer.*third/)
    assert.doesNotMatch(view, /early answer|mistake/)
    assert.equal(view.split('second').length, 2)
  }
})

test('a step waits for a compaction that goes on beside its turn when the context is full, and knows the calls that were made meanwhile', async t => {
  const { agent, llm, letGo, until } = await start(t, [call('c1', 61_000), call('c2', 90_000), counted('done', 2000)])
  await until('compaction.blocked')
  assert.ok(!llm.requests.some(request => words(request).includes('the summary')))
  letGo()
  await agent.settled(2)

  assert.deepEqual(
    agent.told().map(([type, { turnId }]) => [type, turnId]),
    [
      ['compaction.started', undefined],
      ['compaction.blocked', 1],
      ['compaction.completed', undefined]
    ]
  )
  const view = words(llm.requests.at(-1)!)
  assert.match(view, /first.*second.*the summary.*"c1".*"c2"/)
  assert.doesNotMatch(view, /early answer|interrupted/)
  const results = llm.requests.at(-1)!.messages.filter(({ role }) => role === 'tool')
  assert.equal(results.length, 2)
  assert.equal(llm.requests.filter(isSummaryRequest).length, 1)
})

test('a compaction beside a turn that fails is no failure of the turn, which tries no other before its context is full', async t => {
  const refused = failure({ code: 'provider.api_error', message: 'no', retryable: false, status: 400 })
  const hold = latch()
  const slow = [{ type: 'wait', until: hold.opened } as const, ...call('c1', 61_000)]
  const { agent, llm, letGo, until } = await start(t, [slow, call('c2', 62_000), counted('done', 90_000)], refused)
  letGo()
  await until('compaction.cancelled')
  hold.open()
  await agent.settled(2)

  assert.deepEqual(types(agent), ['compaction.started', 'compaction.cancelled'])
  assert.ok(!agent.events.some(({ type }) => type === 'error'))
  assert.equal(llm.requests.filter(isSummaryRequest).length, 1)
})

test('an abort of a turn that waits for a compaction beside it ends both, and the next turn begins another one', async t => {
  const { agent, letGo, until, params } = await start(t, [call('c1', 90_000), counted('done', 2000)])
  await until('compaction.blocked')
  assert.equal((await agent.call(abortSession, { params })).code, 0)
  await agent.settled(2)
  assert.deepEqual(types(agent), ['compaction.started', 'compaction.blocked', 'compaction.cancelled'])

  letGo()
  await agent.prompt('third')
  await agent.settled(3)
  assert.deepEqual(types(agent).slice(3), ['compaction.started', 'compaction.blocked', 'compaction.completed'])
})

test('a compaction that the user asks for ends the one that goes on beside turns', async t => {
  const { agent, letGo, until } = await start(t, [counted('late answer', 61_000)])
  await agent.settled(2)
  assert.equal((await agent.compact()).code, 0)
  letGo()
  await until('compaction.completed')
  assert.deepEqual(types(agent), ['compaction.started', 'compaction.cancelled', 'compaction.started', 'compaction.completed'])
})

test('archiving the session ends a compaction that goes on beside its turns', async t => {
  const { agent, params } = await start(t, [counted('late answer', 61_000)])
  await agent.settled(2)
  assert.equal((await agent.call(archiveSession, { params })).code, 0)
  const told = agent.events.map(({ type }) => type).filter(type => /^compaction|session.archived/.test(type))
  assert.deepEqual(told, ['compaction.started', 'compaction.cancelled', 'event.session.archived'])
})

test('a summary of turns that were taken back meanwhile comes to nothing', async t => {
  const { agent, llm, letGo, until, params } = await start(t, [counted('late answer', 61_000), counted('done', 2000)])
  await agent.settled(2)
  assert.equal((await agent.call(undoSession, { params, body: { count: 2 } })).code, 0)
  letGo()
  await until('compaction.cancelled')

  await agent.prompt('third')
  await agent.settled(3)
  assert.doesNotMatch(words(llm.requests.at(-1)!), /first|second|the summary/)
})

test('a compaction that was about to begin when its pack left is over: nobody would put its summary in place', async () => {
  const [asked, answer] = [latch(), latch()]
  const records: string[] = []
  const history = {
    messages: { next: () => 1 },
    compactions: () => 0,
    contextMessages: async () => [],
    append: async (...all: readonly { readonly type: string }[]) => void records.push(...all.map(({ type }) => type))
  }
  const agent = {
    host: { session: { id: 's' } },
    async draft() {
      asked.open()
      await answer.opened
      return { model: testModel, messages: [] }
    }
  }
  const { llm } = scriptedLlm('the summary')
  const ports = { llm, retryBaseMs: 1, log: { error: assert.fail } } as unknown as AutoPorts
  const memory = new ContextMemory(agent as unknown as Agent, history as unknown as History, { value: { running: false } })
  const beginning = memory.begin(ports, { turn_id: 0 } as TurnInfo)
  await asked.opened
  await memory.close()
  answer.open()
  await beginning
  await memory.beside?.summarised
  assert.deepEqual(records, ['compaction.begin', 'compaction.cancel'])
})
