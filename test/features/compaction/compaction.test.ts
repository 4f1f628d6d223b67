import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { CompactionNotes } from '../../../features/compaction/index.ts'
import type { LlmRequest } from '../../../features/llm/index.ts'
import { listMessages } from '../../../features/messages/index.ts'
import { abortSession, listPrompts } from '../../../features/prompts/index.ts'
import { readSnapshot, readStatus } from '../../../features/session-views/index.ts'
import { readSession } from '../../../features/sessions/index.ts'
import { definePack } from '../../../kernel/index.ts'
import { failure, scriptedLlm, text, toolCalls } from '../../helpers/scripted-llm.ts'
import { copyOfHome, echoRunner, wireOf } from '../agent/start.ts'
import { counted, isSummaryRequest, startCompacting, windowed } from './start.ts'

const never = new Promise<never>(() => undefined)
const roles = ({ messages }: LlmRequest) => messages.map(({ role }) => role)
const words = ({ messages }: LlmRequest) => JSON.stringify(messages)
/** Events of a compaction and of turns, in order. */
const order = (agent: { events: { type: string }[] }) =>
  agent.events.map(({ type }) => type).filter(type => /^compaction|^turn\.(started|ended|step\.started)|work_changed|^error/.test(type))

test('a manual compaction is told in order, replaces what the model sees, and leaves the log that clients read whole', async t => {
  const llm = windowed(100_000, 'answer')
  const agent = await startCompacting(t, llm)
  const params = { session_id: agent.session_id }
  await agent.prompt('first words')
  await agent.settled(1)
  const before = agent.events.length
  const messagesBefore = (await agent.call(listMessages, { params })).data.items

  assert.deepEqual(await agent.compact({ instruction: ' mind the names ' }).then(({ code, data }) => [code, data]), [0, {}])
  await agent.waitFor(({ type }) => type === 'compaction.completed')
  let idle = 0
  const isIdle = (payload: unknown) => !(payload as { busy: boolean }).busy
  await agent.waitFor(({ type, payload }) => type === 'event.session.work_changed' && isIdle(payload) && ++idle === 2)

  assert.deepEqual(
    agent.events
      .slice(before)
      .map(({ type }) => type)
      .filter(type => type !== 'event.session.status_changed'),
    ['compaction.started', 'event.session.work_changed', 'agent.status.updated', 'compaction.completed', 'event.session.work_changed']
  )
  const [started, completed] = agent.told()
  assert.deepEqual(started?.[1], { trigger: 'manual', instruction: 'mind the names' })
  const { result } = completed![1] as { result: Record<string, number | string> }
  assert.deepEqual([result.summary, result.compactedCount, result.keptUserMessageCount], ['the summary', 3, 1])
  assert.ok(Number(result.tokensBefore) > 0 && Number(result.tokensAfter) > 0)
  const asked = llm.requests.find(isSummaryRequest)
  assert.match(JSON.stringify(asked?.messages.at(-1)), /mind the names/)
  const { items } = (await agent.call(listMessages, { params })).data
  assert.deepEqual(items.slice(1), messagesBefore)
  assert.deepEqual([items[0]?.role, items[0]?.metadata?.origin], ['user', { kind: 'compaction_summary' }])

  await agent.prompt('second words')
  await agent.settled(2)
  const next = llm.requests.at(-1) as LlmRequest
  assert.ok(words(next).includes('first words') && words(next).includes('the summary') && words(next).includes('second words'))
  assert.ok(!words(next).includes('answer'))
  assert.equal(words(next).match(/The date is|Today/g)?.length ?? 1, 1) // reminders were said again
  const { usage } = (await agent.call(readSnapshot, { params })).data.session
  assert.equal(usage.output_tokens, 15)
})

test('a compaction is refused while a turn runs, while another one runs, and without a history', async t => {
  const waiting = [{ type: 'wait', until: never } as const]
  const agent = await startCompacting(
    t,
    windowed(100_000, request => (words(request).includes('hang') ? waiting : 'answer'), waiting)
  )
  const params = { session_id: agent.session_id }
  assert.equal((await agent.compact()).code, 40910)
  await agent.prompt('one')
  await agent.settled(1)
  assert.equal((await agent.compact({ instruction: '  ' })).code, 0)
  assert.deepEqual(agent.told()[0]?.[1], { trigger: 'manual' })
  assert.equal((await agent.compact()).code, 40910)
  assert.equal((await agent.call(readSession, { params })).data.busy, true)

  const { status } = await agent.prompt('hang')
  assert.equal(status, 'queued')
  assert.equal((await agent.call(abortSession, { params })).code, 0)
  await agent.waitFor(({ type }) => type === 'compaction.cancelled')
  await agent.waitFor(({ type, payload }) => type === 'turn.started' && (payload as { turnId: number }).turnId === 1)
  assert.equal((await agent.compact()).code, 40910)
  assert.equal((await agent.call(listPrompts, { params })).data.active?.status, 'running')
  assert.ok(!agent.events.some(({ type }) => type === 'error'))
})

