/**
 * One scripted run in which a socket sees every event that the contract lists, each with its fields, its order and its scope. Left out are
 * events of watched files.
 */
import assert from 'node:assert/strict'
import { appendFile, mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { loadDefaultPacks } from '../../features/default-packs.ts'
import { type Frame, startTestKernel } from '../../kernel/testing.ts'
import { busyModel } from '../helpers/busy-model.ts'
import { crashScene, type Said } from '../helpers/crash-scene.ts'
import type { Step } from '../helpers/fake-upstream.ts'

type Scope = 'session' | 'session, to everyone' | 'global'
interface Row {
  readonly type: string
  readonly scope: Scope
  readonly volatile?: true
  /** Of the payload, beside `type`, `agentId` and `sessionId`. */
  readonly fields: string
}

const row = (type: string, fields = '', scope: Scope = 'session'): Row => ({ type, fields, scope })
const volatile = (type: string, fields: string): Row => ({ type, fields, scope: 'session', volatile: true })

const table: readonly Row[] = [
  row('turn.started', 'turnId origin'),
  row('turn.ended', 'turnId reason durationMs'),
  row('turn.step.started', 'turnId step stepId'),
  row('turn.step.completed', 'turnId step stepId usage finishReason'),
  row('turn.step.interrupted', 'turnId step reason'),
  row('turn.step.retrying', 'turnId step failedAttempt nextAttempt maxAttempts delayMs errorName errorMessage statusCode'),
  volatile('assistant.delta', 'turnId delta'),
  volatile('thinking.delta', 'turnId delta'),
  row('tool.call.started', 'turnId toolCallId name args'),
  volatile('tool.call.delta', 'turnId toolCallId'),
  volatile('tool.progress', 'turnId toolCallId update'),
  row('tool.result', 'turnId toolCallId output'),
  row('event.approval.requested', 'approval_id session_id tool_call_id tool_name action tool_input_display created_at expires_at'),
  row('event.approval.resolved', 'approval_id decision resolved_at'),
  row('event.question.requested', 'question_id session_id questions created_at'),
  row('event.question.answered', 'question_id answers resolved_at'),
  row('event.question.dismissed', 'question_id dismissed_at'),
  row('subagent.spawned', 'subagentId subagentName parentToolCallId runInBackground'),
  row('subagent.started', 'subagentId'),
  row('subagent.suspended', 'subagentId reason'),
  row('subagent.completed', 'subagentId resultSummary'),
  row('subagent.failed', 'subagentId error'),
  row('task.started', 'info'),
  row('task.terminated', 'info'),
  volatile('shell.started', 'commandId taskId'),
  volatile('shell.output', 'commandId taskId update'),
  volatile('shell.completed', 'commandId taskId isError'),
  row('compaction.started', 'trigger'),
  row('compaction.completed', 'result'),
  row('compaction.cancelled'),
  row('skill.activated', 'activationId skillName trigger'),
  row('goal.updated', 'snapshot'),
  row('prompt.submitted', 'promptId userMessageId status content createdAt'),
  row('prompt.queued', 'promptId content queueLength'),
  row('prompt.steered', 'activePromptId promptIds content steeredAt'),
  row('prompt.completed', 'promptId finishedAt'),
  row('prompt.aborted', 'promptId abortedAt'),
  row('error', 'code message retryable'),
  row('warning', 'message'),
  row('session.meta.updated', 'patch', 'session, to everyone'),
  row('event.session.created', 'session', 'session, to everyone'),
  row('event.session.work_changed', 'busy main_turn_active pending_interaction', 'session, to everyone'),
  row('event.session.status_changed', 'status previous_status', 'session, to everyone'),
  row('event.session.archived', 'sessionId workspace_id', 'global'),
  row('event.workspace.created', 'id root name created_at last_opened_at session_count workspace', 'global'),
  row('event.workspace.updated', 'id root name created_at last_opened_at session_count workspace', 'global'),
  row('event.workspace.deleted', 'workspace_id root', 'global'),
  row('event.config.changed', 'changedFields changed_fields config', 'global'),
  row('event.config.warning', 'warnings', 'global'),
  row('event.model_catalog.changed', 'changed unchanged failed', 'global'),
  row('event.plugin.changed', '', 'global')
]

/** Requests of one step before it fails. */
const attempts = 2

/** Failures that the model has once, by the words of the prompt. */
function model() {
  const failures = new Map<string, number>()
  const times = (count: number, name: string, steps: readonly Step[]) => {
    const before = failures.get(name) ?? 0
    failures.set(name, before + 1)
    return before < count ? steps : undefined
  }
  return (messages: readonly Said[]): readonly Step[] => {
    const since = messages.findLastIndex(({ role }) => role === 'assistant') + 1
    const last = JSON.stringify(messages.slice(since).map(({ content }) => content))
    const answered = messages.at(-1)?.role === 'tool'
    const refused: readonly Step[] = [{ status: 400, body: { error: { message: 'no' } } }]
    const later: readonly Step[] = [{ status: 429, headers: { 'retry-after': '0' }, body: { error: { message: 'slow down' } } }]
    if (JSON.stringify(messages.at(-1)?.content).includes('replaced by a note that you write now')) {
      return times(1, 'note', refused) ?? busyModel(messages)
    }
    if (/do:child:limiteda/.test(last)) return times(attempts, 'limited', later) ?? busyModel(messages)
    if (/do:child:limitedb/.test(last)) return times(1, 'other', [{ text: 'Wait. ' }, { hang: true }]) ?? busyModel(messages)
    if (last.includes('flaky'))
      return times(1, 'flaky', [{ status: 503, headers: { 'retry-after': '0' } }]) ?? [{ thinking: 'hm' }, { text: 'again' }]
    if (last.includes('broken') && !answered) return refused
    if (last.includes('standstill') && !answered) return [{ text: 'Wait. ' }, { hang: true }, { text: 'Done.' }]
    if (last.includes('prints') && !answered) return [{ tools: [{ name: 'Bash', id: 'printed', args: { command: 'echo out' } }] }]
    if (last.includes('delegate') && !answered) {
      return [{ tools: [{ name: 'Agent', id: 'delegated', args: { prompt: 'broken', description: 'will fail' } }] }]
    }
    return busyModel(messages)
  }
}

test('every event of the list is seen at a socket, with its fields, in order, by whom it is for', async t => {
  const { home, place, upstream } = await crashScene(t, { model: model(), tables: `[loop_control]\nmax_attempts_per_step = ${attempts}\n` })
  const catalog = createServer((_request, response) => response.end(JSON.stringify({ data: [{ id: 'one', context_length: 1000 }] })))
  await new Promise<void>(resolve => catalog.listen(0, '127.0.0.1', resolve))
  t.after(() => void catalog.close())
  await writeFile(join(place, 'AGENTS.md'), 'words '.repeat(8000))
  await mkdir(join(home, 'skills', 'greet'), { recursive: true })
  await writeFile(join(home, 'skills', 'greet', 'SKILL.md'), '---\nname: greet\ndescription: greets\n---\nSay hello.\n')
  const { rest, connect } = await startTestKernel(t, {
    packs: await loadDefaultPacks(),
    home,
    config: { subagents: { swarm_spacing_ms: 0, swarm_limited_ms: 1 } }
  })
  const [watcher, stranger] = [await connect(), await connect()]
  const post = async (path: string, body?: unknown) => {
    const answer = await rest.json('POST', `/api/v1${path}`, body)
    assert.ok([0, 40909].includes(answer.code), `${path}: ${answer.code} ${answer.msg} ${JSON.stringify(answer.details)}`)
    return answer.data as never
  }

  const { id: workspace } = (await post('/workspaces', { root: place })) as { id: string }
  await rest.json('PATCH', `/api/v1/workspaces/${workspace}`, { name: 'renamed' })
  await post('/config', { default_permission_mode: 'manual' })
  await appendFile(join(home, 'config.toml'), '\n[theme]\n')
  await rest.json('GET', '/api/v1/config')
  const base_url = `http://127.0.0.1:${(catalog.address() as AddressInfo).port}/v1`
  await post('/config', { providers: { listed: { type: 'compat_chat', base_url, api_key: 'k', model_source: 'discover' } } })
  await post('/providers/listed:refresh')
  await mkdir(join(place, 'plugin'))
  await writeFile(join(place, 'plugin', 'svc.plugin.json'), JSON.stringify({ name: 'small' }))
  await post('/plugins', { source: join(place, 'plugin') })
  const { id } = (await post('/sessions', { workspace_id: workspace })) as { id: string }
  const made = await watcher.next('event.session.created')
  await watcher.request('subscribe', { session_ids: [id], cursors: { [id]: { seq: made.seq, epoch: made.epoch } } })
  const session = `/sessions/${id}`

  let questions = 0
  const answerAll = (frame: Frame) => {
    const { approval_id, question_id, questions: asked } = frame.payload
    if (frame.type === 'event.approval.requested') void post(`${session}/approvals/${approval_id}`, { decision: 'approved' })
    if (frame.type !== 'event.question.requested') return
    if (questions++ > 0) void post(`${session}/questions/${question_id}:dismiss`)
    else void post(`${session}/questions/${question_id}`, { answers: { q_0: { kind: 'single', option_id: asked[0].options[0].id } } })
  }
  watcher.ws.on('message', data => answerAll(JSON.parse(String(data)) as Frame))

  const prompt = async (text: string) => {
    const { prompt_id } = (await post(`${session}/prompts`, { content: [{ type: 'text', text }] })) as { prompt_id: string }
    return prompt_id
  }
  const settled = (prompt_id: string) =>
    watcher.next(({ type, payload }) => ['prompt.completed', 'prompt.aborted'].includes(type) && payload.promptId === prompt_id)
  const run = async (text: string) => settled(await prompt(text))

  await run('flaky')
  await run('do:shell:a')
  await run('prints')
  await run('do:ask:b')
  await run('do:ask:c')
  await run('do:agent:d')
  const swarm = await prompt('do:swarm:limited')
  await watcher.next('subagent.suspended')
  upstream.release()
  await settled(swarm)
  await run('delegate')
  await run('do:back:e')
  await watcher.next('task.notified')
  await watcher.next(() => watcher.frames.findLast(({ type }) => type === 'event.session.work_changed')?.payload.busy === false)

  const waiting = await prompt('standstill')
  await watcher.next(({ type, payload }) => type === 'assistant.delta' && payload.delta === 'Wait. ')
  const steered = await prompt('do:talk:f')
  await post(`${session}/prompts/${steered}:steer`)
  upstream.release()
  await settled(waiting)
  const stopped = await prompt('standstill again')
  await watcher.next(({ type, payload }) => type === 'turn.started' && payload.promptId === stopped)
  await post(`${session}/prompts/${stopped}:abort`)
  await settled(stopped)

  await post(`${session}:compact`, {})
  await watcher.next('compaction.cancelled')
  await post(`${session}:compact`, {})
  await watcher.next('compaction.completed')
  await post(`${session}/skills/greet:activate`, {})
  await watcher.next('skill.activated')
  await post(`${session}/profile`, { agent_config: { goal_objective: 'reach it' } })
  await post(`${session}/profile`, { agent_config: { goal_control: 'cancel' } })
  await run('broken')
  await post(`${session}:archive`)
  await rest.json('DELETE', `/api/v1/workspaces/${workspace}`)
  await watcher.next('event.workspace.deleted')
  await stranger.next('event.workspace.deleted')

  const missing = table.filter(({ type }) => !watcher.frames.some(frame => frame.type === type)).map(({ type }) => type)
  assert.deepEqual(missing, [], 'were never seen')
  for (const { type, fields, scope, volatile: isVolatile } of table) {
    for (const frame of watcher.frames.filter(one => one.type === type)) {
      const wanted = ['type', 'agentId', 'sessionId', ...fields.split(' ').filter(name => name !== '')]
      assert.deepEqual(
        wanted.filter(name => !(name in frame.payload)),
        [],
        `${type} lacks fields: ${JSON.stringify(frame.payload).slice(0, 300)}`
      )
      assert.equal(frame.payload.type, type)
      assert.equal(frame.volatile, isVolatile, type)
      assert.equal(frame.session_id, scope === 'global' ? '__global__' : id, type)
      assert.match(frame.epoch ?? '', /^ep_/)
      assert.equal(typeof frame.timestamp, 'string')
    }
    assert.equal(
      stranger.frames.some(frame => frame.type === type),
      scope !== 'session',
      `${type} at a client without a subscription`
    )
  }
  for (const stream of [id, '__global__']) {
    const seqs = watcher.frames.filter(frame => frame.session_id === stream && !frame.volatile).map(({ seq }) => seq)
    assert.deepEqual(
      seqs,
      seqs.map((_, at) => (seqs[0] ?? 0) + at),
      'durable events have no gaps and no doubles'
    )
  }
  inOrder(watcher.frames.filter(frame => frame.session_id === id && frame.payload.agentId === 'main'))
})

/** The order that clients rely on, turn by turn. */
function inOrder(frames: readonly Frame[]): void {
  const at = (type: string, fits: (payload: Frame['payload']) => boolean) => frames.findIndex(one => one.type === type && fits(one.payload))
  for (const { type, payload } of frames) {
    if (type === 'turn.ended') {
      const ended = frames.findIndex(one => one.payload === payload)
      assert.ok(at('turn.started', ({ turnId }) => turnId === payload.turnId) < ended)
      const after = frames.slice(ended + 1)
      const settled = after.findIndex(one => one.type === 'prompt.completed' || one.type === 'prompt.aborted')
      const work = after.findIndex(one => one.type === 'event.session.work_changed')
      if (settled >= 0 && work >= 0) assert.ok(work < settled, 'work_changed comes between turn.ended and the end of the prompt')
    }
    if (type === 'tool.result') {
      const result = frames.findIndex(one => one.payload === payload)
      const started = at('tool.call.started', ({ toolCallId }) => toolCallId === payload.toolCallId)
      assert.ok(started >= 0 && started < result)
    }
    if (type === 'event.approval.requested') {
      const asked = frames.findIndex(one => one.payload === payload)
      assert.ok(asked < at('tool.call.started', ({ toolCallId }) => toolCallId === payload.tool_call_id), 'asked before the call starts')
      const before = frames.slice(0, asked).findLast(one => one.type === 'event.session.work_changed')
      assert.equal(before?.payload.pending_interaction, 'approval')
    }
    if (type === 'event.question.requested') {
      const asked = frames.findIndex(one => one.payload === payload)
      assert.ok(at('tool.call.started', ({ toolCallId }) => toolCallId === payload.tool_call_id) < asked, 'asked after the call started')
    }
  }
}
