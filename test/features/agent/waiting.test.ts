/** Prompts that wait, as clients hear of them that came meanwhile. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TurnHooks } from '../../../features/agent/index.ts'
import { abortSession, listPrompts, steerPrompts } from '../../../features/prompts/index.ts'
import { readSnapshot } from '../../../features/session-views/index.ts'
import { definePack } from '../../../kernel/index.ts'
import { latch } from '../../helpers/latch.ts'
import { scriptedLlm, text } from '../../helpers/scripted-llm.ts'
import { freshDir } from '../../helpers/temp.ts'
import { copyOfHome, type Started, startAgent } from './start.ts'

/** A page that takes the snapshot now and gets what comes behind it. */
async function pageNow(agent: Started) {
  const { session_id } = agent
  const { as_of_seq: seq, epoch } = (await agent.call(readSnapshot, { params: { session_id } })).data
  const socket = await agent.connect()
  await socket.request('subscribe', { session_ids: [session_id], cursors: { [session_id]: { seq, epoch } } })
  return socket
}

type Told = { readonly type: string; readonly payload: unknown }
const submissions = (events: readonly Told[], id: string) =>
  events.flatMap(({ type, payload }) => {
    const { status, userMessageId, content, createdAt, promptId } = payload as Record<string, unknown>
    return type === 'prompt.submitted' && promptId === id ? [{ status, userMessageId, content, createdAt }] : []
  })
/** What is told of prompts, turns and steps, in order. */
const order = (events: readonly Told[]) =>
  events.flatMap(({ type, payload }) => {
    const { status, promptId } = payload as Record<string, unknown>
    if (type === 'prompt.submitted') return [`${status} ${promptId}`]
    return ['turn.started', 'turn.step.started', 'hook.result', 'prompt.completed'].includes(type) ? [type] : []
  })

test('a prompt that waited is told again right before its turn, so that a page has it that came meanwhile', async t => {
  const gate = latch()
  const llm = scriptedLlm([{ type: 'wait', until: gate.opened }, ...text('first')], 'second')
  const agent = await startAgent(t, llm)
  const first = await agent.prompt('one')
  const second = await agent.prompt('two')
  const page = await pageNow(agent)
  gate.open()
  await agent.settled(2)

  const [queued, running, ...more] = submissions(agent.events, second.prompt_id)
  assert.deepEqual([queued?.status, more], ['queued', []])
  assert.deepEqual(running, { ...queued, status: 'running' })
  assert.equal(submissions(agent.events, first.prompt_id).length, 1)
  await page.next(({ type, payload }) => type === 'prompt.completed' && payload.promptId === second.prompt_id)
  const heard = order(page.frames)
  assert.deepEqual(heard.slice(heard.indexOf(`running ${second.prompt_id}`)).slice(0, 2), [`running ${second.prompt_id}`, 'turn.started'])
})

test('prompts that are steered are told again right before the step that takes them, one by one', async t => {
  const gate = latch()
  const llm = scriptedLlm([{ type: 'wait', until: gate.opened }, ...text('first')], 'second')
  const agent = await startAgent(t, llm)
  await agent.prompt('go')
  const prompt_ids = [(await agent.prompt('this')).prompt_id, (await agent.prompt('and that')).prompt_id]
  assert.equal((await agent.call(steerPrompts, { params: { session_id: agent.session_id }, body: { prompt_ids } })).code, 0)
  const page = await pageNow(agent)
  gate.open()
  await agent.settled(1)

  for (const id of prompt_ids) {
    const [queued, running, ...more] = submissions(agent.events, id)
    assert.deepEqual([running, more], [{ ...queued, status: 'running' }, []])
  }
  await page.next('prompt.completed')
  assert.deepEqual(order(page.frames), [...prompt_ids.map(id => `running ${id}`), 'turn.step.started', 'prompt.completed'])
})

