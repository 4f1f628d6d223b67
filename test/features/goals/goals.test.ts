import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type GoalSnapshot, readGoal } from '../../../features/goals/index.ts'
import goals from '../../../features/goals/pack.ts'
import { resolveApproval } from '../../../features/interactions/index.ts'
import interactions from '../../../features/interactions/pack.ts'
import permissions from '../../../features/permissions/pack.ts'
import { abortPrompt } from '../../../features/prompts/index.ts'
import { updateProfile } from '../../../features/sessions/index.ts'
import tools from '../../../features/tools/pack.ts'
import type { TestContextLike } from '../../../kernel/testing.ts'
import { latch } from '../../helpers/latch.ts'
import { type ScriptedLlm, scriptedLlm, toolCalls } from '../../helpers/scripted-llm.ts'
import { copyOfHome, historyOnDisk, type Started, type StartOptions, startAgent } from '../agent/start.ts'

const packs = [tools, interactions, permissions, goals]

interface Scene extends Started {
  set(agent_config: Record<string, unknown>): Promise<{ code: number; msg: string }>
  goal(): Promise<GoalSnapshot | null>
  of(type: string): Record<string, unknown>[]
}

async function start(t: TestContextLike, llm: ScriptedLlm, options: StartOptions = {}): Promise<Scene> {
  const agent = await startAgent(t, llm, { packs, ...options })
  const params = { session_id: agent.session_id }
  return {
    ...agent,
    set: agent_config => agent.call(updateProfile, { params, body: { agent_config } }),
    goal: async () => (await agent.call(readGoal, { params })).data,
    of: type => agent.events.filter(event => event.type === type).map(event => event.payload as Record<string, unknown>)
  }
}

const call = (name: string, args: unknown = {}) => toolCalls({ id: `call_${name}`, name, args })
const turnsBy = (scene: Scene) => scene.of('turn.started').map(({ origin }) => (origin as { kind: string; name?: string }).name ?? 'user')
/** Sends the model's answer only when it is opened. */
const held = (until: Promise<unknown>) => [
  { type: 'wait', until } as const,
  { type: 'text', text: 'x' } as const,
  { type: 'finish', reason: 'completed' } as const
]

type Shown = { readonly turnsUsed: number; readonly tokensUsed: number }

test('a goal that a client sets keeps the agent at work until the model says that it is complete', async t => {
  const llm = scriptedLlm('first slice', 'second slice', call('UpdateGoal', { status: 'complete', reason: 'all tests pass' }), 'all done')
  const scene = await start(t, llm)
  assert.equal((await scene.set({ goal_objective: '  make the tests pass ' })).code, 0)
  assert.deepEqual(
    [(await scene.goal())?.objective, (await scene.goal())?.status, llm.requests.length],
    ['make the tests pass', 'active', 0]
  )

  await scene.prompt('go')
  await scene.waitFor(event => event.type === 'goal.updated' && (event.payload as { snapshot: unknown }).snapshot === null)
  await scene.waitFor(event => event.type === 'turn.ended' && (event.payload as { turnId: number }).turnId === 2)

  assert.deepEqual(turnsBy(scene), ['user', 'goal_continuation', 'goal_continuation'])
  assert.equal(await scene.goal(), null)
  const told = scene.of('goal.updated')
  const [created, ...later] = told
  const [done, gone] = later.splice(-2)
  assert.ok(created && done)
  assert.deepEqual(
    later.map(({ snapshot, change }) => [(snapshot as Shown).turnsUsed, (snapshot as Shown).tokensUsed, change]),
    [
      [1, 0, undefined],
      [2, 5, undefined],
      [3, 10, undefined]
    ],
    'each turn says where the goal stands when it begins'
  )
  assert.deepEqual([created.change, (created.snapshot as { status: string }).status], [undefined, 'active'])
  assert.deepEqual(gone, { snapshot: null })
  const { kind, status, reason, stats, actor } = done.change as Record<string, unknown>
  assert.deepEqual({ kind, status, reason, actor }, { kind: 'completion', status: 'complete', reason: 'all tests pass', actor: 'model' })
  assert.deepEqual([(stats as Shown).turnsUsed, (stats as Shown).tokensUsed], [3, 15], 'with the step that completes it')
  assert.match(JSON.stringify(llm.requests[0]?.messages), /make the tests pass[\s\S]*UpdateGoal/)
})

