/** Questions over the real broker and tool runner: asked, answered in every way, dismissed, expired, withdrawn. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { AlreadyResolved } from '../../../features/interactions/index.ts'
import interactions from '../../../features/interactions/pack.ts'
import permissions from '../../../features/permissions/pack.ts'
import { abortSession } from '../../../features/prompts/index.ts'
import {
  answerQuestion,
  dismissQuestion,
  type ItemAnswer,
  listQuestions,
  QuestionExpired,
  QuestionMissing,
  type QuestionRequest,
  questionRequested
} from '../../../features/questions/index.ts'
import questions from '../../../features/questions/pack.ts'
import { readSnapshot } from '../../../features/session-views/index.ts'
import { readSession, SessionMissing } from '../../../features/sessions/index.ts'
import { cancelTask, readTask } from '../../../features/tasks/index.ts'
import tasks from '../../../features/tasks/pack.ts'
import tools from '../../../features/tools/pack.ts'
import { type Reply, scriptedLlm, toolCalls } from '../../helpers/scripted-llm.ts'
import { copyOfHome, type Started, type StartOptions, startAgent } from '../agent/start.ts'

const colour = { question: 'Which colour?', header: 'Colour', options: [{ label: 'Red' }, { label: 'Blue', description: 'as the sky' }] }
const sizes = { question: 'Which sizes?', options: [{ label: 'S' }, { label: 'M' }, { label: 'L' }], multi_select: true }
const ask = (...asked: readonly object[]) => toolCalls({ id: 'c1', name: 'AskUserQuestion', args: { questions: asked } })

async function start(t: TestContext, reply: Reply = ask(colour), options: StartOptions = {}) {
  const llm = scriptedLlm(reply, 'thanks')
  const server = await startAgent(t, llm, { ...options, packs: [interactions, questions, tools, permissions, ...(options.packs ?? [])] })
  const params = { session_id: server.session_id }
  return {
    ...server,
    llm,
    params,
    async asked() {
      await server.prompt('choose')
      const { payload } = await server.waitFor(event => event.type === questionRequested.type)
      return payload as QuestionRequest
    },
    answer: (question_id: string, answers: Record<string, ItemAnswer>, more: object = {}) =>
      server.call(answerQuestion, { params: { ...params, question_id }, body: { answers, ...more } }),
    dismiss: (question_id: string) => server.call(dismissQuestion, { params: { ...params, question_id } })
  }
}

const result = (server: Started) => server.events.find(({ type }) => type === 'tool.result')?.payload as { output: string; isError?: true }
/** Types in order, with what is pending. */
const seen = (server: Started) =>
  server.events.flatMap(({ type, payload }) => {
    if (type === 'event.session.work_changed') return [`work ${(payload as { pending_interaction: string }).pending_interaction}`]
    return /^(tool\.call\.started|tool\.result|event\.question\..*)$/.test(type) ? [type] : []
  })

test('a question is shown in the session, the list and the snapshot, and its answer goes to the model', async t => {
  const server = await start(t)
  const request = await server.asked()

  assert.match(request.question_id, /^question_[0-9a-f-]{36}$/)
  assert.deepEqual(request.questions, [
    {
      id: 'q_0',
      question: 'Which colour?',
      header: 'Colour',
      options: [
        { id: 'opt_0_0', label: 'Red' },
        { id: 'opt_0_1', label: 'Blue', description: 'as the sky' }
      ],
      allow_other: true
    }
  ])
  assert.deepEqual([request.turn_id, request.tool_call_id], [0, 'c1'])
  assert.equal(Date.parse(request.expires_at ?? '') - Date.parse(request.created_at), 86_400_000)
  const { params } = server
  assert.deepEqual((await server.call(listQuestions, { params, query: { status: 'pending' } })).data.items, [request])
  assert.equal((await server.call(readSession, { params })).data.pending_interaction, 'question')
  assert.deepEqual((await server.call(readSnapshot, { params })).data.pending_questions, [request])

  const reply = await server.answer(request.question_id, { q_0: { kind: 'single', option_id: 'opt_0_1' } })
  await server.settled(1)

  assert.deepEqual([reply.code, reply.data.resolved], [0, true])
  assert.deepEqual(result(server), { turnId: 0, toolCallId: 'c1', output: '{"answers":{"Which colour?":"Blue"}}' })
  const told = seen(server)
  assert.deepEqual(told.slice(told.indexOf('tool.call.started'), -1), [
    'tool.call.started',
    'work question',
    'event.question.requested',
    'work none',
    'event.question.answered',
    'tool.result'
  ])
  const answered = server.events.find(({ type }) => type === 'event.question.answered')?.payload
  assert.deepEqual(answered, {
    question_id: request.question_id,
    answers: { 'Which colour?': 'Blue' },
    resolved_at: reply.data.resolved_at
  })
})

