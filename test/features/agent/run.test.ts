import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { abortPrompt, abortSession } from '../../../features/prompts/index.ts'
import { archiveSession } from '../../../features/sessions/index.ts'
import { latch } from '../../helpers/latch.ts'
import { failure, scriptedLlm, text, toolCalls } from '../../helpers/scripted-llm.ts'
import { echoRunner, historyOnDisk, insider, startAgent } from './start.ts'

const never = new Promise<never>(() => undefined)
const hanging = [{ type: 'text', text: 'so far' } as const, { type: 'wait', until: never } as const]
const input = { content: [{ type: 'text', text: 'do it' }], origin: { kind: 'system_trigger', name: 'subagent' } }
const usage = { inputOther: 10, output: 5, inputCacheRead: 0, inputCacheCreation: 0 }

test('whoever runs a prompt gets its outcome: the last text, the steps, the tokens of the turn', async t => {
  const inside = insider()
  const llm = scriptedLlm('before', toolCalls({ id: 'c', name: 'Echo' }), 'all is well')
  const agent = await startAgent(t, llm, { packs: [inside.pack, echoRunner()] })
  await agent.prompt('earlier')
  await agent.settled(1)

  const outcome = await (await inside.main(agent)).run({ ...input, prompt_id: 'p1' })

  assert.deepEqual(outcome, {
    prompt_id: 'p1',
    turn_id: 1,
    reason: 'completed',
    text: 'all is well',
    truncated: false,
    steps: 2,
    usage: { ...usage, inputOther: 20, output: 10 }
  })
  // It is told by then, and the agent is free.
  assert.equal(agent.events.filter(event => event.type === 'prompt.completed').length, 2)
})

test('an outcome says that the text was cut, and a paused answer is one text', async t => {
  const inside = insider()
  const cut = text('half an ans').map(part => (part.type === 'finish' ? ({ type: 'finish', reason: 'truncated' } as const) : part))
  const paused = text('first half ').map(part => (part.type === 'finish' ? ({ type: 'finish', reason: 'paused' } as const) : part))
  const llm = scriptedLlm(cut, paused, 'second half', paused, toolCalls({ id: 'c', name: 'Echo' }), 'another')
  const agent = await startAgent(t, llm, { packs: [inside.pack, echoRunner()] })
  const main = await inside.main(agent)

  const one = await main.run(input)
  const two = await main.run(input)
  const three = await main.run(input)

  assert.deepEqual([one.reason, one.text, one.truncated], ['completed', 'half an ans', true])
  assert.deepEqual([two.reason, two.text, two.truncated, two.steps], ['completed', 'first half second half', false, 2])
  assert.deepEqual([three.text, three.steps], ['another', 3])
})

test('a failed turn is an outcome with its error', async t => {
  const inside = insider()
  const agent = await startAgent(t, scriptedLlm(failure({ message: '400 no', retryable: false, status: 400 })), { packs: [inside.pack] })

  const { reason, interrupt_reason, error, text } = await (await inside.main(agent)).run(input)

  assert.deepEqual([reason, interrupt_reason, error?.message, text], ['failed', 'error', '400 no', ''])
})

test('a run is aborted by its signal, running or queued; the other prompts go on', async t => {
  const inside = insider()
  const llm = scriptedLlm(hanging, 'third')
  const agent = await startAgent(t, llm, { packs: [inside.pack] })
  const main = await inside.main(agent)
  const signals = [new AbortController(), new AbortController()]
  const runs = signals.map(({ signal }) => main.run(input, signal))
  const kept = new AbortController()
  const third = main.run(input, kept.signal)
  await llm.arrived(0)

  signals[1]?.abort()
  const queued = await runs[1]
  signals[0]?.abort()
  const running = await runs[0]

  assert.deepEqual([queued?.turn_id, queued?.reason, queued?.interrupt_reason], [undefined, 'cancelled', 'aborted'])
  assert.deepEqual([running?.turn_id, running?.reason, running?.interrupt_reason, running?.steps], [0, 'cancelled', 'aborted', 1])
  assert.equal((await third).text, 'third')
  assert.equal(getEventListeners(kept.signal, 'abort').length, 0)
})

test('a run whose signal was aborted before is not accepted', async t => {
  const inside = insider()
  const agent = await startAgent(t, scriptedLlm('x'), { packs: [inside.pack] })
  const main = await inside.main(agent)

  await assert.rejects(main.run({ ...input, prompt_id: 'p' }, AbortSignal.abort(new Error('too late'))), /too late/)

  assert.equal(main.knows('p'), false)
})

