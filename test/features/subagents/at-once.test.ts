/** Agents that one response asks for together: they count each other. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import interactions from '../../../features/interactions/pack.ts'
import permissions from '../../../features/permissions/pack.ts'
import { abortPrompt } from '../../../features/prompts/index.ts'
import subagents from '../../../features/subagents/pack.ts'
import { runSwarm, usualPace } from '../../../features/subagents/schedule.ts'
import tasks from '../../../features/tasks/pack.ts'
import tools from '../../../features/tools/pack.ts'
import type { TestContextLike } from '../../../kernel/testing.ts'
import { latch } from '../../helpers/latch.ts'
import { scriptedLlm, toolCalls } from '../../helpers/scripted-llm.ts'
import { historyOnDisk, startAgent } from '../agent/start.ts'

const long = 'an answer of some length. '.repeat(20)
const call = (id: string, args: Record<string, unknown>) => ({ id, name: 'Agent', args: { description: 'a side task', ...args } })

/**
 * The main agent answers its prompts with these calls of Agent, one response after the other; agents that it starts answer when a call of the
 * response was refused, or all were begun.
 */
async function start(t: TestContextLike, config: Record<string, unknown>, ...responses: readonly (readonly ReturnType<typeof call>[])[]) {
  let turn = 0
  let asked = 0
  let begun = 0
  let gate = latch()
  const llm = scriptedLlm(({ messages }) => {
    const said = JSON.stringify(messages.slice(messages.findLastIndex(({ role }) => role === 'assistant') + 1))
    if (said.includes('start them')) {
      gate = latch()
      begun = 0
      return toolCalls(...(responses[turn++] ?? []))
    }
    if (said.includes('task ') && ++begun === responses[turn - 1]?.length) gate.open()
    return said.includes('task ')
      ? [
          { type: 'wait', until: gate.opened },
          { type: 'text', text: long },
          { type: 'finish', reason: 'completed' }
        ]
      : long
  })
  const scene = await startAgent(t, llm, { packs: [tools, interactions, permissions, tasks, subagents], config: { subagents: config } })
  const refused = (payload: unknown) => /at work/.test(String((payload as { output?: unknown }).output))
  void scene
    .waitFor(({ type, payload }) => type === 'tool.result' && refused(payload))
    .then(
      () => gate.open(),
      () => undefined
    )
  return {
    /** What the calls of the next response answer. */
    async outputs(): Promise<string[]> {
      const from = scene.events.length
      const prompts = ++asked
      await scene.prompt('start them')
      let ended = 0
      await scene.waitFor(event => event.type === 'turn.ended' && event.subject === 'main' && ++ended === prompts)
      return scene.events
        .slice(from)
        .flatMap(({ type, payload }) => (type === 'tool.result' ? [String((payload as { output: unknown }).output)] : []))
    }
  }
}

test('agents that are started in one response are not more than may be at work', async t => {
  const { outputs } = await start(
    t,
    { max_running: 2 },
    ['a', 'b', 'c'].map(id => call(id, { prompt: `task ${id}` }))
  )
  const told = await outputs()
  assert.deepEqual(told.map(text => /2 agents are at work/.test(text)).sort(), [false, false, true], told.join('\n'))
})

test('an agent that is resumed twice in one response is resumed once', { timeout: 20_000 }, async t => {
  const again = ['a', 'b'].map(id => call(id, { prompt: `task ${id}`, resume: 'agent-0' }))
  const { outputs } = await start(t, {}, [call('first', { prompt: 'task first' })], again)
  assert.match((await outputs())[0] ?? '', /status: completed/)
  const told = await outputs()
  assert.deepEqual(told.map(text => /agent-0 is at work/.test(text)).sort(), [false, true], told.join('\n'))
})

