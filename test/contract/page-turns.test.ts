/** A strict web page on the full server, through every way a turn can go (contract 3, Events). */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Page } from '../helpers/page.ts'
import { bubblesOf } from '../helpers/page-session.ts'
import { newSession, prompt, scene } from '../helpers/scene.ts'

/** The status of the session, as it is told behind each change of its work. */
function statuses(page: Page, session_id: string, from = 0): string[] {
  const frames = page.frames.slice(from).filter(frame => frame.session_id === session_id && frame.type === 'event.session.status_changed')
  return frames.map(({ payload }) => payload.status)
}

/** The other durable events in order, with the fields that tell them apart. */
function sequence(page: Page, session_id: string, from = 0): string[] {
  return page.frames.slice(from).flatMap(frame => {
    if (frame.session_id !== session_id || frame.volatile || frame.type === 'event.session.status_changed') return []
    const { payload: p } = frame
    const facts = [
      p.step,
      p.reason,
      p.finishReason,
      p.status,
      p.decision,
      frame.type === 'event.session.work_changed'
        ? `${p.busy ? 'busy' : 'idle'} ${p.main_turn_active ? 'turn' : '-'} ${p.pending_interaction} ${p.last_turn_reason ?? '-'}`
        : undefined
    ]
    return [[frame.type, ...facts.filter(fact => fact !== undefined)].join(' ')]
  })
}

async function agree(page: Page, session_id: string): Promise<void> {
  await page.settled()
  assert.deepEqual(page.problems, [])
  const snapshot = (await page.get(`/api/v1/sessions/${session_id}/snapshot`)).data
  assert.deepEqual(page.session(session_id).bubbles, bubblesOf(snapshot.messages.items))
}

const bash = (command: string) => ({ tool: { name: 'Bash', args: { command } } })

test('a first turn with thinking comes in the recorded order, and a second window sees the same', async t => {
  const { page: open, cwd } = await scene(t, [
    [
      { thinking: 'Hmm, well', chunks: 2 },
      { text: 'the 🙂 answer', chunks: 12 }
    ]
  ])
  const page = await open()
  const id = await newSession(page, cwd)
  await page.openSession(id)
  const other = await open()
  await other.openSession(id)
  const bystander = await open()

  const accepted = await prompt(page, id, 'hi')
  await Promise.all([page, other, bystander].map(each => each.next(frame => frame.payload?.last_turn_reason === 'completed')))
  await Promise.all([page.next('prompt.completed'), other.next('prompt.completed')])

  assert.deepEqual(sequence(page, id), [
    'event.session.created',
    'agent.created',
    'session.meta.updated',
    'prompt.submitted running',
    'turn.started',
    'event.session.work_changed busy turn none -',
    'turn.step.started 1',
    'turn.step.completed 1 end_turn',
    'turn.ended completed',
    'event.session.work_changed idle - none completed',
    'prompt.completed completed'
  ])
  assert.deepEqual(sequence(other, id), sequence(page, id).slice(1))
  assert.deepEqual(sequence(bystander, id), [
    'session.meta.updated',
    'event.session.work_changed busy turn none -',
    'event.session.work_changed idle - none completed'
  ])
  for (const each of [page, other, bystander]) assert.deepEqual(statuses(each, id), ['running', 'idle'])
  const { payload } = await other.next('prompt.submitted')
  assert.equal(payload.promptId, accepted.prompt_id)
  assert.equal(payload.userMessageId, accepted.user_message_id)
  assert.deepEqual(payload.content, [{ type: 'text', text: 'hi' }])
  assert.equal(payload.createdAt, accepted.created_at)
  await agree(page, id)
  await agree(other, id)
  assert.deepEqual(bystander.problems, [])
})

