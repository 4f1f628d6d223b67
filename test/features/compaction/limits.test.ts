import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import config from '../../../features/config/pack.ts'
import { listMessages } from '../../../features/messages/index.ts'
import { readSnapshot, readStatus } from '../../../features/session-views/index.ts'
import { toolCalls } from '../../helpers/scripted-llm.ts'
import { freshDir } from '../../helpers/temp.ts'
import { copyOfHome, echoRunner } from '../agent/start.ts'
import { counted, startCompacting, windowed } from './start.ts'

const never = new Promise<never>(() => undefined)

/** A home with this configuration. */
async function homeWith(toml: string): Promise<string> {
  const home = await freshDir()
  await writeFile(join(home, 'config.toml'), toml)
  return home
}

/** Whether a turn behind an answer of so many tokens begins with a compaction. */
async function compactsAt(t: Parameters<typeof startCompacting>[0], toml: string, tokens: number): Promise<boolean> {
  const agent = await startCompacting(t, windowed(100_000, counted('answer', tokens)), { home: await homeWith(toml), packs: [config] })
  await agent.prompt('one')
  await agent.settled(1)
  await agent.prompt('two')
  await agent.settled(2)
  return agent.told().length > 0
}

test('the trigger ratio and the reserve of the configuration say when a context is full', async t => {
  const ratio = '[loop_control]\nreserved_context_size = 0\ncompaction_trigger_ratio = 0.5\n'
  assert.equal(await compactsAt(t, ratio, 49_000), false)
  assert.equal(await compactsAt(t, ratio, 50_000), true)
  const reserve = '[loop_control]\nreserved_context_size = 30000\n'
  assert.equal(await compactsAt(t, reserve, 69_000), false)
  assert.equal(await compactsAt(t, reserve, 70_000), true)
  assert.equal(await compactsAt(t, '', 49_000), false)
  assert.equal(await compactsAt(t, '', 50_000), true)
})

test('the size of a context is told as the configuration wants it: measured, estimated, or both', async t => {
  const sizes: Record<string, number> = {}
  for (const strategy of ['measured+estimated', 'measured', 'estimated']) {
    const home = await homeWith(`[token_counting]\nstrategy = "${strategy}"\n`)
    const agent = await startCompacting(t, windowed(100_000, counted('x'.repeat(4000), 3000)), { home, packs: [config] })
    const params = { session_id: agent.session_id }
    await agent.prompt('one')
    await agent.settled(1)
    const { context_tokens, max_context_tokens, context_usage } = (await agent.call(readStatus, { params })).data
    assert.deepEqual([max_context_tokens, context_usage], [100_000, context_tokens / 100_000])
    const told = agent.events.filter(({ type }) => type === 'agent.status.updated').map(({ payload }) => payload as Record<string, unknown>)
    assert.equal(told.findLast(payload => payload.contextTokens !== undefined)?.contextTokens, context_tokens)
    assert.equal((await agent.call(readSnapshot, { params })).data.session.usage.context_tokens, context_tokens)
    sizes[strategy] = context_tokens
  }
  assert.deepEqual([sizes['measured+estimated'], sizes.measured], [3000, 3000])
  assert.ok(sizes.estimated! > 1000 && sizes.estimated! < 1100, `${sizes.estimated}`)
})

test('a killed server: a turn that waited for a compaction ends after it, each told once', async t => {
  const agent = await startCompacting(t, windowed(10_000, counted('answer', 9000), [{ type: 'wait', until: never }]))
  const { session_id } = agent
  await agent.prompt('first')
  await agent.settled(1)
  await agent.prompt('second')
  await agent.waitFor(({ type }) => type === 'compaction.blocked')
  const home = await copyOfHome(agent.home)

  const again = await startCompacting(t, windowed(10_000, counted('answer', 2000)), { home, session_id })
  await again.call(listMessages, { params: { session_id } })
  await again.settled(1)

  const told = again.events.map(({ type }) => type).filter(type => /^compaction|^turn\.|^prompt\./.test(type))
  assert.deepEqual(told, ['compaction.cancelled', 'turn.ended', 'prompt.aborted'])
  await again.prompt('third')
  await again.settled(2)
  assert.equal(again.told().at(-1)?.[0], 'compaction.completed')
})

test('in a small window the reserve does not ask for a compaction before every step', async t => {
  let step = 0
  // A provider that counts 300 tokens for every message, and the rest as it is.
  const llm = windowed(52_000, ({ messages }) =>
    ++step > 60
      ? 'done'
      : [
          ...toolCalls({ id: `c${step}`, name: 'Echo' }).slice(0, 2),
          ...counted('', 700 + 300 * messages.length).slice(1, 2),
          { type: 'finish', reason: 'tool_calls' }
        ]
  )
  const agent = await startCompacting(t, llm, { packs: [echoRunner()] })
  await agent.prompt('work')
  await agent.settled(1)
  const count = agent.told().filter(([type]) => type === 'compaction.completed').length
  assert.ok(count >= 2 && count <= 8, `${count}`)
})
