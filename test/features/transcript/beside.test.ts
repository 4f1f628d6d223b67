/** What stands beside a timeline, and who gets what of it: the rules that seldom show in a whole session. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { HistoryRecord } from '../../../features/history/index.ts'
import { type Llm, sumUsage } from '../../../features/llm/index.ts'
import type { AgentHost, Session } from '../../../features/sessions/index.ts'
import { notification } from '../../../features/tasks/texts.ts'
import { Audience } from '../../../features/transcript/audience.ts'
import { Budget } from '../../../features/transcript/budget.ts'
import type { Grade } from '../../../features/transcript/contract.ts'
import { TranscriptIndex } from '../../../features/transcript/index-state.ts'
import { userMessages } from '../../../features/transcript/inputs.ts'
import { linksOf } from '../../../features/transcript/links.ts'
import { type CatchUp, OpJournal } from '../../../features/transcript/op-journal.ts'
import { type PageQuery, pageOf } from '../../../features/transcript/page.ts'
import { withLimits } from '../../../features/transcript/shown.ts'
import { sourceOf as source } from '../../../features/transcript/source.ts'
import { AgentStream, type StreamPorts } from '../../../features/transcript/stream.ts'
import type { Connection } from '../../../kernel/index.ts'

const text = (words: string) => [{ type: 'text', text: words }]
const user = { kind: 'user' }
const usage = { inputOther: 10, output: 5, inputCacheRead: 0, inputCacheCreation: 0 }
const accepted = (prompt_id: string) => ({ type: 'prompt.accepted', prompt_id, content: text(prompt_id) })
const begun = (turn_id: number, prompt_id: string) => [
  { type: 'turn.started', turn_id, origin: user, prompt_id },
  { type: 'message', role: 'user', turn_id, id: prompt_id, prompt_id }
]
const ended = (turn_id: number, ...prompt_ids: string[]) => [
  { type: 'turn.ended', turn_id, reason: 'completed' },
  { type: 'prompt.settled', prompt_ids, status: 'completed', turn_id }
]
const spawned = (taskId: string) => ({
  type: 'subagent.spawned',
  subagentId: 'agent-0',
  subagentName: 'coder',
  parentToolCallId: '',
  parentAgentId: 'main',
  runInBackground: true,
  taskId
})
const asked = (id: string) => ({ type: 'interaction.request', kind: 'approval', id, request: { turn_id: 0, tool_call_id: 'c' } })
const goal = { goal_id: 'g', objective: 'win', status: 'active', turns: 0, usage: {}, wall_clock_ms: 0, budget: {} }

/** What stands beside the timeline of these records; the nth has the time n seconds. */
const beside = (...records: readonly HistoryRecord[]) => indexOf(records).entities.shown()

/** Also where a checkpoint came behind each record. */
function indexOf(records: readonly HistoryRecord[]): TranscriptIndex {
  const index = new TranscriptIndex()
  let saved = new TranscriptIndex()
  for (const [at, record] of records.entries()) {
    index.take({ time: at * 1000, ...record }, at)
    saved.take({ time: at * 1000, ...record }, at)
    saved = TranscriptIndex.load(JSON.parse(JSON.stringify(saved.save())))
    assert.deepEqual(saved.entities.shown(), index.entities.shown())
  }
  return index
}

/** The records as a journal; positions are places. */
const sourceOf = (records: readonly HistoryRecord[]) =>
  source(indexOf(records), {
    end: records.length,
    async *records({ from = 0, to = records.length }) {
      for (const [at, value] of records.slice(0, to).entries()) if (at >= from) yield { at, next: at + 1, value }
    }
  })
const at = (seconds: number) => new Date(seconds * 1000).toISOString()

test('a prompt that was steered and taken ends with its turn, one that was not waits again as if it had not been', () => {
  const steered = (...prompt_ids: string[]) => ({ type: 'prompt.steered', turn_id: 0, prompt_ids })
  const taken = { type: 'message', role: 'user', turn_id: 0, id: 'taken', prompt_id: 'taken', content: text('taken') }
  const { prompts } = beside(
    accepted('first'),
    ...begun(0, 'first'),
    accepted('taken'),
    accepted('late'),
    steered('taken'),
    steered('late'),
    taken,
    ...ended(0, 'first', 'taken')
  )
  assert.deepEqual(
    prompts.map(({ promptId, status, steeredAt, finishedAt }) => [promptId, status, steeredAt, finishedAt]),
    [
      ['first', 'completed', undefined, at(9)],
      ['taken', 'completed', at(5), at(9)],
      ['late', 'queued', undefined, undefined]
    ]
  )
})