test('an approval: asked before the call starts, remembered for the session, rejected with feedback', async t => {
  const {
    page: open,
    cwd,
    upstream
  } = await scene(t, [
    [{ text: 'Calling. ' }, bash('echo hi')],
    [{ text: 'done' }],
    [bash('echo hi'), bash('echo two')],
    [{ text: 'as you wish' }]
  ])
  const page = await open()
  const id = await newSession(page, cwd)
  await page.openSession(id)
  await prompt(page, id, 'run it')
  const asked = await page.next('event.approval.requested')
  const waiting = (await page.get(`/api/v1/sessions/${id}/snapshot`)).data
  assert.deepEqual(waiting.in_flight_turn.running_tools, [])
  // The message with the call is complete, so the list has it and nothing streams.
  assert.equal(waiting.messages.items.at(-1).content[0].text, 'Calling. ')
  assert.deepEqual([waiting.in_flight_turn.assistant_offset, waiting.in_flight_turn.assistant_text], [9, ''])
  const { agentId: _agent, sessionId: _session, type: _type, ...request } = asked.payload
  assert.deepEqual(waiting.pending_approvals, [request])
  const late = await open()
  assert.equal((await late.openSession(id)).approvals.size, 1)
  await page.post(`/api/v1/sessions/${id}/approvals/${asked.payload.approval_id}`, { decision: 'approved', scope: 'session' })
  await page.next('prompt.completed')

  const from = page.frames.length
  await prompt(page, id, 'again')
  const second = await page.next('event.approval.requested', from)
  await page.post(`/api/v1/sessions/${id}/approvals/${second.payload.approval_id}`, { decision: 'rejected', feedback: 'not today' })
  await page.next('prompt.completed', from)

  assert.deepEqual(sequence(page, id).slice(6, 16), [
    'turn.step.started 1',
    'event.session.work_changed busy turn approval -',
    'event.approval.requested',
    'event.session.work_changed busy turn none -',
    'event.approval.resolved approved',
    'tool.call.started',
    'tool.result',
    'turn.step.completed 1 tool_use',
    'turn.step.started 2',
    'turn.step.completed 2 end_turn'
  ])
  const turn = sequence(page, id, from)
  assert.deepEqual(turn.slice(turn.indexOf('turn.step.started 1') + 1), [
    'tool.call.started',
    'event.session.work_changed busy turn approval -',
    'event.approval.requested',
    'event.session.work_changed busy turn none -',
    'event.approval.resolved rejected',
    'tool.call.started',
    'tool.result',
    'tool.result',
    'turn.step.completed 1 tool_use',
    'turn.step.started 2',
    'turn.step.completed 2 end_turn',
    'turn.ended completed',
    'event.session.work_changed idle - none completed',
    'prompt.completed completed'
  ])
  assert.deepEqual(statuses(page, id, from), ['running', 'awaiting_approval', 'running', 'idle'])
  const refused = await page.next(frame => frame.type === 'tool.result' && frame.payload.isError, from)
  assert.match(refused.payload.output, /not today/)
  assert.match(JSON.stringify(upstream.requests[3]?.body), /not today/)
  await agree(page, id)
  await agree(late, id)
})

test('a refused request fails the turn and is told as a flat error; a busy provider is tried again in a new step', async t => {
  const { page: open, cwd } = await scene(t, [
    [{ status: 400, body: { error: { message: 'bad' } } }],
    [{ status: 503 }],
    [{ text: 'half' }, { cut: true }],
    [{ text: 'ok' }]
  ])
  const page = await open()
  const id = await newSession(page, cwd)
  await page.openSession(id)
  await prompt(page, id, 'one')
  await page.next('prompt.completed')
  assert.deepEqual(sequence(page, id).slice(-6), [
    'turn.step.started 1',
    'turn.step.interrupted 1 error',
    'turn.ended failed',
    'error',
    'event.session.work_changed idle - none failed',
    'prompt.completed failed'
  ])
  const { payload } = await page.next('error')
  assert.equal(payload.code, 'provider.api_error')
  assert.equal(payload.details.statusCode, 400)
  assert.equal(payload.retryable, false)
  const ended = await page.next('turn.ended')
  assert.equal(ended.payload.interruptReason, 'error')
  assert.equal(ended.payload.error.code, payload.code)
  assert.match((await page.next('turn.step.interrupted')).payload.message, /^\[provider\.api_error\] /)

  const from = page.frames.length
  await prompt(page, id, 'two')
  await page.next('prompt.completed', from)
  const turn = sequence(page, id, from)
  assert.deepEqual(turn.slice(turn.indexOf('turn.step.started 1')), [
    'turn.step.started 1',
    'turn.step.retrying 1',
    'turn.step.started 2',
    'turn.step.retrying 2',
    'turn.step.started 3',
    'turn.step.completed 3 end_turn',
    'turn.ended completed',
    'event.session.work_changed idle - none completed',
    'prompt.completed completed'
  ])
  const retry = await page.next('turn.step.retrying', from)
  assert.equal(retry.payload.statusCode, 503)
  assert.equal(retry.payload.failedAttempt, 1)
  assert.equal(retry.payload.nextAttempt, 2)
  const phase = await page.next(frame => frame.payload?.phase?.kind === 'retrying', from)
  assert.equal(phase.payload.phase.statusCode, 503)
  await agree(page, id)
})

