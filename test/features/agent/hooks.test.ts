import assert from 'node:assert/strict'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Agent, TurnHooks } from '../../../features/agent/index.ts'
import { abortPrompt, abortSession } from '../../../features/prompts/index.ts'
import { readSnapshot } from '../../../features/session-views/index.ts'
import { archiveSession, readSession } from '../../../features/sessions/index.ts'
import { definePack, type PackContext } from '../../../kernel/index.ts'
import { latch } from '../../helpers/latch.ts'
import { failure, type Reply, scriptedLlm, text } from '../../helpers/scripted-llm.ts'
import { copyOfHome, historyOnDisk, insider, type Started, startAgent, wireOf } from './start.ts'

const notice = (content: string) => ({ content, origin: { kind: 'task' } })
const refused = failure({ message: '400 no', retryable: false, status: 400 })
const input = { content: [{ type: 'text', text: 'do it' }] }
const payloads = ({ events }: Pick<Started, 'events'>, type: string) =>
  events.filter(event => event.type === type).map(event => event.payload as Record<string, unknown>)

type Taps = (tap: PackContext['tap'], hooks: TurnHooks, main: () => Agent) => void

async function started(t: Parameters<typeof startAgent>[0], taps: Taps, ...replies: readonly Reply[]) {
  const inside = insider()
  const llm = scriptedLlm(...replies)
  let main: Agent
  const tapped = definePack({
    name: 'tapped',
    needs: { hooks: TurnHooks },
    setup: (ctx, { hooks }) => taps(ctx.tap, hooks, () => main)
  })
  const agent = await startAgent(t, llm, { packs: [inside.pack, tapped] })
  main = await inside.main(agent)
  return { agent, llm, main, params: { session_id: agent.session_id } }
}

/** A tap that is under way until the turn is aborted. */
function untilAborted<A>(answer: A) {
  const begun = latch()
  const tap = async ({ signal }: { readonly signal: AbortSignal }) => {
    begun.open()
    await new Promise<void>(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))
    return answer
  }
  return { begun, tap }
}

for (const verdict of ['retry', undefined] as const) {
  test(`a turn that is aborted while packs look at a failed request is cancelled, whatever they say (${verdict})`, async t => {
    const asked = untilAborted(verdict)
    const { agent, llm, params } = await started(t, (tap, hooks) => tap(hooks.modelError, (_error, info) => asked.tap(info)), refused)
    await agent.prompt('go')
    await asked.begun.opened

    assert.equal((await agent.call(abortSession, { params })).code, 0)

    const [ended] = payloads(agent, 'turn.ended')
    assert.deepEqual([ended?.reason, ended?.interruptReason, ended?.error], ['cancelled', 'user_cancelled', undefined])
    assert.equal(llm.requests.length, 1)
  })
}

for (const verdict of [{ text: 'never said', origin: { kind: 'hook_result' } }, undefined]) {
  test(`a turn that is aborted while packs are asked whether it goes on is cancelled, whatever they say (${verdict?.text})`, async t => {
    const asked = untilAborted(verdict)
    const { agent, llm, params } = await started(t, (tap, hooks) => tap(hooks.shouldContinue, asked.tap), 'answer')
    await agent.prompt('go')
    await asked.begun.opened

    assert.equal((await agent.call(abortSession, { params })).code, 0)

    const [ended] = payloads(agent, 'turn.ended')
    assert.deepEqual([ended?.reason, ended?.interruptReason], ['cancelled', 'user_cancelled'])
    assert.equal(llm.requests.length, 1)
    assert.ok(!JSON.stringify(await wireOf(agent)).includes('never said'))
  })
}

test('a turn that is aborted before its step begins has none', async t => {
  const asked = untilAborted(undefined)
  const { agent, llm, params } = await started(t, (tap, hooks) => tap(hooks.stepBegin, asked.tap), 'answer')
  await agent.prompt('go')
  await asked.begun.opened

  assert.equal((await agent.call(abortSession, { params })).code, 0)

  assert.equal(payloads(agent, 'turn.ended')[0]?.reason, 'cancelled')
  assert.deepEqual([payloads(agent, 'turn.step.started').length, llm.requests.length], [0, 0])
})

test('a stop while a step waits for its next attempt interrupts the step, and the turn completes', async t => {
  const stops: Taps = (tap, hooks) => tap(hooks.stepBegin, ({ step }) => (step > 1 ? 'stop' : undefined))
  const { agent, llm } = await started(t, stops, failure({ message: '503', retryable: true, status: 503 }), 'answer')
  await agent.prompt('go')
  await agent.settled(1)

  assert.deepEqual(
    payloads(agent, 'turn.step.interrupted').map(({ step, reason }) => [step, reason]),
    [[1, 'aborted']]
  )
  assert.equal(payloads(agent, 'turn.ended')[0]?.reason, 'completed')
  assert.equal(llm.requests.length, 1)
})

test('an answer of which something was told is not sent again by a pack', async t => {
  const half = [...text('half').slice(0, 1), ...refused]
  const { agent, llm } = await started(t, (tap, hooks) => tap(hooks.modelError, () => 'retry'), half, 'answer')
  await agent.prompt('go')
  await agent.settled(1)

  assert.equal(llm.requests.length, 1)
  assert.equal(payloads(agent, 'turn.ended')[0]?.reason, 'failed')
})

test('a turn that failed takes nothing more while packs hear of its end, and no snapshot shows it', async t => {
  const heard: unknown[] = []
  const looks: Taps = (tap, hooks, main) =>
    tap(hooks.turnEnd, async () => {
      heard.push(main().inFlight(), await main().inject({ ...notice('too late'), admission: 'activeTurnOnly' }))
    })
  const { agent } = await started(t, looks, refused)
  await agent.prompt('go')
  await agent.settled(1)

  assert.deepEqual(heard, [undefined, 'refused'])
})