test('a prompt that waits for a compaction begins while the session is still at work', async t => {
  const agent = await startCompacting(t, windowed(100_000, 'answer', [{ type: 'wait', until: never }]))
  await agent.prompt('one')
  await agent.settled(1)
  await agent.compact()
  await agent.prompt('two')
  const before = agent.events.length

  assert.equal((await agent.call(abortSession, { params: { session_id: agent.session_id } })).code, 0)
  await agent.settled(2)

  const work = agent.events.slice(before).filter(({ type }) => type === 'event.session.work_changed')
  assert.deepEqual(
    work.map(({ payload }) => (payload as { busy: boolean }).busy),
    [true, false]
  )
})

test('a full context is made smaller before the next step of a turn, which waits; then steps go on without another one', async t => {
  let step = 0
  const llm = windowed(10_000, () =>
    ++step <= 6
      ? [
          ...toolCalls({ id: `c${step}`, name: 'Echo' }).slice(0, 2),
          ...counted('', step === 3 ? 9000 : 2000).slice(1, 2),
          { type: 'finish', reason: 'tool_calls' }
        ]
      : 'done'
  )
  const agent = await startCompacting(t, llm, { packs: [echoRunner()] })
  await agent.prompt('work')
  await agent.settled(1)

  assert.deepEqual(
    agent
      .told()
      .map(([type, payload]) => [
        type,
        payload.trigger ?? payload.turnId ?? (payload.result as { keptUserMessageCount: number }).keptUserMessageCount
      ]),
    [
      ['compaction.started', 'auto'],
      ['compaction.blocked', 0],
      ['compaction.completed', 1]
    ]
  )
  const types = order(agent)
  const at = types.indexOf('compaction.started')
  assert.deepEqual(types.slice(at - 1, at + 4), [
    'turn.step.started',
    'compaction.started',
    'compaction.blocked',
    'compaction.completed',
    'turn.step.started'
  ])
  const summary = llm.requests.findIndex(isSummaryRequest)
  assert.equal(summary, 3)
  assert.equal(roles(llm.requests[summary]!).filter(role => role === 'tool').length, 3)
  assert.deepEqual(roles(llm.requests[summary + 1]!), ['user', 'user', 'user'])
  assert.equal(agent.events.filter(({ type }) => type === 'turn.ended').length, 1)
})

test('a context that the provider refuses is made smaller, and the same step goes out again with its reminders', async t => {
  let refused = 0
  const llm = windowed(100_000, request =>
    words(request).includes('second') && refused++ === 0
      ? failure({ code: 'context.overflow', status: 400, retryable: false, message: 'too long' })
      : 'answer'
  )
  const agent = await startCompacting(t, llm)
  await agent.prompt('first')
  await agent.settled(1)
  await agent.prompt('second')
  await agent.settled(2)

  const types = order(agent)
  const at = types.indexOf('compaction.started')
  assert.deepEqual(types.slice(at - 1, at + 4), [
    'turn.step.started',
    'compaction.started',
    'compaction.blocked',
    'compaction.completed',
    'turn.ended'
  ])
  const last = llm.requests.at(-1) as LlmRequest
  assert.ok(words(last).includes('first') && words(last).includes('second') && words(last).includes('the summary'))
  assert.match(words(last), /system-reminder/)
  assert.ok(!words(last).includes('"answer"'))
})

test('what stays of the user fits what the provider was seen to take, however large the window is said to be', async t => {
  const overflow = failure({ code: 'context.overflow', status: 400, retryable: false })
  const agent = await startCompacting(
    t,
    windowed(100_000, request => (words(request).length > 24_000 ? overflow : 'answer'))
  )
  for (const [at, word] of ['one', 'two', 'three'].entries()) {
    await agent.prompt(`${word} ${'x'.repeat(10_000)}`)
    await agent.settled(at + 1)
  }
  const ends = agent.events.filter(({ type }) => type === 'turn.ended').map(({ payload }) => (payload as { reason: string }).reason)
  assert.deepEqual(ends, ['completed', 'completed', 'completed'])
})