test('while a failed step waits for its next attempt, the snapshot shows none of its void text', async t => {
  const { page: open, cwd } = await scene(t, [[{ text: 'void' }, { cut: true }], [{ text: 'ok' }]], {
    config: { agent: { retry_base_ms: 60_000 } }
  })
  const page = await open()
  const id = await newSession(page, cwd)
  await page.openSession(id)
  await prompt(page, id, 'one')
  await page.next('turn.step.retrying')
  const { in_flight_turn, messages } = (await page.get(`/api/v1/sessions/${id}/snapshot`)).data
  assert.equal(in_flight_turn.assistant_text, '')
  assert.deepEqual(bubblesOf(messages.items), [{ who: 'user', text: 'one' }])
  await page.post(`/api/v1/sessions/${id}:abort`)
  await agree(page, id)
})

test('an abort in the middle of the text, and one while an approval is pending', async t => {
  const { page: open, cwd } = await scene(t, [[{ text: 'so far' }, { hang: true }], [bash('echo hi')]])
  const page = await open()
  const id = await newSession(page, cwd)
  await page.openSession(id)
  const one = await prompt(page, id, 'one')
  await page.next('assistant.delta')
  assert.deepEqual((await page.post(`/api/v1/sessions/${id}/prompts/${one.prompt_id}:abort`)).data, { aborted: true })
  await page.next('prompt.aborted')
  assert.deepEqual(sequence(page, id).slice(-4), [
    'turn.step.interrupted 1 aborted',
    'turn.ended cancelled',
    'event.session.work_changed idle - none cancelled',
    'prompt.aborted'
  ])
  assert.equal((await page.next('turn.ended')).payload.interruptReason, 'user_cancelled')

  const from = page.frames.length
  const two = await prompt(page, id, 'two')
  const asked = await page.next('event.approval.requested', from)
  await page.post(`/api/v1/sessions/${id}/prompts/${two.prompt_id}:abort`)
  await page.next('prompt.aborted', from)
  const resolved = await page.next('event.approval.resolved', from)
  assert.equal(resolved.payload.decision, 'cancelled')
  assert.equal(sequence(page, id, from).at(-2), 'event.session.work_changed idle - none cancelled')
  const again = await page.post(`/api/v1/sessions/${id}/approvals/${asked.payload.approval_id}`, { decision: 'approved' })
  assert.equal(again.code, 40902)
  await agree(page, id)
})

test('a queued prompt starts after the running one; a steered one becomes the next step of it', async t => {
  const {
    page: open,
    cwd,
    upstream
  } = await scene(t, [[{ text: 'one' }, { hang: true }], [{ text: 'both' }], [{ text: 'three' }, { hang: true }], [{ text: 'four' }]])
  const page = await open()
  const id = await newSession(page, cwd)
  await page.openSession(id)
  const one = await prompt(page, id, 'one')
  await page.next('assistant.delta')
  const two = await prompt(page, id, 'two')
  assert.equal(two.status, 'queued')
  await page.post(`/api/v1/sessions/${id}/prompts:steer`, { prompt_ids: [two.prompt_id] })
  upstream.release()
  await page.next('prompt.completed')
  const steered = sequence(page, id)
  assert.deepEqual(steered.slice(steered.indexOf('turn.step.started 1')), [
    'turn.step.started 1',
    'session.meta.updated',
    'prompt.submitted queued',
    'prompt.queued',
    'prompt.steered',
    'turn.step.completed 1 end_turn',
    'prompt.submitted running',
    'turn.step.started 2',
    'turn.step.completed 2 end_turn',
    'turn.ended completed',
    'event.session.work_changed idle - none completed',
    'prompt.completed completed'
  ])
  const { payload } = await page.next('prompt.steered')
  assert.equal(payload.activePromptId, one.prompt_id)
  assert.deepEqual(payload.promptIds, [two.prompt_id])

  const from = page.frames.length
  await prompt(page, id, 'three')
  await page.next('assistant.delta', from)
  const four = await prompt(page, id, 'four')
  assert.equal((await page.next('prompt.queued', from)).payload.queueLength, 1)
  upstream.release()
  await page.next(frame => frame.type === 'prompt.completed' && frame.payload.promptId === four.prompt_id, from)
  const queued = sequence(page, id, from)
  assert.deepEqual(queued.slice(queued.indexOf('turn.ended completed')).slice(0, 6), [
    'turn.ended completed',
    'event.session.work_changed busy turn none completed',
    'prompt.completed completed',
    'prompt.submitted running',
    'turn.started',
    'event.session.work_changed busy turn none -'
  ])
  await agree(page, id)
})