test('every kind of answer becomes a text, in the words of the options and of the user', async t => {
  const asked = [{ ...colour, header: '' }, sizes, { ...sizes, question: 'Others?' }, { ...colour, question: 'Skip?' }]
  const server = await start(t, ask(...asked))
  const { question_id, questions: items } = await server.asked()
  assert.equal(items[1]?.multi_select, true)
  assert.equal('header' in (items[0] ?? {}), false)
  await server.answer(question_id, {
    q_0: { kind: 'other', text: 'a dark green' },
    q_1: { kind: 'multi', option_ids: ['opt_1_0', 'opt_1_2'] },
    q_2: { kind: 'multi_with_other', option_ids: ['opt_2_1', 'opt_9'], other_text: 'XXL' },
    q_3: { kind: 'skipped' },
    q_7: { kind: 'other', text: 'and this' }
  })
  await server.settled(1)
  assert.deepEqual(JSON.parse(result(server).output), {
    answers: { 'Which colour?': 'a dark green', 'Which sizes?': 'S, L', 'Others?': 'M, opt_9, XXL', q_7: 'and this' }
  })
})

test('a note of the user goes to the model beside the answers', async t => {
  const server = await start(t)
  const { question_id } = await server.asked()
  await server.answer(question_id, { q_0: { kind: 'skipped' } }, { note: 'you decide', method: 'enter' })
  await server.settled(1)
  assert.deepEqual(JSON.parse(result(server).output), { answers: {}, note: 'you decide' })
})

test('the model is told when every question was skipped', async t => {
  const server = await start(t)
  const { question_id } = await server.asked()
  await server.answer(question_id, { q_0: { kind: 'skipped' } })
  await server.settled(1)
  assert.deepEqual(JSON.parse(result(server).output), { answers: {}, note: 'The user skipped every question. Do not ask again.' })
})

test('a dismissed question answers with code 40909, tells the model so, and the turn goes on', async t => {
  const server = await start(t)
  const { question_id } = await server.asked()
  const reply = await server.dismiss(question_id)
  await server.settled(1)

  assert.deepEqual([reply.code, reply.data.dismissed], [40909, true])
  const { output, isError } = result(server)
  assert.deepEqual([JSON.parse(output).answers, isError], [{}, undefined])
  assert.match(JSON.parse(output).note, /dismissed/)
  const dismissed = server.events.find(({ type }) => type === 'event.question.dismissed')?.payload
  assert.deepEqual(dismissed, { question_id, dismissed_at: reply.data.dismissed_at })
  assert.equal(server.llm.requests.length, 2)
  for (const late of [await server.dismiss(question_id), await server.answer(question_id, {})]) {
    assert.deepEqual([late.code, late.data], [AlreadyResolved.code, { resolved: false }])
  }
})

test('a wrong body names its fields and leaves the question open; an unknown question is said before a wrong body', async t => {
  const server = await start(t)
  const { question_id } = await server.asked()
  const { params } = server
  const path = `/api/v1/sessions/${params.session_id}/questions`
  const bad = await server.rest.json('POST', `${path}/${question_id}`, { answers: { q_0: { kind: 'multi', option_ids: [] } } })
  assert.deepEqual([bad.code, bad.details?.[0]?.path], [40001, 'body.answers.q_0.option_ids'])
  assert.deepEqual((await server.rest.json('POST', `${path}/${question_id}`, {})).details?.[0]?.path, 'body.answers')
  assert.equal((await server.rest.json('POST', `${path}/question_x`, { answers: 5 })).code, QuestionMissing.code)
  assert.equal((await server.rest.json('POST', `${path}/${question_id}:close`, {})).code, 40001)
  assert.equal((await server.rest.json('POST', `/api/v1/sessions/session_x/questions/${question_id}`, {})).code, SessionMissing.code)
  assert.equal((await server.rest.json('GET', path)).code, 40001)
  assert.equal((await server.call(listQuestions, { params, query: { status: 'pending' } })).data.items.length, 1)
})

test('questions that repeat a text or a label are refused, and nobody is asked', async t => {
  for (const asked of [[colour, colour], [{ ...colour, options: [{ label: 'Red' }, { label: 'Red' }] }], []]) {
    const server = await start(t, ask(...asked))
    await server.prompt('choose')
    await server.settled(1)
    assert.equal(result(server).isError, true)
    assert.ok(!seen(server).includes('event.question.requested'))
  }
})

test('in auto mode a question is denied', async t => {
  const server = await start(t)
  await server.prompt('choose', { permission_mode: 'auto' })
  await server.settled(1)
  assert.match(result(server).output, /auto mode/)
  assert.ok(!seen(server).includes('event.question.requested'))
})

