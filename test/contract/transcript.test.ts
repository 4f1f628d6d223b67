/** Everything an agent can do, in one transcript: by operations, from a loaded session, and from disk after a restart. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compactSession } from '../../features/compaction/index.ts'
import { forkSession } from '../../features/fork/index.ts'
import { listApprovals, resolveApproval } from '../../features/interactions/index.ts'
import { abortSession, submitPrompt } from '../../features/prompts/index.ts'
import { answerQuestion, listQuestions } from '../../features/questions/index.ts'
import { createSession, readSession } from '../../features/sessions/index.ts'
import { type Item, readPlans, readUserMessages, type TranscriptPage, type Turn } from '../../features/transcript/index.ts'
import { undoSession } from '../../features/undo/index.ts'
import type { TestKernel } from '../../kernel/testing.ts'
import { common, pageOf, type Server, TranscriptClient } from '../features/transcript/client.ts'
import { busyModel, type ScriptName } from '../helpers/busy-model.ts'
import { conversation } from '../helpers/conversation.ts'
import type { Said } from '../helpers/crash-scene.ts'
import { scene } from '../helpers/scene.ts'

type Mode = 'manual' | 'yolo'
type Prompt = (text: string, mode?: Mode) => Promise<void>
const turnsOf = (items: readonly Item[]) => items.filter((item): item is Turn => item.kind === 'turn')
const framesOf = (items: readonly Item[]) => turnsOf(items).flatMap(turn => turn.steps.flatMap(step => step.frames))
const toolsOf = (items: readonly Item[]) => framesOf(items).flatMap(frame => (frame.kind === 'tool' ? [frame] : []))
const markersOf = (items: readonly Item[]) => items.flatMap(item => (item.kind === 'marker' ? [item.marker] : []))
const lasting = ({ seq: _seq, ...page }: TranscriptPage) => page

/** Whether nothing is left to do: the agent heard of its tasks, and follows no goal. */
function isOver({ items, tasks, meta }: TranscriptPage): boolean {
  const told = new Set(framesOf(items).flatMap(frame => (frame.kind === 'text' ? (frame.taskId ?? []) : [])))
  for (const { origin } of turnsOf(items)) if (origin.taskId !== undefined) told.add(origin.taskId)
  const waited = toolsOf(items).some(({ name }) => name === 'WaitFor')
  if (turnsOf(items).at(-1)?.state === 'running' || meta.goal?.status === 'active') return false
  return tasks.every(({ taskId, detached, state }) => state !== 'running' && (!detached || waited || told.has(taskId)))
}

/** Answers whatever is asked until the session has nothing to do. */
async function settled(server: TestKernel, session_id: string): Promise<void> {
  const params = { session_id }
  const query = { status: 'pending' as const }
  for (;;) {
    const known = server.events.length
    for (const { approval_id } of (await server.call(listApprovals, { params, query })).data.items) {
      await server.call(resolveApproval, { params: { session_id, approval_id }, body: { decision: 'approved', feedback: 'fine' } })
    }
    for (const { question_id } of (await server.call(listQuestions, { params, query })).data.items) {
      await server.call(answerQuestion, {
        params: { session_id, question_id },
        body: { answers: { q_0: { kind: 'single', option_id: 'opt_0_1' } } }
      })
    }
    const { busy } = (await server.call(readSession, { params })).data
    if (!busy && isOver(await pageOf({ ...server, session_id }))) return
    let seen = 0
    await server.waitFor(() => ++seen > known)
  }
}

test('a plan is there while its review waits, and says how that ended', async t => {
  const talk = await conversation(t)
  const at = `/sessions/${talk.session_id}`
  await talk.api('POST', `${at}/profile`, { agent_config: { plan_mode: true } })
  await talk.turn([])
  const path = /\S*\/plans\/[a-z-]+\.md/.exec(JSON.stringify(talk.upstream.requests[0]?.body))?.[0]
  await talk.turn([['Write', { path, content: 'the plan' }]])
  const plans = async () => (await talk.api('GET', `${at}/transcript/plan?agent_id=main&tool_call_id=exit`)).data.plans
  const ended = talk.waitFor(({ type, payload }) => type === 'turn.ended' && (payload as { turnId: number }).turnId === 2)
  await talk.prompt([{ tools: [{ name: 'ExitPlanMode', args: {}, id: 'exit' }] }])
  await talk.waitFor(({ type }) => type === 'event.approval.requested')
  const entry = { tool_call_id: 'exit', turn_id: 't2', source: 'interaction', plan: 'the plan', path }
  assert.deepEqual(await plans(), [{ ...entry, review: { state: 'pending' } }])

  await talk.api('POST', `${at}:abort`)
  await ended
  assert.deepEqual(await plans(), [{ ...entry, review: { state: 'cancelled' } }])
})

