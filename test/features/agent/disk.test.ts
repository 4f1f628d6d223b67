import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type TestContext, test } from 'node:test'
import { StepInjectors, TurnHooks } from '../../../features/agent/index.ts'
import { listMessages } from '../../../features/messages/index.ts'
import { abortPrompt, abortSession, listPrompts, steerPrompts, submitPrompt } from '../../../features/prompts/index.ts'
import { readSession } from '../../../features/sessions/index.ts'
import type { ToolOutcome } from '../../../features/tools/index.ts'
import { AppError, definePack, PersistenceFailed } from '../../../kernel/index.ts'
import { latch } from '../../helpers/latch.ts'
import { scriptedLlm, text, toolCalls } from '../../helpers/scripted-llm.ts'
import { copyOfHome, echoRunner, historyOnDisk, insider, runner, startAgent, wireOf } from './start.ts'

const never = new Promise<never>(() => undefined)
const hanging = [
  { type: 'text', text: 'so far' },
  { type: 'wait', until: never }
] as const

for (const queued of [false, true]) {
  test(`a prompt that ${queued ? 'waits' : 'starts'} is answered and announced only when its record is on disk`, async t => {
    const asked = latch()
    const disk = latch()
    const history = historyOnDisk(async ([...records]) => {
      if (!records.some(record => record.type === 'prompt.accepted' && record.starts !== queued)) return
      asked.open()
      await disk.opened
    })
    const agent = await startAgent(t, scriptedLlm(...(queued ? [[...hanging]] : []), 'answer'), { history })
    const params = { session_id: agent.session_id }
    if (queued) await agent.prompt('first')
    const announced = () => agent.events.filter(event => event.type === 'prompt.submitted').length
    const before = announced()
    let answered = false
    const answer = agent.prompt('go').then(prompt => {
      answered = true
      return prompt
    })
    await asked.opened

    for (let n = 0; n < 20; n++) await agent.call(listPrompts, { params }) // time enough for one that does not wait

    assert.equal(answered, false)
    assert.equal(announced(), before)
    disk.open()
    assert.equal((await answer).status, queued ? 'queued' : 'running')
    assert.equal(announced(), before + 1)
  })
}

test('a queued prompt whose abort the disk refuses stays in the queue at its place, and runs', async t => {
  let refuse = true
  const history = historyOnDisk(records => {
    if (refuse && records.some(record => record.type === 'prompt.settled' && record.status === 'aborted'))
      throw new AppError(PersistenceFailed)
  })
  const more = latch()
  const llm = scriptedLlm(
    [
      { type: 'wait', until: more.opened },
      { type: 'text', text: 'a' },
      { type: 'finish', reason: 'completed' }
    ],
    'b'
  )
  const agent = await startAgent(t, llm, { history })
  const params = { session_id: agent.session_id }
  await agent.prompt('one')
  const two = await agent.prompt('two')
  const three = await agent.prompt('three')

  assert.equal((await agent.call(abortPrompt, { params: { ...params, prompt_id: two.prompt_id } })).code, PersistenceFailed.code)

  refuse = false
  const { queued } = (await agent.call(listPrompts, { params })).data
  assert.deepEqual(
    queued.map(prompt => prompt.prompt_id),
    [two.prompt_id, three.prompt_id]
  )
  more.open()
  await agent.settled(3)
  assert.ok(!agent.events.some(event => event.type === 'prompt.aborted'))
})