test('undo takes plan mode and the todo list back to what they were before its turns', () => {
  const entered = { type: 'plan.entered', id: 'a-b-c', by: 'user' }
  const first = [accepted('p0'), ...begun(0, 'p0'), ...ended(0, 'p0')]
  const second = [accepted('p1'), ...begun(1, 'p1'), { type: 'plan.left', id: 'a-b-c', how: 'user' }, ...ended(1, 'p1')]
  const undone = { type: 'context.undone', from: 1, context_tokens: 0, turns: 1 }
  assert.deepEqual(beside(entered, ...first, ...second).meta.modes, undefined)
  assert.deepEqual(beside(...first, entered, ...second, undone).meta.modes, { plan: {} })
  assert.deepEqual(beside(entered, ...first, ...second, undone).meta.modes, { plan: {} })
  assert.deepEqual(beside(...first, accepted('p1'), ...begun(1, 'p1'), entered, ...ended(1, 'p1'), undone).meta.modes, undefined)
})

test('in a copy nothing waits, runs or is aimed at that goes on in its source', () => {
  const task = { taskId: 'bash-1', description: 'ls', kind: 'process', command: 'ls', pid: 1, exitCode: null }
  const info = { ...task, status: 'running', startedAt: 0, endedAt: null, detached: true }
  const { tasks, interactions, prompts, meta } = beside(
    { type: 'goal.updated', goal },
    { type: 'task.started', session_id: 's', agent_id: 'main', info },
    spawned('agent-1'),
    { type: 'subagent.completed', subagentId: 'agent-0', resultSummary: 'done' },
    asked('i0'),
    { type: 'interaction.resolved', kind: 'approval', id: 'i0', how: 'answered', answer: { decision: 'approved' } },
    asked('i1'),
    accepted('over'),
    { type: 'prompt.settled', prompt_ids: ['over'], status: 'aborted' },
    accepted('waits'),
    { type: 'session.forked', from: 'session_b' }
  )
  assert.equal(meta.goal, undefined)
  assert.deepEqual(
    tasks.map(({ taskId, state, endedAt }) => [taskId, state, endedAt]),
    [
      ['bash-1', 'lost', at(10)],
      ['agent-1', 'completed', at(3)]
    ]
  )
  assert.deepEqual(
    interactions.map(({ interactionId, state }) => [interactionId, state]),
    [
      ['i0', 'approved'],
      ['i1', 'cancelled']
    ]
  )
  assert.deepEqual(
    prompts.map(({ promptId }) => promptId),
    ['over']
  )
})

test('what is told of a subagent is of its newest task, which began when it was at work first', () => {
  const started = { type: 'subagent.started', subagentId: 'agent-0' }
  const suspended = { type: 'subagent.suspended', subagentId: 'agent-0', reason: 'rate limit' }
  const completed = { type: 'subagent.completed', subagentId: 'agent-0', resultSummary: 'done' }
  const { tasks } = beside(spawned('one'), started, completed, spawned('two'), started, suspended, started, completed)
  assert.deepEqual(
    tasks.map(({ taskId, startedAt, endedAt }) => [taskId, startedAt, endedAt]),
    [
      ['one', at(1), at(2)],
      ['two', at(4), at(7)]
    ]
  )
})

test('the context has the size that the last step measured; other requests count as usage alone', () => {
  const step = { type: 'step.end', turn_id: 0, step: 1, reason: 'end_turn', model: 'm', usage }
  const other = { type: 'tokens.spent', model: 'small', usage: { ...usage, inputOther: 1000 } }
  const { agent } = beside(accepted('p'), ...begun(0, 'p'), { type: 'step.begin', turn_id: 0, step: 1, step_id: 's' }, step, other).meta
  assert.deepEqual([agent?.contextTokens, agent?.usage?.total?.inputOther], [15, 1010])
  assert.deepEqual(agent?.usage?.currentTurn, sumUsage(usage, other.usage), 'both were spent while the turn ran')

  const llm = { resolve: () => ({ max_input_size: 10, max_context_size: 1000 }), effort: () => 'high' } as unknown as Llm
  const limited = withLimits({ agent: { model: 'm', contextTokens: 15 } }, llm).agent
  assert.deepEqual([limited?.maxContextTokens, limited?.contextUsage, limited?.thinkingEffort], [10, 1, 'high'])
})