test('an unanswered question expires: the model decides alone, and a late answer hears 41002', async t => {
  const hold = setInterval(() => undefined, 1_000) // the expiry timer alone does not keep the process alive
  t.after(() => clearInterval(hold))
  const server = await start(t, ask(colour), { config: { questions: { question_ttl_ms: 20 }, tools: { call_limit_ms: 1 } } })
  const { question_id } = await server.asked()
  await server.settled(1)
  assert.match(JSON.parse(result(server).output).note, /in time/)
  const late = await server.answer(question_id, {})
  assert.deepEqual([late.code, late.data], [QuestionExpired.code, { resolved: false }])

  const background = toolCalls({ id: 'c1', name: 'AskUserQuestion', args: { questions: [colour], background: true } })
  const beside = await start(t, background, { packs: [tasks], config: { questions: { question_ttl_ms: 5 } } })
  await beside.asked()
  const { payload } = await beside.waitFor(({ type }) => type === 'task.terminated')
  assert.equal((payload as { info: { status: string } }).info.status, 'timed_out')
})

test('aborting the turn dismisses the question before its result', async t => {
  const server = await start(t)
  await server.asked()
  await server.call(abortSession, { params: server.params })
  const told = seen(server)
  assert.ok(told.indexOf('event.question.dismissed') > 0)
  assert.ok(told.indexOf('event.question.dismissed') < told.indexOf('tool.result'))
  assert.match(result(server).output, /^The user interrupted this tool call on purpose/)
})

test('a question that a killed server left open is dismissed when its session is loaded', async t => {
  const first = await start(t)
  const { question_id } = await first.asked()
  await first.call(readSnapshot, { params: first.params }) // answers when all events are on disk
  const again = await start(t, 'fine', { home: await copyOfHome(first.home), session_id: first.session_id })
  assert.deepEqual((await again.call(listQuestions, { params: again.params, query: { status: 'pending' } })).data.items, [])
  const told = again.events.filter(({ type }) => type === 'event.question.dismissed')
  assert.deepEqual(
    told.map(({ payload }) => (payload as { question_id: string }).question_id),
    [question_id]
  )
})

test('a question in the background lets the turn go on, and its answer comes as a notification', async t => {
  const background = toolCalls({ id: 'c1', name: 'AskUserQuestion', args: { questions: [colour], background: true } })
  const server = await start(t, background, { packs: [tasks] })
  const request = await server.asked()
  await server.settled(1)
  const id = /task_id: (question-[0-9a-z]{8})/.exec(result(server).output)?.[1] ?? 'none'
  const { params } = server
  const task = (await server.call(readTask, { params: { ...params, task_id: id }, query: { with_output: false, output_bytes: 0 } })).data
  assert.deepEqual([task.kind, task.status], ['tool', 'running'])
  assert.equal((await server.call(readSession, { params })).data.pending_interaction, 'question')

  await server.answer(request.question_id, { q_0: { kind: 'single', option_id: 'opt_0_0' } })
  await server.waitFor(event => event.type === 'task.terminated')
  await server.waitFor(event => event.type === 'turn.ended' && (event.payload as { turnId: number }).turnId === 1)
  const last = JSON.stringify(server.llm.requests.at(-1)?.messages.at(-1))
  assert.ok(last.includes(id) && last.includes('Which colour?') && last.includes('Red'), last)
})

test('stopping the task of a question withdraws it; without tasks there is no background', async t => {
  const background = toolCalls({ id: 'c1', name: 'AskUserQuestion', args: { questions: [colour], background: true } })
  const server = await start(t, background, { packs: [tasks] })
  await server.asked()
  await server.settled(1)
  const task_id = /task_id: (question-[0-9a-z]{8})/.exec(result(server).output)?.[1] ?? 'none'
  assert.equal((await server.call(cancelTask, { params: { ...server.params, task_id } })).code, 0)
  assert.ok(seen(server).includes('event.question.dismissed'))
  assert.equal((await server.call(readSession, { params: server.params })).data.pending_interaction, 'none')

  const without = await start(t, background)
  await without.prompt('choose')
  await without.settled(1)
  assert.match(result(without).output, /background/)
  assert.equal(result(without).isError, true)
})

test('a question that no client hears of is told to whoever runs the server', async t => {
  const told: string[] = []
  const server = await start(t, ask(colour), { told })
  await server.asked()
  const { session_id } = server
  assert.deepEqual(told, [
    `info: ${session_id}: asks a question (Which colour?), and no client listens; GET /api/v1/sessions/${session_id}/questions?status=pending shows it`
  ])

  const heard: string[] = []
  const watched = await start(t, ask(colour), { told: heard })
  const client = await watched.connect()
  await client.request('subscribe', { session_ids: [watched.session_id] })
  await watched.asked()
  assert.deepEqual(heard, [])
})