for (const abort of ['taken', 'refused'] as const) {
  test(`a prompt whose steering the disk refuses while its abort is recorded ${abort === 'taken' ? 'never runs' : 'waits once, when that is refused, too'}`, async t => {
    const asked = latch()
    const disk = latch()
    const history = historyOnDisk(async records => {
      const steers = records.some(record => record.type === 'prompt.steered')
      const aborts = records.some(record => record.type === 'prompt.settled' && record.status === 'aborted')
      if (!steers && !(aborts && abort === 'refused')) return
      asked.open()
      await disk.opened
      throw new AppError(PersistenceFailed)
    })
    const more = latch()
    const llm = scriptedLlm(
      [
        { type: 'text', text: 'a' },
        { type: 'wait', until: more.opened },
        { type: 'finish', reason: 'completed' }
      ],
      'b'
    )
    const agent = await startAgent(t, llm, { history })
    const params = { session_id: agent.session_id }
    await agent.prompt('one')
    await agent.waitFor(event => event.type === 'assistant.delta')
    const { prompt_id } = await agent.prompt('two')
    const steering = agent.call(steerPrompts, { params, body: { prompt_ids: [prompt_id] } })
    await asked.opened

    const aborting = agent.call(abortPrompt, { params: { ...params, prompt_id } })
    for (let n = 0; n < 5; n++) await agent.call(listPrompts, { params }) // the abort is under way
    disk.open()

    assert.equal((await steering).code, PersistenceFailed.code)
    assert.equal((await aborting).code, abort === 'taken' ? 0 : PersistenceFailed.code)
    const { queued } = (await agent.call(listPrompts, { params })).data
    assert.deepEqual(
      queued.map(prompt => prompt.prompt_id),
      abort === 'taken' ? [] : [prompt_id]
    )
    more.open()
    await agent.settled(2)
  })
}

for (const taken of [true, false]) {
  test(`a prompt whose steering the disk refuses runs once: ${taken ? 'in the step that took it meanwhile' : 'from its old place in the queue'}`, async t => {
    const asked = latch()
    const disk = latch()
    const history = historyOnDisk(async records => {
      if (!records.some(record => record.type === 'prompt.steered')) return
      asked.open()
      await disk.opened
      throw new AppError(PersistenceFailed)
    })
    const preparing = latch()
    const prepared = latch()
    const slow = definePack({
      name: 'slow',
      setup: ctx =>
        ctx.contribute(StepInjectors, {
          variant: 'slow',
          async inject({ turn_id, step }) {
            if (turn_id > 0 || step !== 2) return undefined
            preparing.open()
            await prepared.opened
            return undefined
          }
        })
    })
    const llm = scriptedLlm(toolCalls({ id: 'a', name: 'Echo' }), 'answer')
    const agent = await startAgent(t, llm, { history, packs: [slow, echoRunner()] })
    const params = { session_id: agent.session_id }
    await agent.prompt('one')
    await preparing.opened
    const two = await agent.prompt('two')
    const three = await agent.prompt('three')
    const steering = agent.call(steerPrompts, { params, body: { prompt_ids: [two.prompt_id] } })
    await asked.opened

    if (taken) {
      prepared.open()
      await llm.arrived(1)
    }
    disk.open()
    assert.equal((await steering).code, PersistenceFailed.code)
    prepared.open()

    const own = taken ? [] : [two.prompt_id]
    for (const id of [...own, three.prompt_id])
      await agent.waitFor(({ type, payload }) => type === 'prompt.completed' && (payload as { promptId: string }).promptId === id)
    const started = agent.events.flatMap(({ type, payload }) =>
      type === 'turn.started' ? [(payload as { promptId: string }).promptId] : []
    )
    assert.deepEqual(started.slice(1), [...own, three.prompt_id])
    const { items } = (await agent.call(listMessages, { params })).data
    assert.equal(items.filter(({ id }) => id === two.prompt_id).length, 1)
    assert.equal(llm.requests.length, started.length + 1)
  })
}

/** An agent whose turn takes the prompt `mine` with its second step, which is about to come. */
async function steered(t: TestContext, history: ReturnType<typeof historyOnDisk>) {
  const more = latch()
  const called = toolCalls({ id: 'a', name: 'Echo' })
  const agent = await startAgent(t, scriptedLlm([{ type: 'wait', until: more.opened }, ...called], 'answer'), {
    history,
    packs: [echoRunner()]
  })
  const params = { session_id: agent.session_id }
  await agent.prompt('one')
  await agent.prompt('two', { prompt_id: 'mine' })
  assert.equal((await agent.call(steerPrompts, { params, body: { prompt_ids: ['mine'] } })).code, 0)
  more.open()
  return { agent, params }
}