test('what a turn spends is told until the next one begins, and whether one runs', () => {
  const ends = { reason: 'end_turn', model: 'm', usage }
  const step = (turn_id: number) => [
    { type: 'step.begin', turn_id, step: 1, step_id: `s${turn_id}` },
    { type: 'step.end', turn_id, step: 1, ...ends }
  ]
  const called = { type: 'step.message', turn_id: 0, step: 2, content: [], tool_calls: [], model: 'm', usage }
  const first = [accepted('p'), ...begun(0, 'p'), ...step(0), { type: 'step.begin', turn_id: 0, step: 2, step_id: 's' }, called]
  const over = [...first, { type: 'step.end', turn_id: 0, step: 2, ...ends }, ...ended(0, 'p'), { type: 'tokens.spent', model: 'm', usage }]
  const next = [...over, accepted('q'), ...begun(1, 'q')]
  const told = [[], first, over, next, [...next, ...step(1)]].map(records => {
    const { activity, agent } = beside(...records).meta
    return [activity, agent?.usage?.currentTurn?.output, agent?.usage?.total?.output]
  })
  assert.deepEqual(told, [
    [undefined, undefined, undefined],
    ['turn', 10, 10],
    ['idle', 10, 15],
    ['turn', undefined, 15],
    ['turn', 5, 20]
  ])
})

test('a goal tells what it has spent, also without a budget', () => {
  const spent = { ...goal, usage: { m: usage } }
  assert.deepEqual(beside({ type: 'goal.updated', goal: spent }).meta.goal, { objective: 'win', status: 'active', budgetUsed: 5 })
  const begins = { type: 'goal.turn', goal_id: 'g', turn_id: 0, counts: true, goal: spent }
  assert.equal(beside({ type: 'goal.updated', goal }, begins).meta.goal?.budgetUsed, 5, 'with each turn')
  const limited = { type: 'goal.updated', goal: { ...spent, budget: { tokens: 9 } } }
  assert.deepEqual([beside(limited).meta.goal?.budgetUsed, beside(limited).meta.goal?.budgetLimit], [5, 9])
})

test('a turn names the prompt that began it, and words that came into it say where from; the end of a task is told in words', async () => {
  const task = { kind: 'task', taskId: 'bash-1', status: 'completed', notificationId: 'task:bash-1:completed' }
  const process = { kind: 'process', taskId: 'bash-1', description: 'ls', command: 'ls', pid: 1, exitCode: 0 } as const
  const info = { ...process, status: 'completed', startedAt: 0, endedAt: 2000, detached: true } as const
  const notice = notification({ session_id: 's', agent_id: 'main', info, compactions: 0, begun: 0 }, '/log')
  const inside = (id: string, origin?: object) => ({
    type: 'message',
    role: 'user',
    turn_id: 0,
    id,
    content: text(id),
    ...(origin ? { origin } : {})
  })
  const step = { type: 'step.begin', turn_id: 0, step: 1, step_id: 's' }
  const records = [
    accepted('p'),
    ...begun(0, 'p'),
    inside('steered', user),
    inside(notice, task),
    step,
    ...ended(0, 'p'),
    { type: 'turn.started', turn_id: 1, origin: task }
  ]
  const { items } = await pageOf(sourceOf(records), { page_size: 5 })
  const turns = items.flatMap(item => (item.kind === 'turn' ? [item] : []))
  assert.deepEqual(
    turns.map(({ triggerPromptId }) => triggerPromptId),
    ['p', undefined]
  )
  assert.deepEqual(
    turns[0]?.steps[0]?.frames.map(frame => frame.kind === 'text' && [frame.text, frame.origin, frame.taskId]),
    [
      ['steered', user, undefined],
      ['Background task completed\nThe command "ls" (bash-1) ended after 2.0 s with exit code 0.', task, 'bash-1']
    ]
  )
})

