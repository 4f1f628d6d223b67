import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StepInjectors } from '../../../features/agent/index.ts'
import { Config, loopControlSection } from '../../../features/config/index.ts'
import { listMessages } from '../../../features/messages/index.ts'
import { abortPrompt, steerPrompts } from '../../../features/prompts/index.ts'
import { readSnapshot } from '../../../features/session-views/index.ts'
import { definePack } from '../../../kernel/index.ts'
import { stub } from '../../../kernel/testing.ts'
import { latch } from '../../helpers/latch.ts'
import { failure, scriptedLlm, text, toolCalls } from '../../helpers/scripted-llm.ts'
import { echoRunner, historyOnDisk, runner, type Started, startAgent, wireOf } from './start.ts'

const payloads = (agent: Started, type: string) =>
  agent.events.filter(event => event.type === type).map(event => event.payload as Record<string, unknown>)

test('tool calls are recorded, announced and answered before the next step', async t => {
  const llm = scriptedLlm(toolCalls({ id: 'a', name: 'Echo' }, { id: 'b', name: 'Echo' }), 'all done')
  const agent = await startAgent(t, llm, { packs: [echoRunner()] })

  await agent.prompt('use tools')
  await agent.settled(1)

  const order = agent.events
    .map(event => event.type)
    .filter(type => type.startsWith('tool.') || type.startsWith('turn.step') || type === 'turn.ended')
  assert.deepEqual(order, [
    'turn.step.started',
    ...Array.from({ length: 4 }, () => 'tool.call.delta'),
    'tool.call.started',
    'tool.result',
    'tool.call.started',
    'tool.result',
    'turn.step.completed',
    'turn.step.started',
    'turn.step.completed',
    'turn.ended'
  ])
  assert.deepEqual(
    llm.requests[1]?.messages.map(message => message.role),
    ['user', 'user', 'assistant', 'tool', 'tool']
  )
  assert.equal(payloads(agent, 'turn.step.completed')[0]?.finishReason, 'tool_use')
  assert.equal(payloads(agent, 'turn.step.completed')[1]?.finishReason, 'end_turn')
})

test('a call id that the provider repeats is made unique, in the stream and in the history', async t => {
  const again = toolCalls({ id: 'same', name: 'Echo' })
  const llm = scriptedLlm(again, again, 'done', again, 'done')
  const agent = await startAgent(t, llm, { packs: [echoRunner()] })
  for (const turns of [1, 2]) {
    await agent.prompt('go')
    await agent.settled(turns)
  }
  assert.deepEqual(
    payloads(agent, 'tool.call.started').map(payload => payload.toolCallId),
    ['same', 'same_2', 'same_3']
  )
  const results = llm.requests[4]?.messages.flatMap(message => (message.role === 'tool' ? [message.tool_call_id] : []))
  assert.deepEqual(results, ['same', 'same_2', 'same_3'])
})

test('a retryable failure is retried in a new step, without doubling a message', async t => {
  const llm = scriptedLlm([{ type: 'text', text: 'half' }, ...failure()], 'whole')
  const agent = await startAgent(t, llm)
  await agent.prompt('go')
  await agent.settled(1)

  const [retrying] = payloads(agent, 'turn.step.retrying')
  assert.deepEqual(
    [retrying?.step, retrying?.failedAttempt, retrying?.nextAttempt, retrying?.maxAttempts, retrying?.statusCode],
    [1, 1, 2, 10, 503]
  )
  assert.deepEqual(
    payloads(agent, 'turn.step.started').map(payload => payload.step),
    [1, 2]
  )
  assert.deepEqual(llm.requests[1]?.messages, llm.requests[0]?.messages)
  const { data } = await agent.call(listMessages, { params: { session_id: agent.session_id } })
  assert.deepEqual(data.items[0]?.content, [{ type: 'text', text: 'whole' }])
  assert.equal(data.items.filter(message => message.role === 'assistant').length, 1)
})

test('attempts are limited and the turn fails with the provider error', async t => {
  const llm = scriptedLlm(failure())
  const config = stub(Config, {
    get: (section: { name: string }) => (section === loopControlSection ? { max_attempts_per_step: 3 } : {}) as never
  })
  const agent = await startAgent(t, llm, { packs: [config] })
  await agent.prompt('go')
  await agent.settled(1)
  assert.equal(llm.requests.length, 3)
  const [ended] = payloads(agent, 'turn.ended')
  assert.deepEqual([ended?.reason, ended?.interruptReason], ['failed', 'error'])
  const order = agent.events.map(event => event.type).filter(type => type !== 'agent.status.updated')
  assert.deepEqual(order.slice(order.indexOf('turn.ended')), [
    'turn.ended',
    'error',
    'event.session.work_changed',
    'event.session.status_changed',
    'prompt.completed'
  ])
  assert.equal(payloads(agent, 'prompt.completed')[0]?.reason, 'failed')
  const [error] = payloads(agent, 'error')
  assert.deepEqual(error?.details, { statusCode: 503 })
})