test('wrong objectives and controls answer with their codes and change nothing', async t => {
  const scene = await start(t, scriptedLlm('ok'))
  assert.equal((await scene.set({ goal_objective: '  ' })).code, 40917)
  const long = await scene.set({ goal_objective: 'x'.repeat(4001) })
  assert.deepEqual([long.code, long.msg], [40918, 'the objective of a goal has at most 4000 characters'])
  for (const goal_control of ['pause', 'resume', 'cancel']) assert.equal((await scene.set({ goal_control })).code, 40914)
  assert.equal((await scene.set({ goal_objective: 'a' })).code, 0)
  assert.equal((await scene.set({ goal_objective: 'b' })).code, 40913)
  assert.equal((await scene.set({ goal_control: 'resume' })).code, 0)
  assert.equal(scene.of('goal.updated').length, 1)
})

test('a paused goal rests until it is resumed, and a cancelled one is gone', async t => {
  const llm = scriptedLlm('one', 'two', call('UpdateGoal', { status: 'blocked', reason: 'no network' }), 'stuck')
  const scene = await start(t, llm)
  await scene.set({ goal_objective: 'a' })
  assert.equal((await scene.set({ goal_control: 'pause' })).code, 0)
  assert.equal((await scene.set({ goal_control: 'pause' })).code, 0)
  await scene.prompt('go')
  await scene.settled(1)
  assert.deepEqual(turnsBy(scene), ['user'])

  await scene.set({ goal_control: 'resume' })
  await scene.waitFor(event => event.type === 'turn.ended' && (event.payload as { turnId: number }).turnId === 2)

  assert.deepEqual(turnsBy(scene), ['user', 'goal_continuation', 'goal_continuation'])
  const goal = await scene.goal()
  assert.deepEqual([goal?.status, goal?.terminalReason], ['blocked', 'no network'])
  assert.equal((await scene.set({ goal_control: 'pause' })).code, 40915)
  assert.equal((await scene.set({ goal_control: 'cancel' })).code, 0)
  assert.equal(await scene.goal(), null)
})

test("a user's abort pauses the goal, and so does a turn that fails", async t => {
  const llm = scriptedLlm(held(new Promise(() => undefined)), [{ type: 'finish', reason: 'filtered' }])
  const scene = await start(t, llm)
  await scene.set({ goal_objective: 'a' })
  const { prompt_id } = await scene.prompt('go')
  await llm.arrived(0)
  await scene.call(abortPrompt, { params: { session_id: scene.session_id, prompt_id } })
  assert.deepEqual([(await scene.goal())?.status, (await scene.goal())?.terminalReason], ['paused', 'the user interrupted the turn'])

  await scene.set({ goal_control: 'resume' })
  await scene.waitFor(event => event.type === 'turn.ended' && (event.payload as { reason: string }).reason === 'failed')
  await scene.waitFor(
    event => event.type === 'goal.updated' && (event.payload as { change?: { actor?: string } }).change?.actor === 'runtime'
  )
  assert.deepEqual([(await scene.goal())?.status, (await scene.goal())?.terminalReason], ['paused', 'the provider withheld the answer'])
})

test("a user's abort pauses the goal also when it was resumed in the turn before", async t => {
  const llm = scriptedLlm(held(new Promise(() => undefined)), 'nobody asked for this')
  const scene = await start(t, llm)
  await scene.set({ goal_objective: 'a' })
  const { prompt_id } = await scene.prompt('go')
  await llm.arrived(0)
  for (const goal_control of ['pause', 'resume', 'resume']) assert.equal((await scene.set({ goal_control })).code, 0)

  await scene.call(abortPrompt, { params: { session_id: scene.session_id, prompt_id } })

  assert.equal((await scene.goal())?.status, 'paused')
  assert.deepEqual(turnsBy(scene), ['user'])
})

test('cancelling a goal ends the turn that works on it', async t => {
  const llm = scriptedLlm(held(new Promise(() => undefined)))
  const scene = await start(t, llm)
  await scene.set({ goal_objective: 'a' })
  await scene.prompt('go')
  await llm.arrived(0)
  await scene.set({ goal_control: 'cancel' })
  assert.deepEqual(
    scene.of('turn.ended').map(({ reason }) => reason),
    ['cancelled']
  )
  assert.equal(await scene.goal(), null)
})