test('a steered prompt whose message the disk refuses runs after the turn that fails by that', async t => {
  let refused = 0
  const history = historyOnDisk(records => {
    if (!records.some(record => record.type === 'message' && record.prompt_id === 'mine') || refused++ > 0) return
    throw new AppError(PersistenceFailed)
  })
  const { agent, params } = await steered(t, history)
  await agent.settled(2)

  const told = agent.events.flatMap(({ type, payload }) => {
    const { promptId, reason } = payload as { promptId?: string; reason?: string }
    return ['turn.started', 'turn.ended', 'prompt.queued', 'prompt.completed'].includes(type) &&
      (promptId === 'mine' || type === 'turn.ended')
      ? [[type, reason]]
      : []
  })
  assert.deepEqual(told, [
    ['prompt.queued', undefined],
    ['turn.ended', 'failed'],
    ['prompt.queued', undefined],
    ['turn.started', undefined],
    ['turn.ended', 'completed'],
    ['prompt.completed', 'completed']
  ])
  const { items } = (await agent.call(listMessages, { params })).data
  assert.deepEqual(items.find(({ id }) => id === 'mine')?.content, [{ type: 'text', text: 'two' }])
})

test('a steered prompt whose message the disk refuses can be aborted before the turn that fails by that has ended', async t => {
  const [full, free] = [latch(), latch()]
  let refused = false
  const history = historyOnDisk(async records => {
    if (!refused && records.some(record => record.type === 'message' && record.prompt_id === 'mine')) {
      refused = true
      throw new AppError(PersistenceFailed)
    }
    if (!records.some(({ type }) => type === 'turn.ended')) return
    full.open()
    await free.opened
  })
  const { agent, params } = await steered(t, history)
  await full.opened
  const aborted = agent.call(abortPrompt, { params: { ...params, prompt_id: 'mine' } })
  for (let n = 0; n < 5; n++) await agent.call(listPrompts, { params }) // the abort is under way
  free.open()

  assert.equal((await aborted).code, 0)
  await agent.settled(2)
  const begun = agent.events.filter(({ type }) => type === 'turn.started')
  assert.equal(begun.length, 1)
})

for (const [what, waits, route] of [
  ['is about to begin', false, abortPrompt],
  ['is about to begin', false, abortSession],
  ['is about to wait', true, abortPrompt]
] as const)
  test(`a prompt that ${what}, and whose acceptance is on its way to the disk, can be aborted${route === abortSession ? ' with the session' : ''}`, async t => {
    const [writing, slow, busy] = [latch(), latch(), latch()]
    const history = historyOnDisk(async records => {
      if (!records.some(record => record.type === 'prompt.accepted' && record.prompt_id === 'mine')) return
      writing.open()
      await slow.opened
    })
    const agent = await startAgent(t, scriptedLlm([{ type: 'wait', until: busy.opened }, ...text('answer')]), { history })
    const params = { session_id: agent.session_id }
    if (waits) await agent.prompt('another')
    const submitting = agent.prompt('one', { prompt_id: 'mine' })
    await writing.opened
    const aborting = agent.call(route, { params: { ...params, prompt_id: 'mine' } })
    for (let n = 0; n < 5; n++) await agent.call(listPrompts, { params }) // the abort is under way
    slow.open()

    assert.deepEqual([(await submitting).prompt_id, (await aborting).code], ['mine', 0])
    busy.open()
    await agent.settled(waits ? 2 : 1)
    const ends = agent.events.filter(({ type }) => type === 'prompt.aborted' || type === 'prompt.completed')
    const [end] = ends.filter(({ payload }) => (payload as { promptId: string }).promptId === 'mine')
    assert.equal(end?.type, 'prompt.aborted')
  })