test('two calls that both need an approval are asked one after the other, started both, and then answered; any window may decide', async t => {
  const { page: open, cwd } = await scene(t, [[bash('echo one'), bash('echo two')], [{ text: 'done' }]])
  const page = await open()
  const id = await newSession(page, cwd)
  await page.openSession(id)
  const other = await open()
  await other.openSession(id)
  await prompt(page, id, 'both')
  for (const decider of [page, other]) {
    const from = decider.frames.length
    const open = [...decider.session(id).approvals.keys()][0]
    const approval = open ?? (await decider.next('event.approval.requested', from)).payload.approval_id
    await decider.post(`/api/v1/sessions/${id}/approvals/${approval}`, { decision: 'approved' })
    for (const each of [page, other]) {
      await each.next(frame => frame.type === 'event.approval.resolved' && frame.payload.approval_id === approval)
      assert.equal(each.session(id).approvals.has(approval), false)
    }
    await other.next(frame => frame.type === 'tool.call.started')
    if (decider === page) await other.next(frame => frame.type === 'event.approval.requested' && frame.payload.approval_id !== approval)
  }
  await Promise.all([page.next('prompt.completed'), other.next('prompt.completed')])
  const turn = sequence(page, id)
  assert.deepEqual(
    turn.filter(line => /^(event\.approval|tool)\./.test(line)),
    [
      ...Array.from({ length: 2 }, () => ['event.approval.requested', 'event.approval.resolved approved', 'tool.call.started']).flat(),
      'tool.result',
      'tool.result'
    ]
  )
  await agree(page, id)
  await agree(other, id)
})

test('a running tool is in the snapshot with its last output, and a queued prompt is aborted without a word about the turn', async t => {
  const { page: open, cwd } = await scene(t, [[bash('mkfifo pipe; echo started; cat pipe')], [{ text: 'done' }]])
  const page = await open()
  const id = await newSession(page, cwd)
  await page.openSession(id)
  await prompt(page, id, 'go', { permission_mode: 'yolo' })
  await page.next('tool.progress')
  const [running] = (await page.get(`/api/v1/sessions/${id}/snapshot`)).data.in_flight_turn.running_tools
  assert.equal(running.name, 'Bash')
  assert.deepEqual(running.args, { command: 'mkfifo pipe; echo started; cat pipe' })
  assert.deepEqual(running.last_progress, { kind: 'stdout', text: 'started\n' })
  const late = await open()
  await late.openSession(id)

  const queued = await prompt(page, id, 'later')
  await page.next('prompt.queued')
  const from = page.frames.length
  await page.post(`/api/v1/sessions/${id}/prompts/${queued.prompt_id}:abort`)
  const aborted = await page.next('prompt.aborted', from)
  assert.equal(aborted.payload.promptId, queued.prompt_id)
  assert.deepEqual(sequence(page, id, from), ['prompt.aborted'])

  await writeFile(join(cwd, 'pipe'), 'more')
  await Promise.all([page.next('prompt.completed'), late.next('prompt.completed')])
  assert.equal((await page.next('tool.result')).payload.output, 'started\nmore')
  await agree(page, id)
  await agree(late, id)
})

test('the status is told in two flavours, and every change of model, effort and permission mode is', async t => {
  const { page: open, cwd } = await scene(t, [[{ text: 'x' }]])
  const page = await open()
  const id = await newSession(page, cwd)
  await page.openSession(id)
  await prompt(page, id, 'one')
  await page.next('prompt.completed')
  const updates = page.frames.filter(frame => frame.type === 'agent.status.updated').map(frame => frame.payload)
  const { agentId: _a, sessionId: _s, type: _t, time: _z, ...keys } = updates.find(each => !each.phase)
  assert.deepEqual(Object.keys(keys).sort(), [
    'contextTokens',
    'contextUsage',
    'maxContextTokens',
    'model',
    'planMode',
    'swarmMode',
    'thinkingEffort',
    'usage'
  ])
  for (const each of updates.filter(update => update.phase)) {
    assert.deepEqual(Object.keys(each).sort(), ['agentId', 'phase', 'sessionId', 'time', 'type'])
  }
  const kinds = updates.flatMap(each => (each.phase ? [each.phase.kind] : []))
  assert.deepEqual(kinds, ['running', 'running', 'streaming', 'ended'])

  for (const [change, shown] of [
    [{ permission_mode: 'auto' }, { permission: 'auto' }],
    [{ thinking: 'off' }, { thinkingEffort: 'off' }]
  ] as const) {
    const from = page.frames.length
    assert.equal((await page.post(`/api/v1/sessions/${id}/profile`, { agent_config: change })).code, 0)
    const { payload } = await page.next('agent.status.updated', from)
    for (const [key, value] of Object.entries(shown)) assert.equal(payload[key], value)
  }
  const from = page.frames.length
  await prompt(page, id, 'two', { permission_mode: 'yolo' })
  assert.equal((await page.next(frame => frame.payload?.permission !== undefined, from)).payload.permission, 'yolo')
  await page.next('prompt.completed', from)
  await agree(page, id)
})