test('the task of a subagent says with what it thinks', () => {
  const { tasks } = beside({ ...spawned('one'), model: 'm', thinkingEffort: 'high' })
  assert.deepEqual([tasks[0]?.model, tasks[0]?.thinkingEffort], ['m', 'high'])
})

test('an approval that nobody answered is cancelled, and says why', () => {
  const { interactions } = beside(asked('one'), { type: 'interaction.resolved', kind: 'approval', id: 'one', how: 'withdrawn' })
  const [one] = interactions
  assert.deepEqual([one?.state, one?.response], ['cancelled', { decision: 'cancelled', cancelled: true, reason: 'withdrawn' }])
})

test('a question shows what was answered under the words of the question, or that nothing was', () => {
  const request = { questions: [] }
  const answers = { 'Which snake_case?': 'both' }
  const { interactions } = beside(
    { type: 'interaction.request', kind: 'question', id: 'one', request },
    { type: 'interaction.request', kind: 'question', id: 'two', request },
    { type: 'interaction.resolved', kind: 'question', id: 'one', how: 'answered', answer: { answers, note: 'sure' } },
    { type: 'interaction.resolved', kind: 'question', id: 'two', how: 'answered', answer: { dismissed: true } }
  )
  assert.deepEqual(
    interactions.map(({ state, response }) => [state, response]),
    [
      ['answered', { answers, note: 'sure' }],
      ['dismissed', null]
    ]
  )
})

test('inline media are in no transcript, whichever way they came', () => {
  const image = (source: object) => ({ type: 'image', source })
  const far = image({ kind: 'url', url: 'https://example.test/a.png' })
  const inline = [
    image({ kind: 'base64', media_type: 'image/png', data: 'AAAA' }),
    image({ kind: 'url', url: 'data:image/png;base64,AAAA' })
  ]
  const { prompts, attachments } = beside({ ...accepted('p'), content: [...inline, far] }, ...begun(0, 'p'))
  assert.deepEqual(prompts[0]?.content, [...text('[image]'), ...text('[image]'), far])
  assert.deepEqual(
    attachments.map(({ attachmentId, mediaType, source }) => [attachmentId, mediaType, source]),
    [
      ['t0.att1', 'image/png', undefined],
      ['t0.att2', 'image/*', undefined],
      ['t0.att3', 'image/*', { kind: 'url', url: 'https://example.test/a.png' }]
    ]
  )
})

test('inputs that opened turns: of the user, of a command of theirs, of a schedule; not what the program said', async () => {
  const noticed = (turn_id: number, origin: object, words: string) => [
    { type: 'turn.started', turn_id, origin },
    { type: 'message', role: 'user', turn_id, origin, content: text(words) },
    { type: 'turn.ended', turn_id, reason: 'completed' }
  ]
  const records = [
    accepted('typed'),
    ...begun(0, 'typed'),
    ...ended(0, 'typed'),
    ...noticed(1, { kind: 'cron_job', jobId: 'j' }, 'every day'),
    ...noticed(2, { kind: 'shell_command' }, '!ls'),
    ...noticed(3, { kind: 'task', taskId: 'bash-1' }, 'the task is over')
  ]
  assert.deepEqual(
    (await userMessages(sourceOf(records))).map(({ turn_id, origin, prompt }) => [turn_id, origin.kind, prompt]),
    [
      ['t0', 'user', 'typed'],
      ['t1', 'cron', 'every day'],
      ['t2', 'user', '!ls']
    ]
  )
})

test('a compaction that a turn waits for leaves a marker for its begin and one for the turn', async () => {
  const { items } = await pageOf(sourceOf([{ type: 'compaction.begin', trigger: 'auto', turn_id: 3 }]), { page_size: 1 })
  assert.deepEqual(
    items.map(item => item.kind === 'marker' && [item.markerId, (item.payload as { phase?: string }).phase]),
    [
      ['m0', 'started'],
      ['m0.1', 'blocked']
    ]
  )
})