test('a prompt whose acceptance is on its way to the disk is aborted with the session before packs are asked about it', async t => {
  const [writing, slow, asked] = [latch(), latch(), latch<AbortSignal>()]
  const history = historyOnDisk(async records => {
    if (!records.some(({ type }) => type === 'prompt.accepted')) return
    writing.open()
    await slow.opened
  })
  const asks = definePack({
    name: 'asks',
    needs: { hooks: TurnHooks },
    setup(ctx, { hooks }) {
      ctx.tap(hooks.beforePrompt, async ({ signal }) => {
        asked.open(signal)
        if (!signal.aborted) await Promise.race([once(signal, 'abort'), answered.opened])
        return undefined
      })
    }
  })
  const answered = latch()
  const llm = scriptedLlm(text('answer'))
  const agent = await startAgent(t, llm, { history, packs: [asks] })
  const params = { session_id: agent.session_id }
  const submitting = agent.prompt('one', { prompt_id: 'mine' })
  await writing.opened
  const aborting = agent.call(abortSession, { params })
  for (let n = 0; n < 5; n++) await agent.call(listPrompts, { params }) // the abort is under way
  slow.open()

  assert.equal((await aborting).code, 0)
  const { aborted } = await asked.opened
  answered.open()
  await submitting
  await agent.call(listPrompts, { params })
  const { data } = await agent.call(listPrompts, { params })
  assert.deepEqual([aborted, data, llm.requests.length], [true, { active: null, queued: [] }, 0])
})

test('a prompt that waits is aborted at once, also while the acceptance of another is on its way to the disk', async t => {
  const [writing, slow, busy] = [latch(), latch(), latch()]
  const history = historyOnDisk(async records => {
    if (!records.some(record => record.type === 'prompt.accepted' && record.prompt_id === 'other')) return
    writing.open()
    await slow.opened
  })
  const agent = await startAgent(t, scriptedLlm([{ type: 'wait', until: busy.opened }, ...text('answer')], text('second'), text('third')), {
    history
  })
  const params = { session_id: agent.session_id }
  await agent.prompt('runs')
  await agent.prompt('waits', { prompt_id: 'mine' })
  const submitting = agent.prompt('comes', { prompt_id: 'other' })
  await writing.opened
  const aborting = agent.call(abortPrompt, { params: { ...params, prompt_id: 'mine' } })
  for (let n = 0; n < 5; n++) await agent.call(listPrompts, { params }) // the abort is under way

  const { data } = await agent.call(listPrompts, { params })
  assert.deepEqual((data as { queued: unknown[] }).queued, [])
  slow.open()
  busy.open()
  await submitting
  assert.equal((await aborting).code, 0)
})

test('settings that the disk refuses do not count', async t => {
  let refuse = false
  const history = historyOnDisk(records => {
    if (refuse && records.some(record => record.type === 'agent.settings')) throw new AppError(PersistenceFailed)
  })
  const inside = insider()
  const agent = await startAgent(t, scriptedLlm('answer'), { history, packs: [inside.pack] })
  const main = await inside.main(agent)
  await main.configure({ model: 'small' })
  refuse = true

  await assert.rejects(main.configure({ model: 'big', disabled_tools: ['Echo'] }), (error: unknown) => AppError.is(error))

  assert.deepEqual(main.settings(), { model: 'small' })
})

test('an abort that comes when the turn is through, its end not yet on record, is told so: 40903', async t => {
  const asked = latch()
  const disk = latch()
  const history = historyOnDisk(async records => {
    if (!records.some(record => record.type === 'turn.ended')) return
    asked.open()
    await disk.opened
  })
  const agent = await startAgent(t, scriptedLlm('answer'), { history })
  const params = { session_id: agent.session_id }
  const { prompt_id } = await agent.prompt('go')
  await asked.opened

  const aborting = agent.call(abortPrompt, { params: { ...params, prompt_id } })
  for (let n = 0; n < 5; n++) await agent.call(listPrompts, { params }) // the abort is under way
  disk.open()

  assert.equal((await aborting).code, 40903)
  await agent.settled(1)
  assert.ok(!agent.events.some(event => event.type === 'prompt.aborted'))
})

test('a prompt id that was in flight at a crash is used up afterwards: 40903, not 40927 for ever', async t => {
  const agent = await startAgent(t, scriptedLlm(hanging))
  const { session_id } = agent
  await agent.prompt('go', { prompt_id: 'mine' })
  await agent.waitFor(event => event.type === 'assistant.delta')
  const home = await copyOfHome(agent.home)

  const again = await startAgent(t, scriptedLlm('x'), { home, session_id })

  const body = { content: [{ type: 'text' as const, text: 'go' }], prompt_id: 'mine' }
  assert.equal((await again.call(submitPrompt, { params: { session_id }, body })).code, 40903)
})