test('a provider that refuses every size ends the turn as context.overflow after three compactions', async t => {
  const overflow = failure({ code: 'context.overflow', status: 400, retryable: false })
  const agent = await startCompacting(t, windowed(100_000, overflow))
  await agent.prompt('work')
  await agent.settled(1)

  assert.equal(agent.told().filter(([type]) => type === 'compaction.completed').length, 3)
  const ended = agent.events.find(({ type }) => type === 'turn.ended')?.payload as { reason: string; error: { code: string } }
  assert.deepEqual([ended.reason, ended.error.code], ['failed', 'context.overflow'])
})

test('a model that calls a tool in place of a summary fails the compaction: the context stays, clients hear why', async t => {
  const llm = windowed(100_000, 'answer', toolCalls({ id: 'x', name: 'Echo' }))
  const agent = await startCompacting(t, llm)
  await agent.prompt('first')
  await agent.settled(1)
  await agent.compact()
  const { payload } = await agent.waitFor(({ type }) => type === 'error')

  assert.equal((payload as { code: string }).code, 'compaction.failed')
  assert.deepEqual(
    agent.told().map(([type]) => type),
    ['compaction.started', 'compaction.cancelled']
  )
  await agent.prompt('second')
  await agent.settled(2)
  assert.ok(words(llm.requests.at(-1) as LlmRequest).includes('answer'))
})

test('a compaction that fails inside a turn fails the turn, and a wrong key says so itself', async t => {
  for (const [code, expected] of [
    ['provider.api_error', 'compaction.failed'],
    ['provider.auth_error', 'provider.auth_error']
  ] as const) {
    const llm = windowed(10_000, counted('answer', 9000), failure({ code, retryable: false, status: 403 }))
    const agent = await startCompacting(t, llm)
    await agent.prompt('first')
    await agent.settled(1)
    await agent.prompt('second')
    await agent.settled(2)

    const types = order(agent)
    assert.deepEqual(types.slice(types.indexOf('compaction.started')), [
      'compaction.started',
      'compaction.blocked',
      'compaction.cancelled',
      'turn.ended',
      'error',
      'event.session.work_changed'
    ])
    const ended = agent.events.filter(({ type }) => type === 'turn.ended').at(-1)?.payload as { reason: string; error: { code: string } }
    assert.deepEqual([ended.reason, ended.error.code], ['failed', expected])
  }
})

test('requests for a summary that fail are sent again, too large ones with less, unusable answers without the oldest', async t => {
  const overflow = failure({ code: 'context.overflow', status: 400, retryable: false })
  const script = [failure(), overflow, overflow, [...text('half').slice(0, -1), { type: 'finish', reason: 'truncated' } as const], 'good']
  let n = 0
  const llm = windowed(100_000, 'answer', () => script[n++]!)
  const agent = await startCompacting(t, llm)
  for (let turn = 1; turn <= 6; turn++) {
    await agent.prompt(`turn ${turn} ${'x'.repeat(400)}`)
    await agent.settled(turn)
  }
  await agent.compact()
  await agent.waitFor(({ type }) => type === 'compaction.completed')

  const sizes = llm.requests.filter(isSummaryRequest).map(({ messages }) => messages.length)
  assert.equal(sizes.length, 5)
  assert.equal(sizes[1], sizes[0])
  assert.ok(sizes[2]! < sizes[1]! && sizes[3]! < sizes[2]! && sizes[4]! < sizes[3]!)
  const { result } = agent.told().at(-1)![1] as { result: Record<string, number> }
  assert.equal(result.keptUserMessageCount, 6)
  assert.ok((result.droppedCount ?? 0) > 0)
  const { usage } = (await agent.call(readSnapshot, { params: { session_id: agent.session_id } })).data.session
  assert.equal(usage.output_tokens, 8 * 5) // six answers, the half one and the good one
})

/** A turn waits for a compaction that does not end. */
async function startBlocked(t: TestContext) {
  const agent = await startCompacting(t, windowed(10_000, counted('answer', 9000), [{ type: 'wait', until: never }]))
  await agent.prompt('first')
  await agent.settled(1)
  await agent.prompt('second')
  await agent.waitFor(({ type }) => type === 'compaction.blocked')
  return agent
}