test('steered prompts that the turn did not take before it ended are told to wait again, those only, in their order', async t => {
  const held = [
    { type: 'text', text: 'so far' },
    { type: 'wait', until: new Promise<never>(() => undefined) }
  ] as const
  const agent = await startAgent(t, scriptedLlm(held, held))
  const { session_id } = agent
  const one = await agent.prompt('one')
  const [two, three, four] = [await agent.prompt('two'), await agent.prompt('three'), await agent.prompt('four')]
  const prompt_ids = [two.prompt_id, three.prompt_id]
  assert.equal((await agent.call(steerPrompts, { params: { session_id }, body: { prompt_ids } })).code, 0)
  const page = await pageNow(agent)
  await agent.call(abortSession, { params: { session_id } })
  await page.next('turn.started')

  const told = page.frames.flatMap(({ type, payload: { promptId, content, queueLength } }) =>
    type === 'prompt.queued' || type === 'prompt.aborted' || type === 'prompt.submitted' ? [{ type, promptId, content, queueLength }] : []
  )
  const waits = (promptId: string, text: string) => ({ type: 'prompt.queued', promptId, content: [{ type: 'text', text }], queueLength: 3 })
  assert.deepEqual(
    told.slice(0, 3).map(({ type, promptId }) => [type, promptId]),
    [
      ['prompt.aborted', one.prompt_id],
      ['prompt.queued', two.prompt_id],
      ['prompt.queued', three.prompt_id]
    ]
  )
  assert.deepEqual(told.slice(1, 3), [waits(two.prompt_id, 'two'), waits(three.prompt_id, 'three')])
  assert.deepEqual(
    submissions(page.frames, two.prompt_id).map(({ status }) => status),
    ['running']
  )
  const { queued } = (await agent.call(listPrompts, { params: { session_id } })).data
  assert.deepEqual(
    queued.map(prompt => prompt.prompt_id),
    [three.prompt_id, four.prompt_id]
  )
})

test('a prompt that waits when the server dies is told again by the next one, right before its turn', async t => {
  const home = await freshDir()
  const agent = await startAgent(t, scriptedLlm([{ type: 'wait', until: new Promise<never>(() => undefined) }]), { home })
  const { session_id } = agent
  await agent.prompt('one')
  const { prompt_id } = await agent.prompt('two')
  const copy = await copyOfHome(home)

  const next = await startAgent(t, scriptedLlm('answer'), { home: copy, session_id })
  await next.call(readSnapshot, { params: { session_id } })
  await next.settled(2)
  const heard = order(next.events)
  assert.deepEqual(heard.slice(heard.indexOf(`running ${prompt_id}`)).slice(0, 2), [`running ${prompt_id}`, 'turn.started'])
  assert.equal(submissions(next.events, prompt_id).length, 1)
})

test('a prompt about which packs are asked waits, too: it is told again when its turn begins, or when it is blocked', async t => {
  const asked = [latch(), latch()]
  const answered = [latch(), latch()]
  let count = 0
  const asks = definePack({
    name: 'asks',
    needs: { hooks: TurnHooks },
    setup: (ctx, { hooks }) =>
      ctx.tap(hooks.beforePrompt, async () => {
        const at = count++
        asked[at]?.open()
        await answered[at]?.opened
        return at === 0 ? undefined : { event: 'UserPromptSubmit', reason: 'not today' }
      })
  })
  const agent = await startAgent(t, scriptedLlm('answer'), { packs: [asks] })
  for (const at of [0, 1]) {
    const submitting = agent.prompt(`prompt ${at}`)
    await asked[at]?.opened
    const page = await pageNow(agent)
    answered[at]?.open()
    const { prompt_id } = await submitting
    await page.next('prompt.completed')
    const heard = order(page.frames).slice(0, 2)
    assert.deepEqual(heard, at === 0 ? [`running ${prompt_id}`, 'turn.started'] : [`blocked ${prompt_id}`, 'hook.result'])
  }
})