/** The main agent calls Agent once with each prompt, on a disk that refuses one record of this type. */
async function refusing(t: TestContextLike, type: string, ...calls: readonly ReturnType<typeof call>[]) {
  let refused = false
  const history = historyOnDisk(records => {
    if (refused || !records.some(record => record.type === type)) return
    refused = true
    throw new Error('no space')
  })
  let turn = 0
  const llm = scriptedLlm(({ messages }) => {
    const said = JSON.stringify(messages.slice(messages.findLastIndex(({ role }) => role === 'assistant') + 1))
    const next = said.includes('start one') ? calls[turn++] : undefined
    return next ? toolCalls(next) : long
  })
  const scene = await startAgent(t, llm, { packs: [tools, interactions, permissions, tasks, subagents], history })
  let prompts = 0
  return async () => {
    const from = scene.events.length
    await scene.prompt('start one')
    prompts++
    let ended = 0
    await scene.waitFor(event => event.type === 'turn.ended' && event.subject === 'main' && ++ended === prompts)
    const results = scene.events.slice(from).filter(({ type }) => type === 'tool.result')
    return results.map(({ payload }) => String((payload as { output: unknown }).output)).join('\n')
  }
}

test('an agent whose begin in the background the disk refuses does not hold up its call', { timeout: 20_000 }, async t => {
  const next = await refusing(t, 'task.started', call('a', { prompt: 'task a', run_in_background: true }), call('b', { prompt: 'task b' }))

  assert.match(await next(), /no space/)
  assert.match(await next(), /status: completed/)
})

test('an agent whose begin the disk refuses is not at work: it can be taken up again', { timeout: 20_000 }, async t => {
  const next = await refusing(t, 'subagent.spawned', call('a', { prompt: 'task a' }), call('b', { prompt: 'task b', resume: 'agent-0' }))

  assert.match(await next(), /no space/)
  assert.match(await next(), /status: completed/)
})

test('an agent whose call is aborted while it is made does not begin in the background', { timeout: 20_000 }, async t => {
  const [making, made] = [latch(), latch()]
  let turn = 0
  const history = historyOnDisk(async records => {
    if (turn !== 1 || !records.some(({ type }) => type === 'agent.settings')) return
    making.open()
    await made.opened
  })
  const llm = scriptedLlm(({ messages }) => {
    const said = JSON.stringify(messages.slice(messages.findLastIndex(({ role }) => role === 'assistant') + 1))
    if (!said.includes('start one')) return long
    return ++turn === 1 ? toolCalls(call('a', { prompt: 'task a', run_in_background: true })) : toolCalls(call('b', { prompt: 'task b' }))
  })
  const scene = await startAgent(t, llm, { packs: [tools, interactions, permissions, tasks, subagents], history })
  const { prompt_id } = await scene.prompt('start one')
  await making.opened
  const aborted = scene.call(abortPrompt, { params: { session_id: scene.session_id, prompt_id } })
  const main = (count: number) => {
    let ended = 0
    return scene.waitFor(({ type, subject }) => type === 'turn.ended' && subject === 'main' && ++ended === count)
  }
  await main(1)
  made.open()
  await aborted
  await scene.prompt('start one')
  await main(2)

  const begun = scene.events.filter(({ type }) => type === 'subagent.spawned').map(({ payload }) => JSON.stringify(payload))
  assert.equal(begun.length, 1, begun.join('\n'))
  assert.match(begun[0] ?? '', /"b"/)
})

test('the agents of a swarm start one after the other also when the clock is set back meanwhile', { timeout: 10_000 }, async t => {
  const begun: number[] = []
  const clock = { now: Date.now() }
  t.mock.method(Date, 'now', () => clock.now)
  const members = [0, 1, 2].map(at => ({
    async work() {
      begun.push(at)
      clock.now -= 3_600_000
      return 'over' as const
    }
  }))
  const keep = setTimeout(() => undefined, 60_000) // the pauses of a swarm keep no process alive
  t.after(() => clearTimeout(keep))
  await runSwarm(members, { ...usualPace, first: 1, spacing_ms: 5 }, new AbortController().signal)
  assert.deepEqual(begun, [0, 1, 2])
})