test('an abort of a turn that waits for a compaction cancels both', async t => {
  const agent = await startBlocked(t)

  await agent.call(abortSession, { params: { session_id: agent.session_id } })
  await agent.settled(2)

  const types = order(agent)
  assert.deepEqual(types.slice(types.indexOf('compaction.blocked')), [
    'compaction.blocked',
    'compaction.cancelled',
    'turn.ended',
    'event.session.work_changed'
  ])
})

for (const pack of ['agent', 'history', 'sessions']) {
  test(`a compaction that is cut because ${pack} is swapped is told as cancelled before the end of its turn`, async t => {
    const agent = await startBlocked(t)

    await agent.kernel.reload(pack)
    await agent.call(listMessages, { params: { session_id: agent.session_id } }) // the sessions of a swap are loaded when they are asked for
    await agent.settled(2)

    const types = order(agent).filter(type => type !== 'event.session.work_changed')
    assert.deepEqual(types.slice(types.indexOf('compaction.blocked')), ['compaction.blocked', 'compaction.cancelled', 'turn.ended'])
  })
}

test('a compaction whose own pack is swapped is cancelled: the turn that waited for it goes on, and another one can begin', async t => {
  const agent = await startBlocked(t)

  await agent.kernel.reload('compaction')
  await agent.settled(2)

  const types = order(agent).filter(type => type !== 'event.session.work_changed')
  const expected = ['compaction.blocked', 'compaction.cancelled', 'turn.step.started', 'turn.ended']
  assert.deepEqual(types.slice(types.indexOf('compaction.blocked')), expected)
  assert.equal((agent.events.findLast(({ type }) => type === 'turn.ended')!.payload as { reason: string }).reason, 'completed')

  await agent.compact()
  await agent.kernel.reload('compaction')
  let ends = 0
  await agent.waitFor(({ type }) => type === 'compaction.cancelled' && ++ends === 2)
  assert.equal((await agent.compact()).code, 0)
})

test('a killed server: a compaction that ran counts as cancelled and is told once, then prompts that waited start', async t => {
  const agent = await startCompacting(t, windowed(100_000, 'answer', [{ type: 'wait', until: never }]))
  const { session_id } = agent
  await agent.prompt('first')
  await agent.settled(1)
  await agent.compact()
  await agent.prompt('second')
  const home = await copyOfHome(agent.home)

  const again = await startCompacting(t, windowed(100_000, 'later'), { home, session_id })
  await again.call(listMessages, { params: { session_id } })
  await again.settled(1)
  const types = again.events.map(({ type }) => type).filter(type => /^compaction|^turn\.started|^error/.test(type))
  assert.deepEqual(types, ['compaction.cancelled', 'turn.started'])
  await again.stop()

  const third = await startCompacting(t, windowed(100_000, 'later'), { home, session_id })
  await third.call(listMessages, { params: { session_id } })
  assert.deepEqual(third.told(), [])
  assert.equal((await wireOf({ home })).filter(({ type }) => type === 'compaction.cancel').length, 1)
})

test('packs add to the summary what must not be lost; one that fails is left out', async t => {
  const notes = definePack({
    name: 'notes',
    setup(ctx) {
      ctx.contribute(CompactionNotes, { name: 'list', note: () => 'open: one thing' })
      ctx.contribute(CompactionNotes, {
        name: 'broken',
        note: () => {
          throw new Error('no')
        }
      })
    }
  })
  const llm = windowed(100_000, 'answer')
  const agent = await startCompacting(t, llm, { packs: [notes] })
  await agent.prompt('first')
  await agent.settled(1)
  await agent.compact()
  await agent.waitFor(({ type }) => type === 'compaction.completed')
  await agent.prompt('second')
  await agent.settled(2)

  assert.match(words(llm.requests.at(-1) as LlmRequest), /the summary\\n\\nopen: one thing/)
})

test('without the pack a session works, has no such route, and an overflow ends the turn', async t => {
  const { startAgent } = await import('../agent/start.ts')
  const agent = await startAgent(t, scriptedLlm(failure({ code: 'context.overflow', status: 400, retryable: false })))
  await agent.prompt('first')
  await agent.settled(1)
  const ended = agent.events.find(({ type }) => type === 'turn.ended')?.payload as { error: { code: string } }
  assert.equal(ended.error.code, 'context.overflow')
  assert.equal((await agent.call(readStatus, { params: { session_id: agent.session_id } })).code, 0)
})