test("the reminder of an interruption is left by the user's abort only, not by a shutdown", async t => {
  const agent = await startAgent(t, scriptedLlm(hanging))
  const { session_id, home } = agent
  await agent.prompt('go')
  await agent.waitFor(event => event.type === 'assistant.delta')

  await agent.stop()

  const again = await startAgent(t, scriptedLlm('x'), { home, session_id })
  const { items } = (await again.call(listMessages, { params: { session_id } })).data
  assert.deepEqual(
    items.map(message => (message.metadata?.origin as { variant?: string } | undefined)?.variant),
    [undefined, 'date_change', undefined]
  )
})

for (const type of ['turn.started', 'turn.ended'] as const) {
  test(`${type} is sent only when its record is on disk; the turn goes on as soon as the disk takes it`, async t => {
    let refused = 0
    const thrice = latch()
    const history = historyOnDisk(records => {
      // The first turn begins with the acceptance of its prompt: if the disk refuses that, the prompt is refused.
      const accepts = records.some(record => record.type === 'prompt.accepted')
      if (accepts || !records.some(record => record.type === type) || refused === 5) return
      if (++refused === 5) thrice.open()
      throw new AppError(PersistenceFailed)
    })
    const agent = await startAgent(t, scriptedLlm('answer'), { history })
    const params = { session_id: agent.session_id }
    await Promise.all([agent.prompt('one'), agent.prompt('two')])
    await thrice.opened

    const count = () => agent.events.filter(event => event.type === type).length
    assert.equal(count(), type === 'turn.started' ? 1 : 0)
    assert.ok((await agent.call(readSession, { params })).data.busy)
    await agent.settled(2)
    const turns = agent.events.filter(event => event.type === type).map(event => (event.payload as { turnId: number }).turnId)
    assert.deepEqual(turns, [0, 1])
  })
}

test('a server that stops while the disk refuses the end of a turn sends no end; the next one does', async t => {
  const asked = latch()
  const history = historyOnDisk(records => {
    if (!records.some(record => record.type === 'turn.ended')) return
    asked.open()
    throw new AppError(PersistenceFailed)
  })
  const agent = await startAgent(t, scriptedLlm('answer'), { history })
  const { session_id, home } = agent
  await agent.prompt('one')
  await asked.opened

  await agent.stop()

  const over = (events: typeof agent.events) => events.filter(event => /^(turn.ended|prompt.completed|prompt.aborted)$/.test(event.type))
  assert.deepEqual(over(agent.events), [])
  const again = await startAgent(t, scriptedLlm('x'), { home, session_id })
  await again.call(listPrompts, { params: { session_id } })
  assert.deepEqual(
    over(again.events).map(event => event.type),
    ['turn.ended', 'prompt.aborted']
  )
})

test('a kill in a turn that is longer than the journal is replayed tells no result twice', async t => {
  const calls = Array.from({ length: 1300 }, (_, n) => ({ id: `call_${n}`, name: 'Echo' }))
  const llm = scriptedLlm(toolCalls(...calls), [...hanging])
  const agent = await startAgent(t, llm, { packs: [echoRunner()] })
  const { session_id } = agent
  await agent.prompt('go')
  await agent.waitFor(event => event.type === 'assistant.delta')
  const home = await copyOfHome(agent.home)

  const again = await startAgent(t, scriptedLlm('x'), { home, session_id, packs: [echoRunner()] })
  await again.call(listPrompts, { params: { session_id } })

  const types = again.events.map(event => event.type).filter(type => type !== 'agent.status.updated')
  assert.deepEqual(types, [
    'turn.step.interrupted',
    'turn.ended',
    'event.session.work_changed',
    'event.session.status_changed',
    'prompt.aborted'
  ])
})