test('a failure that is not retryable ends the turn at once', async t => {
  const llm = scriptedLlm(failure({ retryable: false, status: 400, message: '400 bad' }), 'fine again')
  const agent = await startAgent(t, llm)
  await agent.prompt('go')
  await agent.settled(1)
  assert.equal(llm.requests.length, 1)
  assert.equal(payloads(agent, 'turn.step.interrupted')[0]?.message, '[provider.api_error] 400 bad')
  await agent.prompt('again')
  await agent.settled(2)
  assert.equal(payloads(agent, 'turn.ended')[1]?.reason, 'completed')
})

test('what was seen of an answer that failed for good stays: as a message, and for the model', async t => {
  const lost = failure({ retryable: false, status: 400, message: '400 bad' })
  const llm = scriptedLlm(
    [{ type: 'thinking', text: 'hm' }, { type: 'text', text: 'half ' }, { type: 'text', text: 'an answer' }, ...lost],
    'fine'
  )
  const agent = await startAgent(t, llm)
  await agent.prompt('go')
  await agent.settled(1)
  const params = { session_id: agent.session_id }
  const { items } = (await agent.call(listMessages, { params })).data
  const content = [
    { type: 'thinking', thinking: 'hm' },
    { type: 'text', text: 'half an answer' }
  ]
  assert.deepEqual(items.find(({ role }) => role === 'assistant')?.content, content)
  const seen = payloads(agent, 'assistant.delta').map(({ delta }) => delta)
  assert.equal(seen.join(''), 'half an answer')
  await agent.prompt('again')
  await agent.settled(2)
  assert.match(JSON.stringify(llm.requests[1]?.messages.find(({ role }) => role === 'assistant')?.content), /half an answer/)
})

test('the step cap fails the turn', async t => {
  let n = 0
  const llm = scriptedLlm(() => toolCalls({ id: `c${n++}`, name: 'Echo', args: { n } }))
  const config = stub(Config, {
    get: (section: { name: string }) => (section === loopControlSection ? { max_steps_per_turn: 2 } : {}) as never
  })
  const agent = await startAgent(t, llm, { packs: [config, echoRunner()] })
  await agent.prompt('go')
  await agent.settled(1)
  const [ended] = payloads(agent, 'turn.ended')
  assert.deepEqual(
    [ended?.reason, ended?.interruptReason, (ended?.error as { code: string } | undefined)?.code],
    ['failed', 'max_steps', 'loop.max_steps_exceeded']
  )
  assert.equal(llm.requests.length, 2)
})

test('a truncated answer completes, a filtered one fails', async t => {
  const llm = scriptedLlm(
    [
      { type: 'text', text: 'cut' },
      { type: 'finish', reason: 'truncated' }
    ],
    [
      { type: 'text', text: 'bad' },
      { type: 'finish', reason: 'filtered' }
    ]
  )
  const agent = await startAgent(t, llm)
  await agent.prompt('one')
  await agent.settled(1)
  await agent.prompt('two')
  await agent.settled(2)
  assert.equal(payloads(agent, 'turn.step.completed')[0]?.finishReason, 'max_tokens')
  const ended = payloads(agent, 'turn.ended')
  assert.equal(ended[0]?.reason, 'completed')
  assert.deepEqual([ended[1]?.reason, ended[1]?.interruptReason], ['failed', 'filtered'])
  // What was seen of it stays.
  const { items } = (await agent.call(listMessages, { params: { session_id: agent.session_id } })).data
  assert.deepEqual([items[0]?.role, items[0]?.content], ['assistant', [{ type: 'text', text: 'bad' }]])
})

const cutCall = [
  { type: 'text', text: 'I write it.' },
  { type: 'tool_call', id: 'x', name: 'Echo' },
  { type: 'tool_arguments', id: 'x', text: '{"content": "half' },
  { type: 'finish', reason: 'truncated' }
] as const