test('a run that is aborted while it is being accepted never goes on', async t => {
  const inside = insider()
  const asked = latch()
  const disk = latch()
  const history = historyOnDisk(async records => {
    if (!records.some(record => record.type === 'prompt.accepted')) return
    asked.open()
    await disk.opened
  })
  const agent = await startAgent(t, scriptedLlm(hanging), { packs: [inside.pack], history })
  const main = await inside.main(agent)
  const controller = new AbortController()
  const run = main.run(input, controller.signal)
  await asked.opened

  controller.abort()
  disk.open()

  assert.deepEqual([(await run).reason, (await run).interrupt_reason], ['cancelled', 'aborted'])
})

test('what the user stops is an outcome for whoever ran it', async t => {
  const inside = insider()
  const llm = scriptedLlm(hanging)
  const agent = await startAgent(t, llm, { packs: [inside.pack] })
  const params = { session_id: agent.session_id }
  const main = await inside.main(agent)

  const running = main.run(input)
  const queued = main.run({ ...input, prompt_id: 'q' })
  await llm.arrived(0)
  await agent.call(abortPrompt, { params: { ...params, prompt_id: 'q' } })
  await agent.call(abortSession, { params })

  assert.deepEqual([(await running).reason, (await running).interrupt_reason], ['cancelled', 'user_cancelled'])
  assert.deepEqual([(await queued).reason, (await queued).turn_id], ['cancelled', undefined])
})

test('nobody waits for an outcome for ever: archiving and shutting down end all runs', async t => {
  const inside = insider()
  const llm = scriptedLlm(hanging)
  const agent = await startAgent(t, llm, { packs: [inside.pack] })
  const main = await inside.main(agent)
  const archived = [main.run(input), main.run(input)]
  await llm.arrived(0)
  await agent.call(archiveSession, { params: { session_id: agent.session_id } })
  assert.deepEqual(
    (await Promise.all(archived)).map(({ reason }) => reason),
    ['cancelled', 'cancelled']
  )

  const stopped = [main.run(input), main.run(input)]
  await llm.arrived(1)
  await agent.kernel.unload('agent')
  assert.deepEqual(
    (await Promise.all(stopped)).map(({ reason, turn_id }) => [reason, turn_id]),
    [
      ['cancelled', 1],
      ['cancelled', undefined]
    ]
  )
})

test('whoever runs a notice gets the outcome of its turn, and no client is told of a prompt', async t => {
  const inside = insider()
  const agent = await startAgent(t, scriptedLlm('all is well', hanging), { packs: [inside.pack] })
  const main = await inside.main(agent)
  const notice = { content: 'go on', origin: input.origin }
  const { reason, text: said, turn_id } = await main.runNotice(notice)
  assert.deepEqual([reason, said, turn_id], ['completed', 'all is well', 0])
  assert.deepEqual(
    agent.events.filter(({ type }) => type.startsWith('prompt.')),
    []
  )

  const running = new AbortController()
  const cut = main.runNotice(notice, running.signal)
  const waiting = new AbortController()
  const withdrawn = main.runNotice(notice, waiting.signal)
  await agent.waitFor(({ type }) => type === 'assistant.delta')
  waiting.abort()
  assert.deepEqual([(await withdrawn).reason, (await withdrawn).turn_id], ['cancelled', undefined])
  running.abort()
  assert.deepEqual([(await cut).reason, (await cut).turn_id], ['cancelled', 1])
})

test('a notice that waits for its turn is over when its session is archived, or its agent closed', async t => {
  const inside = insider()
  for (const close of [
    (agent: Awaited<ReturnType<typeof startAgent>>) => agent.call(archiveSession, { params: { session_id: agent.session_id } }),
    (agent: Awaited<ReturnType<typeof startAgent>>) => agent.stop()
  ]) {
    const agent = await startAgent(t, scriptedLlm(hanging), { packs: [inside.pack] })
    await agent.prompt('first')
    await agent.waitFor(({ type }) => type === 'assistant.delta')
    const waits = (await inside.main(agent)).runNotice({ content: 'go on', origin: input.origin })
    await Promise.all([close(agent), waits])
    assert.deepEqual([(await waits).reason, (await waits).turn_id], ['cancelled', undefined])
  }
})
