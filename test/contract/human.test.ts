/** The agent meets its human on the full server: questions, plan reviews and the todo list as a strict web page sees them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { conversation } from '../helpers/conversation.ts'
import type { Page } from '../helpers/page.ts'
import { newSession, prompt, scene } from '../helpers/scene.ts'

/** Durable events of the session behind `from`, with what is pending. */
function sequence(page: Page, session_id: string, from: string): string[] {
  const all = page.frames.flatMap(({ type, volatile, session_id: whose, payload }) => {
    const status = type === 'agent.status.updated' && payload.planMode !== undefined && payload.phase === undefined
    if (whose !== session_id || (volatile && !status) || type === 'event.session.status_changed') return []
    const fact = type === 'event.session.work_changed' ? payload.pending_interaction : status ? `plan ${payload.planMode}` : payload.name
    return [fact === undefined ? type : `${type} ${fact}`]
  })
  return all.slice(all.indexOf(from))
}

const question = { question: 'Which color?', options: [{ label: 'Red' }, { label: 'Blue' }] }

test('a question comes behind its call, and its answer before the result', async t => {
  const { page: open, cwd } = await scene(t, [[{ tool: { name: 'AskUserQuestion', args: { questions: [question] } } }], [{ text: 'ok' }]])
  const page = await open()
  const id = await newSession(page, cwd)
  await page.openSession(id)
  await prompt(page, id, 'choose')
  const { payload } = await page.next('event.question.requested')
  const body = { answers: { q_0: { kind: 'single', option_id: 'opt_0_1' } } }
  assert.equal((await page.post(`/api/v1/sessions/${id}/questions/${payload.question_id}`, body)).code, 0)
  await page.next('prompt.completed')

  assert.deepEqual(sequence(page, id, 'tool.call.started AskUserQuestion').slice(0, 7), [
    'tool.call.started AskUserQuestion',
    'event.session.work_changed question',
    'event.question.requested',
    'event.session.work_changed none',
    'event.question.answered',
    'tool.result',
    'turn.step.completed'
  ])
  assert.equal((await page.next('tool.result')).payload.output, '{"answers":{"Which color?":"Blue"}}')
  assert.deepEqual(page.problems, [])
})

test('a plan is written, reviewed and carried out; undo brings plan mode back', async t => {
  const file = (body: Record<string, unknown>) => /\/[^\s"]+\/plans\/[a-z-]+\.md/.exec(JSON.stringify(body.messages))?.[0] ?? ''
  const { page: open, cwd } = await scene(t, (body, n) => {
    if (n === 0) return [{ tool: { name: 'Write', args: { path: file(body), content: 'first draft' } } }]
    if (n === 1) return [{ tool: { name: 'Edit', args: { path: file(body), old_string: 'first', new_string: 'second' } } }]
    return n === 2 ? [{ tool: { name: 'ExitPlanMode', args: {} } }] : [{ text: 'done' }]
  })
  const page = await open()
  const id = await newSession(page, cwd)
  await page.openSession(id)
  const path = `/api/v1/sessions/${id}`
  assert.equal((await page.post(`${path}/profile`, { agent_config: { plan_mode: true } })).code, 0)
  await prompt(page, id, 'plan')
  const { payload } = await page.next('event.approval.requested')
  assert.equal(payload.tool_name, 'ExitPlanMode')
  assert.equal(payload.tool_input_display.plan, 'second draft')
  assert.equal((await page.post(`${path}/approvals/${payload.approval_id}`, { decision: 'approved' })).code, 0)
  await page.next('prompt.completed')

  assert.deepEqual(sequence(page, id, 'plan.revision').slice(0, 7), [
    'plan.revision',
    'event.session.work_changed approval',
    'event.approval.requested',
    'event.session.work_changed none',
    'event.approval.resolved',
    'agent.status.updated plan false',
    'tool.call.started ExitPlanMode'
  ])
  assert.equal((await page.get(`${path}/status`)).data.plan_mode, false)
  assert.equal((await page.post(`${path}:undo`, { count: 1 })).code, 0)
  assert.equal((await page.get(`${path}/status`)).data.plan_mode, true)
  assert.deepEqual(page.problems, [])
})

for (const missing of ['plan', 'questions', 'todo', 'interactions']) {
  test(`without the pack ${missing} the others work, and the model hears that its tools are not there`, async t => {
    const server = await conversation(t, { packs: defaults => defaults.filter(({ name }) => name !== missing) })
    const { api, session_id, turn } = server
    const { results } = await turn([
      ['TodoList', { todos: [{ title: 'look', status: 'pending' }] }],
      ['ExitPlanMode', {}],
      ['Glob', { pattern: '*' }]
    ])
    const unknown = results.map(({ output }) => output.startsWith('Tool not found'))
    assert.deepEqual(unknown, [missing === 'todo', missing === 'plan', false])
    const status = (await api('GET', `/sessions/${session_id}/status`)).data
    assert.deepEqual([status.plan_mode, status.busy], [false, false])
    const profile = await api('POST', `/sessions/${session_id}/profile`, { agent_config: { plan_mode: false } })
    assert.equal(profile.code, 0)
    const listed = await api('GET', `/sessions/${session_id}/questions?status=pending`)
    assert.equal(listed.code, missing === 'questions' || missing === 'interactions' ? 40400 : 0)
  })
}