test('an answer that is cut inside a tool call is marked, its call is not run, and the model is told', async t => {
  const llm = scriptedLlm([...cutCall], 'in two pieces')
  const agent = await startAgent(t, llm, { packs: [echoRunner()] })
  await agent.prompt('go')
  await agent.settled(1)
  assert.equal(payloads(agent, 'tool.call.started').length, 0)
  assert.equal(payloads(agent, 'turn.step.completed')[0]?.finishReason, 'max_tokens')
  assert.equal(payloads(agent, 'turn.ended')[0]?.reason, 'completed')
  const [answer, notice] = llm.requests[1]?.messages.slice(-2) ?? []
  assert.match(JSON.stringify(answer?.content), /I write it/)
  assert.match(JSON.stringify(notice?.content), /output limit inside a tool call \(Echo\)/)
  assert.ok((await wireOf(agent)).some(record => record.type === 'step.message' && record.cut === true))
})

test('a model whose every answer is cut inside a tool call does not go on for ever: the turn fails and says why', async t => {
  const llm = scriptedLlm(...Array.from({ length: 8 }, () => [...cutCall]))
  const agent = await startAgent(t, llm, { packs: [echoRunner()] })
  await agent.prompt('go')
  await agent.settled(1)
  const [ended] = payloads(agent, 'turn.ended')
  assert.equal(ended?.reason, 'failed')
  assert.match(String((ended?.error as { message?: string } | undefined)?.message), /output limit/)
  assert.ok(llm.requests.length < 8)
})

const lostCall = [
  { type: 'text', text: 'I read it.' },
  { type: 'finish', reason: 'tool_calls' }
] as const

test('an answer that claims a tool call and holds none is not the end: the model is told and asked again', async t => {
  const llm = scriptedLlm([...lostCall], 'done')
  const agent = await startAgent(t, llm)
  await agent.prompt('go')
  await agent.settled(1)
  const finished = payloads(agent, 'turn.step.completed').map(step => step.finishReason)
  assert.deepEqual([finished, payloads(agent, 'turn.ended')[0]?.reason], [['other', 'end_turn'], 'completed'])
  const [answer, notice] = llm.requests[1]?.messages.slice(-2) ?? []
  assert.match(JSON.stringify(answer?.content), /I read it/)
  assert.match(JSON.stringify(notice?.content), /no call arrived/)
})

test('a provider that claims a tool call with every answer ends the turn all the same, with the last of them', async t => {
  const llm = scriptedLlm(...Array.from({ length: 8 }, () => [...lostCall]))
  const agent = await startAgent(t, llm)
  await agent.prompt('go')
  await agent.settled(1)
  assert.deepEqual([payloads(agent, 'turn.ended')[0]?.reason, llm.requests.length], ['completed', 2])
})

test('answers that are cut now and then do not fail the turn, however often', async t => {
  const called = (n: number) => toolCalls({ id: `c${n}`, name: 'Echo' })
  const llm = scriptedLlm(...[1, 2, 3, 4].flatMap(n => [[...cutCall], called(n)]), 'done')
  const agent = await startAgent(t, llm, { packs: [echoRunner()] })
  await agent.prompt('go')
  await agent.settled(1)
  assert.deepEqual([payloads(agent, 'turn.ended')[0]?.reason, llm.requests.length], ['completed', 9])
})

test('a provider that pauses every answer does not go on for ever: the turn fails and says why', async t => {
  const llm = scriptedLlm([
    { type: 'text', text: 'a piece' },
    { type: 'finish', reason: 'paused' }
  ])
  const agent = await startAgent(t, llm)
  await agent.prompt('go')
  await agent.settled(1)
  const [ended] = payloads(agent, 'turn.ended')
  assert.equal(ended?.reason, 'failed')
  assert.match(JSON.stringify(ended), /paused its answer again and again/)
  assert.equal(llm.requests.length, 21)
})

test('an answer that the provider pauses goes on in the next request, as one answer', async t => {
  const llm = scriptedLlm(
    [
      { type: 'text', text: 'first half, ' },
      { type: 'finish', reason: 'paused' }
    ],
    'second half'
  )
  const agent = await startAgent(t, llm)
  await agent.prompt('go')
  await agent.settled(1)
  assert.equal(payloads(agent, 'turn.ended')[0]?.reason, 'completed')
  assert.equal(llm.requests.length, 2)
  assert.deepEqual(llm.requests[1]?.messages.at(-1), { role: 'assistant', content: [{ type: 'text', text: 'first half, ' }] })
  await agent.prompt('on')
  await agent.settled(2)
  const answers = llm.requests[2]?.messages.filter(message => message.role === 'assistant')
  assert.deepEqual(answers, [
    {
      role: 'assistant',
      content: [
        { type: 'text', text: 'first half, ' },
        { type: 'text', text: 'second half' }
      ]
    }
  ])
})