test('a turn that comes to wait for a compaction beside its steps leaves the same marker when it begins to', async () => {
  const records = [
    { type: 'compaction.begin', trigger: 'auto' },
    { type: 'compaction.blocked', turn_id: 3 }
  ]
  const { items } = await pageOf(sourceOf(records), { page_size: 1 })
  assert.deepEqual(
    items.map(item => item.kind === 'marker' && item.payload),
    [
      { phase: 'started', trigger: 'auto' },
      { phase: 'blocked', turnId: 3 }
    ]
  )
})

test('markers of goals, faults, commands of the user and their interruptions say what the events of these say', async () => {
  const origin = { kind: 'user', skillActivations: [{ activationId: 'a', skillName: 'greet' }] }
  const error = { code: 'provider.api_error', message: 'no', details: { statusCode: 400 }, retryable: false }
  const records = [
    { type: 'goal.updated', goal: { ...goal, turns: 2 } },
    { type: 'goal.updated', goal: null, change: { kind: 'lifecycle', actor: 'user' } },
    { type: 'turn.started', turn_id: 7, origin },
    { type: 'turn.ended', turn_id: 7, reason: 'cancelled', interrupt_reason: 'user_cancelled' },
    { type: 'warning', code: 'w', message: 'mind' },
    { type: 'failed', ...error },
    { type: 'turn.started', turn_id: 8, origin: user },
    { type: 'turn.ended', turn_id: 8, reason: 'failed', error }
  ]
  const { items } = await pageOf(sourceOf(records), { page_size: 5 })
  const told = items.flatMap(item => (item.kind === 'marker' ? [[item.marker, item.payload] as const] : []))
  const [[, set] = [], ...rest] = told
  const { snapshot, ...shown } = set as { snapshot: { turnsUsed: number; objective: string } }
  assert.deepEqual([shown, snapshot.turnsUsed, snapshot.objective], [{ objective: 'win', status: 'active' }, 2, 'win'])
  const fault = ['notice', { level: 'error', event: error, code: error.code, message: 'no' }]
  assert.deepEqual(rest, [
    ['goal', { status: 'cleared', snapshot: null, change: { kind: 'lifecycle', actor: 'user' } }],
    ['skill', { activationId: 'a', skillName: 'greet', trigger: 'user-slash' }],
    ['interruption', { turnId: 7, reason: 'user_cancelled' }],
    ['notice', { level: 'warning', event: { code: 'w', message: 'mind' }, code: 'w', message: 'mind' }],
    fault,
    fault
  ])
})

test('what is before the first turn that is left comes with the page of the newest, never behind a cursor', async () => {
  const compaction = { type: 'compaction.begin', trigger: 'manual' }
  const undone = { type: 'context.undone', from: 0, context_tokens: 0 }
  const records = [compaction, accepted('a'), ...begun(0, 'a'), ...ended(0, 'a'), undone, accepted('b'), ...begun(1, 'b'), ...ended(1, 'b')]
  const ids = async (query: Omit<PageQuery, 'page_size'>) =>
    (await pageOf(sourceOf(records), { page_size: 5, ...query })).items.map(item => ('turnId' in item ? item.turnId : item.kind))
  assert.deepEqual(await ids({}), ['marker', 'marker', 't1'])
  assert.deepEqual(await ids({ after_turn: 't0' }), ['t1'])
  assert.deepEqual(await ids({ after_turn: 't1' }), [])
})

test('a call names the agents that it started: a child, or members of a swarm', () => {
  const by = (subagentId: string, more: object) => linksOf({ ...spawned('task'), subagentId, parentToolCallId: 'c', ...more })
  assert.deepEqual(
    [...by('agent-0', {}), ...by('agent-1', { swarmIndex: 0 }), ...by('agent-2', { parentToolCallId: '' })],
    [
      { toolCallId: 'c', change: { agentRef: { agentId: 'agent-0', role: 'child' } } },
      { toolCallId: 'c', change: { agentRef: { agentId: 'agent-1', role: 'member' } } }
    ]
  )
})

test('the newest 2000 batches are kept for those who were away', () => {
  const journal = new OpJournal(0)
  for (let n = 1; n <= 2001; n++) journal.add([], 1)
  const kept = journal.since(1)
  assert.deepEqual([kept.complete, kept.batches.length, kept.batches[0]?.seq], [true, 2000, 2])
  assert.equal(journal.since(0).complete, false)
})