test('what the user asks meanwhile comes before the next slice', async t => {
  const more = latch()
  const llm = scriptedLlm(held(more.opened), 'for the user', call('UpdateGoal', { status: 'complete' }), 'done')
  const scene = await start(t, llm)
  await scene.set({ goal_objective: 'a' })
  await scene.prompt('go')
  await llm.arrived(0)
  await scene.prompt('a question')
  more.open()
  await scene.waitFor(event => event.type === 'turn.ended' && (event.payload as { turnId: number }).turnId === 2)
  assert.deepEqual(turnsBy(scene), ['user', 'user', 'goal_continuation'])
  const counts = llm.requests.map(({ messages }) =>
    JSON.stringify(messages)
      .match(/(?<=Turns: )\d+/g)
      ?.map(Number)
  )
  assert.deepEqual(counts[2], [1, 2, 3], 'each turn tells where the goal stands when it begins')
})

test('the user consents to a goal of the model, and may switch the mode with it', async t => {
  const llm = scriptedLlm(call('CreateGoal', { objective: 'tidy up' }), 'one', call('UpdateGoal', { status: 'complete' }), 'done')
  const scene = await start(t, llm)
  await scene.prompt('work by yourself')
  const asked = await scene.waitFor(event => event.type === 'event.approval.requested')
  const { approval_id, tool_input_display } = asked.payload as { approval_id: string; tool_input_display: object }
  assert.deepEqual(tool_input_display, { kind: 'goal_start', objective: 'tidy up', mode: 'manual' })
  await scene.call(resolveApproval, {
    params: { session_id: scene.session_id, approval_id },
    body: { decision: 'approved', selected_label: 'auto' }
  })
  await scene.waitFor(event => event.type === 'turn.ended' && (event.payload as { turnId: number }).turnId === 1)
  assert.deepEqual(turnsBy(scene), ['user', 'goal_continuation'])
  const [begun] = scene.of('tool.call.started')
  assert.deepEqual(begun?.display, tool_input_display, 'the call shows what the user consented to')
})

test('a goal that cannot be made is refused before anybody is asked', async t => {
  const llm = scriptedLlm(call('CreateGoal', { objective: '  ' }), call('CreateGoal', { objective: 'another' }), 'ok', 'ok')
  const scene = await start(t, llm)
  await scene.set({ goal_objective: 'the first' })
  await scene.set({ goal_control: 'pause' })
  await scene.prompt('set goals')
  await scene.settled(1)
  const results = scene.of('tool.result').map(({ output, isError }) => [/blank|already/.test(String(output)), isError])
  assert.deepEqual(results, [
    [true, true],
    [true, true]
  ])
  assert.deepEqual(scene.of('event.approval.requested'), [])
})

test('a goal that the user declines does not start', async t => {
  const llm = scriptedLlm(call('CreateGoal', { objective: 'tidy up' }), 'ok')
  const scene = await start(t, llm)
  await scene.prompt('work by yourself')
  const { payload } = await scene.waitFor(event => event.type === 'event.approval.requested')
  await scene.call(resolveApproval, {
    params: { session_id: scene.session_id, approval_id: (payload as { approval_id: string }).approval_id },
    body: { decision: 'rejected', feedback: 'not today' }
  })
  await scene.settled(1)
  assert.match(String(scene.of('tool.result')[0]?.output), /declined.*not today/)
  assert.equal(await scene.goal(), null)
})

test('a budget of turns ends the goal after the last of them', async t => {
  const llm = scriptedLlm(call('SetGoalBudget', { value: 2, unit: 'turns' }), 'one', 'two', 'never')
  const scene = await start(t, llm)
  await scene.set({ goal_objective: 'a' })
  await scene.prompt('go')
  await scene.waitFor(
    event => event.type === 'goal.updated' && (event.payload as { change?: { status?: string } }).change?.status === 'blocked'
  )
  assert.deepEqual(turnsBy(scene), ['user', 'goal_continuation'])
  const goal = await scene.goal()
  assert.ok(goal)
  const { turnBudget, remainingTurns, turnBudgetReached, overBudget, tokenBudget } = goal.budget
  assert.deepEqual([turnBudget, remainingTurns, turnBudgetReached, overBudget, tokenBudget], [2, 0, true, true, null])
  assert.match(String(goal?.terminalReason), /2 turns/)
  assert.equal((await scene.set({ goal_control: 'resume' })).code, 40916)
})