test('a tool without a runner, or a runner that throws, answers with an error and the turn goes on', async t => {
  const broken = runner(async () => {
    throw new Error('bug')
  })
  const llm = scriptedLlm(toolCalls({ id: 'a', name: 'Echo' }), 'done')
  const agent = await startAgent(t, llm, { packs: [broken] })
  await agent.prompt('go')
  await agent.settled(1)
  assert.equal(payloads(agent, 'tool.result')[0]?.isError, true)
  assert.equal(payloads(agent, 'turn.ended')[0]?.reason, 'completed')
})

test('usage and context size add up in the snapshot', async t => {
  const llm = scriptedLlm('one', 'two')
  const agent = await startAgent(t, llm)
  await agent.prompt('a')
  await agent.settled(1)
  await agent.prompt('b')
  await agent.settled(2)
  const { usage } = (await agent.call(readSnapshot, { params: { session_id: agent.session_id } })).data.session
  assert.deepEqual([usage.input_tokens, usage.output_tokens, usage.context_tokens, usage.context_limit], [20, 10, 15, 100_000])
})

test('a steered prompt joins the running turn once, at the next step', async t => {
  const more = latch()
  const llm = scriptedLlm([{ type: 'text', text: 'first' }, { type: 'wait', until: more.opened }, ...text(' answer')], 'second answer')
  const agent = await startAgent(t, llm)
  const { session_id } = agent
  await agent.prompt('start')
  await llm.arrived(0)
  const queued = await agent.prompt('and this')
  assert.equal(queued.status, 'queued')

  const steered = await agent.call(steerPrompts, { params: { session_id }, body: { prompt_ids: [queued.prompt_id] } })
  assert.equal(steered.code, 0)
  // Whoever comes now hears of it by the snapshot alone.
  const { data: now } = await agent.call(readSnapshot, { params: { session_id } })
  assert.deepEqual(now.in_flight_turn?.steered_prompts, [{ prompt_id: queued.prompt_id, content: [{ type: 'text', text: 'and this' }] }])
  more.open()
  await agent.settled(1)

  assert.equal(payloads(agent, 'turn.started').length, 1)
  assert.equal(payloads(agent, 'turn.step.started').length, 2)
  const { data } = await agent.call(listMessages, { params: { session_id } })
  assert.equal(data.items.filter(message => message.id === queued.prompt_id).length, 1)
  assert.equal(payloads(agent, 'prompt.completed').length, 1)
  const again = await agent.call(abortPrompt, { params: { session_id, prompt_id: queued.prompt_id } })
  assert.equal(again.code, 40903)
})

test('a prompt that is steered while a step is prepared stands before the answer of that step, as its event says', async t => {
  const preparing = latch()
  const prepared = latch()
  const slow = definePack({
    name: 'slow',
    setup: ctx =>
      ctx.contribute(StepInjectors, {
        variant: 'slow',
        async inject({ step }) {
          if (step !== 2) return undefined
          preparing.open()
          await prepared.opened
          return { text: 'a reminder' }
        }
      })
  })
  const llm = scriptedLlm(toolCalls({ id: 'a', name: 'Echo' }), 'answer')
  const agent = await startAgent(t, llm, { packs: [slow, echoRunner()] })
  const params = { session_id: agent.session_id }
  await agent.prompt('start')
  await preparing.opened
  const { prompt_id } = await agent.prompt('and this')
  assert.equal((await agent.call(steerPrompts, { params, body: { prompt_ids: [prompt_id] } })).code, 0)
  prepared.open()
  await agent.settled(1)

  const told = agent.events.map(({ type }) => type).filter(type => type === 'prompt.steered' || type === 'turn.step.started')
  assert.deepEqual(told, ['turn.step.started', 'prompt.steered', 'turn.step.started'])
  const { items } = (await agent.call(listMessages, { params })).data
  const [answer, , asked] = items
  assert.deepEqual([asked?.id, answer?.role], [prompt_id, 'assistant'])
})