for (const before of ['nothing', 'a goal'] as const) {
  test(`who comes in the middle of the first turn, with ${before} before it, sees what everybody sees`, async t => {
    const task = { name: 'Bash', args: { command: 'sleep 60', description: 'waits', run_in_background: true } }
    const { server, cwd, upstream } = await scene(t, [[{ tools: [task] }], [{ text: 'so far' }, { hang: true }]])
    const { session_id, ...here } = { ...server, session_id: (await server.call(createSession, { body: { metadata: { cwd } } })).data.id }
    const params = { session_id }
    const goal = async (agent_config: object) => {
      assert.equal((await server.rest.json('POST', `/api/v1/sessions/${session_id}/profile`, { agent_config })).code, 0)
    }
    if (before === 'a goal') {
      await goal({ goal_objective: 'peace' })
      await goal({ goal_control: 'cancel' })
    }
    await server.call(submitPrompt, { params, body: { content: [{ type: 'text', text: 'go' }], permission_mode: 'yolo' } })
    await upstream.arrived(1)
    await server.waitFor(({ type }) => type === 'assistant.delta')

    const late = new TranscriptClient()
    await late.connect({ ...here, session_id })
    await late.settle({ ...here, session_id })
    const page = await pageOf({ ...here, session_id })
    assert.deepEqual(
      page.items.map(item => (item.kind === 'marker' ? item.marker : item.kind)),
      [...(before === 'a goal' ? ['goal', 'goal'] : []), 'turn', 'taskref']
    )
    assert.deepEqual(late.view()?.items, page.items)
    await server.call(abortSession, { params })
  })
}