test('the newest entities keep their large fields up to the limit; one that grows counts once', () => {
  const slimmed: string[] = []
  const budget = new Budget(100, id => slimmed.push(id))
  budget.put('a', 60)
  budget.put('a', 60)
  budget.put('b', 40)
  assert.deepEqual(slimmed, [])
  budget.put('c', 1)
  assert.deepEqual(slimmed, ['a'])
  assert.deepEqual(budget.sizes(), [
    ['b', 40],
    ['c', 1]
  ])
  // Tasks lose what they put out and their summary.
  const end = (subagentId: string) => ({ type: 'subagent.completed', subagentId, resultSummary: 'x'.repeat(300_000) })
  const other = { ...spawned('two'), subagentId: 'agent-1' }
  const { tasks } = beside(spawned('one'), end('agent-0'), other, end('agent-1'))
  assert.deepEqual(
    tasks.map(({ taskId, state, resultSummary }) => [taskId, state, resultSummary?.length]),
    [
      ['one', 'completed', undefined],
      ['two', 'completed', 300_000]
    ]
  )
})

test('a baseline comes when a connection gets more than it had, and when what it missed is gone', () => {
  const told: string[] = []
  const send = (_connection: Connection, _session: Session, type: string) => told.push(type)
  const audience = new Audience({ id: 'session_a' } as Session, { pack: 'transcript', send })
  const agent = { id: 'main' } as AgentHost
  const connection = { id: 'c', suppress: () => () => undefined, own: (undo: () => void) => undo } as unknown as Connection
  let missed: CatchUp = { batches: [], latest_seq: 1, complete: false }
  const stream = {
    seq: 1,
    since: () => missed,
    baseline(withSteps: boolean) {
      told.push(withSteps ? 'with steps' : 'turns alone')
      return { items: [], hasMoreOlder: false }
    }
  } as unknown as AgentStream
  const follow = (grade: Grade, since?: number) => {
    audience.set(connection, new Map([['*', grade]]))
    audience.begin(connection, agent, stream, since)
    return told.splice(0)
  }
  const whole = ['with steps', 'transcript.reset']
  assert.deepEqual(follow('turn'), ['turns alone', 'transcript.reset'])
  assert.deepEqual(follow('delta'), whole)
  assert.deepEqual(follow('block'), [])
  assert.deepEqual(follow('delta'), whole, 'it went without the pieces for a while')
  assert.deepEqual(follow('delta'), [])
  assert.deepEqual(follow('delta', 0), whole, 'the batches are gone')
  missed = { batches: [{ seq: 1, ops: [{ op: 'meta.merge', meta: {} }] }], latest_seq: 1, complete: true }
  assert.deepEqual(follow('delta', 0), ['transcript.ops'])
  assert.deepEqual(follow('off'), [])
  assert.deepEqual(follow('delta'), whole, 'it had none for a while')

  // What comes between a frame and what is decided on it goes out by the lower grade.
  const target = { type: 'frame', turnId: 't0', stepId: 't0.1', frameId: 't0.1.f1' } as const
  const dispatch = (grade: Grade) => {
    audience.set(connection, new Map([['*', grade]]))
    audience.dispatch(agent, { seq: 2, ops: [{ op: 'append', target, offset: 0, text: 'a' }] })
    return told.splice(0)
  }
  assert.deepEqual([dispatch('delta'), dispatch('block'), dispatch('off'), dispatch('delta')], [['transcript.ops'], [], [], []])
})

test('numbers of batches go on behind a stream that was closed before it had the journal', async () => {
  const index = new TranscriptIndex()
  const history = { track: async () => ({ value: index }), end: () => 1, records: async function* () {} }
  const host = { id: 'main', session: { id: 's' } } as unknown as AgentHost
  const stream = (of: () => Promise<unknown>) =>
    new AgentStream(host, { histories: { of }, llm: () => undefined, dispatch() {}, failed() {} } as unknown as StreamPorts)
  const first = await stream(async () => history).ready
  first.streamed(() => [{ op: 'items.remove', ids: [] }])
  const { seq } = first
  first.close()
  stream(() => new Promise(() => undefined)).close()
  assert.equal((await stream(async () => history).ready).seq, seq)
})