test('a snapshot has a steered prompt or its event comes behind it, not both; the step that begins in between does not take it', async t => {
  const running = latch()
  const ran = latch()
  const beginning = latch()
  const disk = latch()
  let full: Promise<unknown> | undefined
  const history = historyOnDisk(async records => {
    if (records.some(record => record.type === 'step.begin' && record.step === 2)) {
      beginning.open()
      full = disk.opened
    }
    await full
  })
  const slow = runner(async ({ calls, report }) => {
    running.open()
    await ran.opened
    const outcomes = calls.map(call => ({ call, result: { output: 'ran' } }))
    for (const { call, result } of outcomes) await report({ type: 'finished', call, result })
    return outcomes
  })
  const never = new Promise<never>(() => undefined)
  const llm = scriptedLlm(toolCalls({ id: 'a', name: 'Echo' }), [{ type: 'wait', until: never }])
  const agent = await startAgent(t, llm, { history, packs: [slow] })
  const params = { session_id: agent.session_id }
  const steered = async () => {
    const { data } = await agent.call(readSnapshot, { params })
    return data.in_flight_turn?.steered_prompts?.map(prompt => prompt.prompt_id)
  }
  await agent.prompt('start')
  await running.opened
  const { prompt_id } = await agent.prompt('and this')
  ran.open()
  await beginning.opened
  const steering = agent.call(steerPrompts, { params, body: { prompt_ids: [prompt_id] } })
  const early = agent.call(readSnapshot, { params })
  disk.open()
  assert.equal((await steering).code, 0)
  assert.deepEqual(await steered(), [prompt_id])

  const { as_of_seq, epoch, in_flight_turn } = (await early).data
  const socket = await agent.connect()
  await socket.request('subscribe', { session_ids: [agent.session_id], cursors: { [agent.session_id]: { seq: as_of_seq, epoch } } })
  const shown = in_flight_turn?.steered_prompts?.length ?? 0
  assert.equal(shown + socket.frames.filter(frame => frame.type === 'prompt.steered').length, 1)
})

test('a result that asks to stop ends the turn after its batch', async t => {
  const stopping = runner(async ({ calls, report }) => {
    const outcomes = calls.map((call, at) => ({ call, result: { output: call.name, stop_turn: at === 0 } }))
    for (const { call, result } of outcomes) await report({ type: 'finished', call, result })
    return outcomes
  })
  const llm = scriptedLlm(toolCalls({ id: 'a', name: 'Echo' }, { id: 'b', name: 'Echo' }), 'never asked')
  const agent = await startAgent(t, llm, { packs: [stopping] })

  await agent.prompt('go')
  await agent.settled(1)

  assert.equal(llm.requests.length, 1)
  assert.deepEqual(
    payloads(agent, 'tool.result').map(payload => payload.toolCallId),
    ['a', 'b']
  )
  assert.equal(payloads(agent, 'turn.step.completed')[0]?.finishReason, 'end_turn')
  assert.equal(payloads(agent, 'turn.ended')[0]?.reason, 'completed')
})

test('a call that is answered twice has one result: the first', async t => {
  const twice = runner(async ({ calls, report }) => {
    for (const call of calls) {
      await report({ type: 'finished', call, result: { output: 'first' } })
      await report({ type: 'finished', call, result: { output: 'second' } })
    }
    return calls.map(call => ({ call, result: { output: 'third' } }))
  })
  const llm = scriptedLlm(toolCalls({ id: 'a', name: 'Echo' }, { id: 'b', name: 'Echo' }), 'done')
  const agent = await startAgent(t, llm, { packs: [twice] })

  await agent.prompt('go')
  await agent.settled(1)

  assert.deepEqual(
    payloads(agent, 'tool.result').map(payload => payload.output),
    ['first', 'first']
  )
  const { data } = await agent.call(listMessages, { params: { session_id: agent.session_id } })
  assert.equal(data.items.filter(message => message.role === 'tool').length, 2)
})

test('context tokens after a tool result are those that the model measured and an estimate of the result', async t => {
  const long = runner(async ({ calls }) => calls.map(call => ({ call, result: { output: 'x'.repeat(400), stop_turn: true } })))
  const agent = await startAgent(t, scriptedLlm(toolCalls({ id: 'a', name: 'Echo' }), 'done'), { packs: [long] })

  await agent.prompt('go')
  await agent.settled(1)

  const { usage } = (await agent.call(readSnapshot, { params: { session_id: agent.session_id } })).data.session
  // 10 in and 5 out were measured; 400 characters of the result and 4 of its role are estimated at a quarter each.
  assert.equal(usage.context_tokens, 15 + 101)
})