test('what tools, questions, plans, tasks, subagents, goals and undo do is one transcript, live, by operations and on disk', async t => {
  const { server, cwd, again } = await scene(t, body => busyModel(body.messages as readonly Said[]))
  const pages: { session_id: string; agent: string; page: TranscriptPage }[] = []

  const run = async (name: string, work: (session_id: string, prompt: Prompt) => Promise<void>) => {
    const { id: session_id } = (await server.call(createSession, { body: { metadata: { cwd } } })).data
    const session: Server = { ...server, session_id }
    const client = new TranscriptClient()
    await client.connect(session)
    await work(session_id, async (text, permission_mode = 'yolo') => {
      const body = { content: [{ type: 'text' as const, text }], permission_mode }
      assert.equal((await server.call(submitPrompt, { params: { session_id }, body })).code, 0)
      await settled(server, session_id)
    })
    await settled(server, session_id)
    const main = await pageOf(session)
    await client.settle(session)
    for (const { agentId: agent } of main.agents) {
      const page = agent === 'main' ? main : await pageOf(session, agent)
      const view = client.view(agent)
      assert.ok(view, `${name}: no transcript of ${agent}`)
      assert.deepEqual(common(view), common(page), `${name}: ${agent}`)
      pages.push({ session_id, agent, page })
    }
    client.drop()
    return { session_id, page: main }
  }
  const script = (name: ScriptName, mode: Mode = 'yolo') => run(name, (_id, prompt) => prompt(`do:${name}:${name.replace('-', '')}`, mode))

  await script('talk')
  const shell = await script('shell', 'manual')
  const [first] = toolsOf(shell.page.items)
  assert.deepEqual([first?.state, first?.display?.kind, typeof first?.approvalId], ['done', 'command', 'string'])
  const gate = shell.page.interactions.find(({ interactionId }) => interactionId === first?.approvalId)
  assert.deepEqual(
    [gate?.state, gate?.toolCallId, gate?.response],
    ['approved', first?.toolCallId, { decision: 'approved', feedback: 'fine' }]
  )

  await script('file')
  const todo = await script('todo')
  assert.deepEqual(
    todo.page.todos.map(({ items }) => items),
    [[{ title: 'todo', status: 'done' }]]
  )
  const back = await script('back')
  const task = back.page.tasks.find(({ kind }) => kind === 'shell')
  assert.deepEqual([task?.state, task?.detached], ['completed', true])
  assert.ok(back.page.items.some(item => item.kind === 'taskref' && item.taskId === task?.taskId))
  assert.ok(toolsOf(back.page.items).some(({ taskId }) => taskId === task?.taskId))
  await script('wait')
  const asked = await script('ask')
  assert.deepEqual(
    asked.page.interactions.map(({ interactionKind, state, response }) => [interactionKind, state, response]),
    [['question', 'answered', { answers: { 'Which one for ask?': 'Right' } }]]
  )
  await script('ask-back')
  const goal = await script('goal')
  assert.equal(goal.page.meta.goal?.status ?? 'complete', 'complete')
  assert.ok(markersOf(goal.page.items).includes('goal'))
  const agent = await script('agent')
  assert.deepEqual(
    agent.page.agents.map(({ agentId, type, parentAgentId }) => [agentId, type, parentAgentId]),
    [
      ['main', 'main', undefined],
      ['agent-0', 'sub', 'main']
    ]
  )
  assert.deepEqual(toolsOf(agent.page.items)[0]?.agentRefs, [{ agentId: 'agent-0', role: 'child' }])
  assert.equal(agent.page.tasks.find(({ agentId }) => agentId === 'agent-0')?.state, 'completed')
  await script('agent-back')
  const swarm = await script('swarm')
  assert.equal(swarm.page.agents.length, 3)

  const plan = await script('plan', 'manual')
  const params = { session_id: plan.session_id }
  const { data } = await server.call(readPlans, { params, query: { agent_id: 'main' } })
  assert.deepEqual(
    data.plans.map(({ source, plan, review }) => [source, plan.trim(), review?.state]),
    [['interaction', 'the plan plan', 'approved']]
  )
  const one = await server.call(readPlans, { params, query: { agent_id: 'main', tool_call_id: data.plans[0]?.tool_call_id ?? '' } })
  assert.deepEqual(one.data.plans, data.plans)
  assert.equal((await server.call(readPlans, { params, query: { agent_id: 'main', tool_call_id: 'none' } })).code, 40416)
  for (const marker of ['plan.enter', 'plan.revision', 'plan.exit']) assert.ok(markersOf(plan.page.items).includes(marker), marker)

  const undone = await run('undo', async (session_id, prompt) => {
    await prompt('do:todo:before')
    await prompt('do:todo:after')
    assert.equal((await server.call(undoSession, { params: { session_id }, body: { count: 1 } })).code, 0)
  })
  assert.deepEqual(
    undone.page.todos.map(({ items }) => items),
    [[{ title: 'before', status: 'done' }]]
  )
  assert.deepEqual(
    turnsOf(undone.page.items).map(({ turnId }) => turnId),
    ['t0']
  )

  const compacted = await run('compact', async (session_id, prompt) => {
    for (const name of ['a', 'b', 'c']) await prompt(`do:shell:${name}`)
    assert.equal((await server.call(compactSession, { params: { session_id }, body: {} })).code, 0)
    await settled(server, session_id)
    await prompt('do:talk:d')
  })
  assert.deepEqual(markersOf(compacted.page.items), ['compaction', 'compaction'])
  assert.equal(turnsOf(compacted.page.items).length, 4)

  const cut = await run('abort', async session_id => {
    const body = { content: [{ type: 'text' as const, text: 'do:ask:cut' }], permission_mode: 'yolo' as const }
    await server.call(submitPrompt, { params: { session_id }, body })
    await server.waitFor(event => event.type === 'event.question.requested' && event.session_id === session_id)
    await server.call(abortSession, { params: { session_id } })
  })
  assert.deepEqual(
    [turnsOf(cut.page.items)[0]?.state, cut.page.interactions[0]?.state, cut.page.pending_interactions],
    ['cancelled', 'dismissed', []]
  )
  assert.ok(markersOf(cut.page.items).includes('interruption'))
  assert.equal(toolsOf(cut.page.items)[0]?.state, 'error')

  const fork = (await server.call(forkSession, { params: { session_id: plan.session_id }, body: {} })).data.id
  const copied = await pageOf({ ...server, session_id: fork })
  assert.deepEqual(copied.items, plan.page.items)

  const media = await run('media', async session_id => {
    const source = { kind: 'base64' as const, media_type: 'image/png', data: pixel }
    const content = [{ type: 'image' as const, source }]
    assert.equal((await server.call(submitPrompt, { params: { session_id }, body: { content, permission_mode: 'yolo' } })).code, 0)
  })
  const [turn] = turnsOf(media.page.items)
  assert.deepEqual([turn?.prompt, turn?.attachmentIds], ['', ['t0.att1']])
  assert.equal(JSON.stringify(media.page).includes(pixel), false)
  const inputs = await server.call(readUserMessages, { params: { session_id: media.session_id }, query: {} })
  assert.deepEqual(
    inputs.data.agents.map(({ agent_id, messages, attachments }) => [
      agent_id,
      messages[0]?.prompt,
      messages[0]?.attachment_ids,
      attachments.map(({ mediaType }) => mediaType)
    ]),
    [['main', '', ['t0.att1'], ['image/png']]]
  )

  await server.stop()
  const other = await again()
  for (const { session_id, agent, page } of pages) {
    assert.deepEqual(await pageOf({ ...other, session_id }, agent), lasting(page))
  }
})

const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