test('the last result of a step is one write with its end; those before it are told while others still run', async t => {
  const writes: string[][] = []
  const history = historyOnDisk(records => {
    writes.push(records.map(record => String(record.tool_call_id ?? record.type)))
  })
  const more = latch()
  const slow = runner(async ({ calls, report }) => {
    const outcomes: ToolOutcome[] = []
    for (const call of calls) {
      await report({ type: 'started', call, args: {} })
      if (call.id === 'c2') await more.opened
      const result = { output: `result of ${call.id}` }
      await report({ type: 'finished', call, result })
      outcomes.push({ call, result })
    }
    return outcomes
  })
  const llm = scriptedLlm(toolCalls({ id: 'c1', name: 'Echo' }, { id: 'c2', name: 'Echo' }), 'done')
  const agent = await startAgent(t, llm, { history, packs: [slow] })
  const results = () =>
    agent.events.flatMap(({ type, payload }) => (type === 'tool.result' ? [(payload as { toolCallId: string }).toolCallId] : []))
  await agent.prompt('go')
  await agent.waitFor(event => event.type === 'tool.result')

  assert.deepEqual(results(), ['c1'])
  more.open()
  await agent.settled(1)

  assert.deepEqual(results(), ['c1', 'c2'])
  assert.ok(
    writes.some(write => write.join() === 'c2,step.end' || write.join() === 'told,c2,step.end'),
    JSON.stringify(writes)
  )
  const order = agent.events.flatMap(({ type }) => (['tool.result', 'turn.step.completed'].includes(type) ? [type] : []))
  assert.deepEqual(order, ['tool.result', 'tool.result', 'turn.step.completed', 'turn.step.completed'])
})

for (const gone of [false, true])
  test(`a call whose result the disk refuses${gone ? ', while it cannot be read either' : ''}, and its step, have ended for clients, too, when it takes the end of the turn`, async t => {
    let full = false
    let refused = 0
    const refuse = () => {
      if (!full || refused === 5) return
      refused++
      throw new AppError(PersistenceFailed)
    }
    const history = historyOnDisk(
      records => {
        full ||= records.some(record => record.type === 'tool.result')
        refuse()
      },
      gone ? refuse : undefined
    )
    const agent = await startAgent(t, scriptedLlm(toolCalls({ id: 'c1', name: 'Echo' })), { history, packs: [echoRunner()] })
    await agent.prompt('go')
    await agent.settled(1)

    const told = agent.events.filter(({ type }) => ['tool.result', 'turn.step.interrupted', 'turn.ended'].includes(type))
    assert.deepEqual(
      told.map(({ type }) => type),
      ['tool.result', 'turn.step.interrupted', 'turn.ended']
    )
    const [result, step, turn] = told.map(({ payload }) => payload as Record<string, unknown>)
    assert.deepEqual([result?.toolCallId, result?.isError, result?.synthetic], ['c1', true, true])
    assert.deepEqual([step?.reason, turn?.reason], ['error', 'failed'])
    const { items } = (await agent.call(listMessages, { params: { session_id: agent.session_id } })).data
    assert.match(JSON.stringify(items), /"tool_call_id":"c1"/)
  })

test('a result that came last is on record although one before it was refused', async t => {
  let refuse = true
  const history = historyOnDisk(records => {
    if (!refuse || !records.some(record => record.type === 'tool.result')) return
    refuse = false
    throw new AppError(PersistenceFailed)
  })
  const llm = scriptedLlm(toolCalls({ id: 'c1', name: 'Echo' }, { id: 'c2', name: 'Echo' }), 'done')
  const agent = await startAgent(t, llm, { history, packs: [echoRunner()] })
  await agent.prompt('go')
  await agent.settled(1)

  const results = (await wireOf(agent)).flatMap(record => (record.type === 'tool.result' ? [record.tool_call_id] : []))
  assert.deepEqual(results, ['c2', 'c1'])
  assert.equal((await agent.call(readSession, { params: { session_id: agent.session_id } })).data.last_turn_reason, 'failed')
})

test('what an agent is bound to is saved with a later turn when the disk refused it', async t => {
  let refuses = true
  const history = historyOnDisk(([...records]) => {
    if (!refuses || !records.some(({ type }) => type === 'agent.settings')) return
    refuses = false
    throw new AppError(PersistenceFailed)
  })
  const agent = await startAgent(t, scriptedLlm('one', 'two'), { history })
  await agent.prompt('first')
  await agent.settled(1)
  await agent.prompt('second')
  await agent.settled(2)
  const kept = (await wireOf(agent)).filter(({ type }) => type === 'agent.settings')
  assert.deepEqual(
    kept.map(({ model, profile }) => [model, profile]),
    [['test', 'agent']]
  )
})