test('a budget of tokens that is used up in the middle of a turn leaves one step to write the end, without tools', async t => {
  const llm = scriptedLlm(call('SetGoalBudget', { value: 1, unit: 'tokens' }), call('GetGoal'), 'never')
  const scene = await start(t, llm)
  await scene.set({ goal_objective: 'a' })
  await scene.prompt('go')
  await scene.settled(1)

  assert.equal(llm.requests.length, 2)
  assert.match(JSON.stringify(llm.requests[1]?.messages.at(-1)), /Write a final status/)
  assert.match(String(scene.of('tool.result')[1]?.output), /used up/)
  assert.equal((await scene.goal())?.status, 'blocked')
})

test('a time budget cancels the turn that works on the goal', async t => {
  const llm = scriptedLlm(call('SetGoalBudget', { value: 1000, unit: 'milliseconds' }), held(new Promise(() => undefined)))
  const scene = await start(t, llm)
  await scene.set({ goal_objective: 'a' })
  await scene.prompt('go')
  await scene.settled(1)
  assert.deepEqual(
    scene.of('turn.ended').map(({ reason }) => reason),
    ['cancelled']
  )
  const goal = await scene.goal()
  assert.deepEqual([goal?.status, goal?.budget.wallClockBudgetReached], ['blocked', true])
})

test('a time budget cancels the turn also when the disk refuses to note it at first', { timeout: 20_000 }, async t => {
  let refused = false
  const history = historyOnDisk(records => {
    if (refused || !records.some(({ change }) => (change as { status?: string } | undefined)?.status === 'blocked')) return
    refused = true
    throw new Error('no space')
  })
  const llm = scriptedLlm(call('SetGoalBudget', { value: 1000, unit: 'milliseconds' }), held(new Promise(() => undefined)))
  const scene = await start(t, llm, { history })
  await scene.set({ goal_objective: 'a' })
  await scene.prompt('go')
  await scene.settled(1)
  assert.deepEqual([refused, (await scene.goal())?.status], [true, 'blocked'])
})

test('a time budget holds although the clock is set back while it runs', async t => {
  const llm = scriptedLlm(call('SetGoalBudget', { value: 1000, unit: 'milliseconds' }), held(new Promise(() => undefined)))
  let behind = 0
  const scene = await start(t, llm, { now: () => new Date(Date.now() - behind) })
  await scene.set({ goal_objective: 'a' })
  await scene.prompt('go')
  await llm.arrived(1)
  behind = 50
  await scene.settled(1)
  assert.deepEqual([(await scene.goal())?.status, (await scene.goal())?.budget.wallClockBudgetReached], ['blocked', true])
})

test('a goal that was active when the process died is paused at the next start, and no slice of it runs', async t => {
  const llm = scriptedLlm(held(new Promise(() => undefined)))
  const scene = await start(t, llm)
  await scene.set({ goal_objective: 'a' })
  await scene.prompt('go')
  await llm.arrived(0)
  const home = await copyOfHome(scene.home)

  const later = scriptedLlm('never asked')
  const next = await start(t, later, { home, session_id: scene.session_id })
  const goal = await next.goal()
  assert.deepEqual([goal?.status, goal?.terminalReason], ['paused', 'the server was restarted'])
  assert.equal(later.requests.length, 0)
  assert.deepEqual(
    next.of('goal.updated').map(({ change }) => (change as { status: string; actor: string }).actor),
    ['system']
  )
})

test('an agent without a goal is not held up: goal tools say so', async t => {
  const llm = scriptedLlm(call('GetGoal'), call('UpdateGoal', { status: 'complete' }), 'ok')
  const scene = await start(t, llm)
  await scene.prompt('go')
  await scene.settled(1)
  assert.deepEqual(
    scene.of('tool.result').map(({ output }) => output),
    ['null', 'the session has no goal.']
  )
})