test('a notice that comes while packs are asked whether to go on keeps the turn going', async t => {
  const fates: string[] = []
  const injects: Taps = (tap, hooks, main) =>
    tap(hooks.shouldContinue, async () => {
      if (fates.length === 0) fates.push(await main().inject(notice('and this')))
      return undefined
    })
  const { agent, llm } = await started(t, injects, 'first', 'second')
  await agent.prompt('go')
  await agent.settled(1)

  assert.deepEqual([fates, llm.requests.length, payloads(agent, 'turn.started').length], [['joins'], 2, 1])
})

test('a prompt that a pack blocks is an outcome for whoever ran it', async t => {
  const blocks: Taps = (tap, hooks) => tap(hooks.beforePrompt, () => ({ event: 'UserPromptSubmit', reason: 'not today' }))
  const { llm, main } = await started(t, blocks, 'answer')

  const { reason, turn_id, steps } = await main.run(input)

  assert.deepEqual([reason, turn_id, steps, llm.requests.length], ['blocked', undefined, 0, 0])
})

test('a session is idle when the prompt that was to be next is withdrawn while packs are asked about it', async t => {
  for (const how of ['abort', 'archive'] as const) {
    const asked = latch()
    const first = latch()
    const asks: Taps = (tap, hooks) =>
      tap(hooks.beforePrompt, async ({ content, signal }) => {
        if (!JSON.stringify(content).includes('two')) return undefined
        asked.open()
        await new Promise<void>(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))
        return undefined
      })
    const { agent, params } = await started(t, asks, [{ type: 'wait', until: first.opened }, ...text('answer')])
    await agent.prompt('one')
    await agent.waitFor(({ type }) => type === 'turn.step.started')
    const { prompt_id } = await agent.prompt('two')
    first.open()
    await asked.opened
    if (how === 'abort') await agent.call(abortPrompt, { params: { ...params, prompt_id } })
    else await agent.call(archiveSession, { params })
    await agent.waitFor(({ type, payload }) => type === 'event.session.work_changed' && !(payload as { busy: boolean }).busy)
    const { busy, main_turn_active, last_turn_reason } = (await agent.call(readSession, { params })).data
    assert.deepEqual([busy, main_turn_active, last_turn_reason], [false, false, 'completed'])
    const heard = payloads(agent, 'event.session.work_changed').at(-1)
    assert.deepEqual([heard?.busy, heard?.main_turn_active, heard?.last_turn_reason], [false, false, 'completed'])
  }
})

test('a prompt about which packs were to be asked is answered when its agent is closed, or they leave, while it is saved', async t => {
  for (const leaves of ['agent', 'asks'] as const) {
    const [saving, save] = [latch(), latch()]
    const history = historyOnDisk(async records => {
      if (!records.some(({ type }) => type === 'prompt.accepted')) return
      saving.open()
      await save.opened
    })
    const asks = definePack({
      name: 'asks',
      needs: { hooks: TurnHooks },
      setup: (ctx, { hooks }) => ctx.tap(hooks.beforePrompt, () => undefined)
    })
    const inside = insider()
    const agent = await startAgent(t, scriptedLlm('answer'), { history, packs: [asks, inside.pack] })
    const { host } = await inside.main(agent)
    const prompt = agent.prompt('go')
    await saving.opened
    const closing = leaves === 'agent' ? (host as unknown as { closeHost(): Promise<unknown> }).closeHost() : agent.kernel.unload('asks')
    if (leaves === 'asks') await closing
    else await new Promise(setImmediate)
    save.open()
    assert.equal((await prompt).status, leaves === 'agent' ? 'queued' : 'running')
    await closing
  }
})

test('a session whose newest prompt was blocked says so after a restart, too, also when its state was not saved', async t => {
  const blocks: Taps = (tap, hooks) =>
    tap(hooks.beforePrompt, ({ content }) =>
      JSON.stringify(content).includes('bad') ? { event: 'UserPromptSubmit', reason: 'not today' } : undefined
    )
  const { agent } = await started(t, blocks, 'answer')
  const { session_id } = agent
  await agent.prompt('good')
  await agent.settled(1)
  await agent.prompt('bad')
  await agent.settled(2)
  for (const saved of [true, false]) {
    const home = await copyOfHome(agent.home)
    if (!saved) {
      const file = join(home, (await readdir(home, { recursive: true })).find(name => name.endsWith('state.json')) ?? '')
      const { last_turn_reason: _reason, ...state } = JSON.parse(await readFile(file, 'utf8')) as Record<string, unknown>
      await writeFile(file, JSON.stringify(state))
    }
    const next = await startAgent(t, scriptedLlm('never asked'), { home, session_id })
    const params = { session_id }
    await next.call(readSnapshot, { params })
    assert.equal((await next.call(readSession, { params })).data.last_turn_reason, 'failed')
  }
})

test('closing an agent ends what asks packs about a prompt, which begins nothing any more', async t => {
  const asked = untilAborted(undefined)
  const { agent, llm, main } = await started(t, (tap, hooks) => tap(hooks.beforePrompt, asked.tap), 'answer')
  const outcome = main.run(input)
  await asked.begun.opened

  await agent.kernel.unload('agent')

  const { reason, turn_id } = await outcome
  assert.deepEqual([reason, turn_id, llm.requests.length], ['cancelled', undefined, 0])
  assert.ok(!(await wireOf(agent)).some(record => record.type === 'turn.started' || record.type === 'prompt.settled'))
})
