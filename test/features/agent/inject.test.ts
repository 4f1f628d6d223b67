import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Agent, NoticeInput } from '../../../features/agent/index.ts'
import { listMessages } from '../../../features/messages/index.ts'
import { abortPrompt, abortSession, listPrompts, steerPrompts } from '../../../features/prompts/index.ts'
import { archiveSession, readSession, restoreSession } from '../../../features/sessions/index.ts'
import { latch } from '../../helpers/latch.ts'
import { type Reply, scriptedLlm, toolCalls } from '../../helpers/scripted-llm.ts'
import { copyOfHome, echoRunner, historyOnDisk, insider, runner, type Started, startAgent, wireOf } from './start.ts'

const origin = { kind: 'task', task_id: 'bash-1' }
const notice = (content: string, extra: Partial<NoticeInput> = {}): NoticeInput => ({ content, origin, ...extra })

const never = new Promise<never>(() => undefined)
const hanging = (until: Promise<unknown> = never): Reply => [
  { type: 'text', text: 'so far' },
  { type: 'wait', until },
  { type: 'finish', reason: 'completed' }
]

const payloads = ({ events }: Pick<Started, 'events'>, type: string) =>
  events.filter(event => event.type === type).map(event => event.payload as Record<string, unknown>)
const turnsEnded = async (agent: Started, count: number) => {
  let seen = 0
  await agent.waitFor(event => event.type === 'turn.ended' && ++seen >= count)
  await agent.waitFor(event => event.type === 'event.session.work_changed' && !(event.payload as { busy: boolean }).busy)
}
const texts = (messages: readonly { readonly role: string; readonly content: readonly { readonly type: string }[] }[]) =>
  messages.filter(message => message.role === 'user').map(message => message.content.map(part => (part as { text?: string }).text).join())
/** What users said and notices told, as the model got it in the last request. */
const heard = (llm: ReturnType<typeof scriptedLlm>) =>
  texts(llm.requests.at(-1)?.messages ?? []).filter(text => !text.startsWith('<system'))

test('a notice on an idle agent starts a turn with its origin, and nobody is told of a prompt', async t => {
  const inside = insider()
  const llm = scriptedLlm('noted')
  const agent = await startAgent(t, llm, { packs: [inside.pack] })
  const params = { session_id: agent.session_id }
  const main = await inside.main(agent)

  assert.equal(await main.inject(notice('task bash-1 is over')), 'starts')

  assert.equal((await agent.call(readSession, { params })).data.busy, true)
  assert.deepEqual((await agent.call(listPrompts, { params })).data, { active: null, queued: [] })
  await turnsEnded(agent, 1)
  assert.deepEqual(payloads(agent, 'turn.started'), [{ turnId: 0, origin }])
  assert.deepEqual(
    ['prompt.submitted', 'prompt.queued', 'prompt.completed', 'session.meta.updated'].flatMap(type => payloads(agent, type)),
    []
  )
  const { title, last_prompt, last_turn_reason } = (await agent.call(readSession, { params })).data
  assert.deepEqual([title, last_prompt, last_turn_reason], ['', undefined, 'completed'])
  const { items } = (await agent.call(listMessages, { params })).data
  const message = items.find(item => item.metadata?.origin && (item.metadata.origin as { kind: string }).kind === 'task')
  assert.deepEqual(
    [message?.role, message?.content, message?.metadata, message?.prompt_id],
    ['user', [{ type: 'text', text: 'task bash-1 is over' }], { origin }, undefined]
  )
  assert.deepEqual(heard(llm), ['task bash-1 is over'])
})

test('a notice in the middle of a turn comes with its next step, also when the model had nothing more to do', async t => {
  const inside = insider()
  const more = latch()
  const llm = scriptedLlm(hanging(more.opened), 'and noted')
  const agent = await startAgent(t, llm, { packs: [inside.pack] })
  const main = await inside.main(agent)
  await agent.prompt('one')
  await llm.arrived(0)

  assert.deepEqual(await Promise.all([main.inject(notice('a')), main.inject(notice('b'))]), ['joins', 'joins'])

  more.open()
  await agent.settled(1)
  assert.equal(llm.requests.length, 2)
  assert.deepEqual(heard(llm), ['one', 'a', 'b'])
  assert.equal(payloads(agent, 'turn.started').length, 1)
})

test('of notices that share no step each gets one of its own', async t => {
  const inside = insider()
  const more = latch()
  const llm = scriptedLlm(hanging(more.opened), 'noted')
  const agent = await startAgent(t, llm, { packs: [inside.pack] })
  const main = await inside.main(agent)
  await agent.prompt('one')
  await llm.arrived(0)
  for (const text of ['a', 'b']) await main.inject(notice(text, { mergeable: false }))
  await main.inject(notice('c'))

  more.open()
  await agent.settled(1)

  assert.deepEqual(
    llm.requests.map(({ messages }) => texts(messages).filter(text => !text.startsWith('<system'))),
    [['one'], ['one', 'a', 'c'], ['one', 'a', 'c', 'b']]
  )
})

test('a notice that wants a turn of its own waits for the running one and for prompts', async t => {
  const inside = insider()
  const more = latch()
  const llm = scriptedLlm(hanging(more.opened), 'second', 'third')
  const agent = await startAgent(t, llm, { packs: [inside.pack] })
  const main = await inside.main(agent)
  await agent.prompt('one')
  await llm.arrived(0)
  // With a turn of its own it is bound to none that ends before.
  assert.equal(await main.inject(notice('go on', { admission: 'newTurn', turn_scoped: true })), 'starts')
  await agent.prompt('two')

  more.open()
  await turnsEnded(agent, 3)

  assert.deepEqual(
    payloads(agent, 'turn.started').map(({ origin }) => (origin as { kind: string }).kind),
    ['user', 'user', 'task']
  )
  assert.deepEqual(heard(llm), ['one', 'two', 'go on'])
  // Between the turns the session is at work without a gap.
  assert.equal(payloads(agent, 'event.session.work_changed').filter(({ busy }) => busy === false).length, 1)
})

test('a notice for the next turn waits until a prompt comes, one for the running turn alone is refused', async t => {
  const inside = insider()
  const llm = scriptedLlm('hello')
  const agent = await startAgent(t, llm, { packs: [inside.pack] })
  const main = await inside.main(agent)

  assert.equal(await main.inject(notice('later', { admission: 'activeOrNextTurn' })), 'waits')
  assert.equal(await main.inject(notice('now', { admission: 'activeTurnOnly' })), 'refused')
  assert.equal(payloads(agent, 'turn.started').length, 0)

  await agent.prompt('one')
  await agent.settled(1)
  assert.deepEqual(heard(llm), ['one', 'later'])
})

test('when the turn ends first, a notice bound to it is void and another one starts a turn', async t => {
  const inside = insider()
  const llm = scriptedLlm(hanging(), 'noted')
  const agent = await startAgent(t, llm, { packs: [inside.pack] })
  const params = { session_id: agent.session_id }
  const main = await inside.main(agent)
  await agent.prompt('one')
  await llm.arrived(0)
  await main.inject(notice('only now', { admission: 'activeTurnOnly' }))
  await main.inject(notice('scoped', { turn_scoped: true }))
  await main.inject(notice('held', { admission: 'activeOrNextTurn' }))
  await main.inject(notice('important'))

  await agent.call(abortSession, { params })
  await turnsEnded(agent, 2)

  assert.deepEqual(heard(llm), ['one', 'important', 'held'])
  assert.deepEqual(
    payloads(agent, 'turn.started').map(({ promptId }) => promptId === undefined),
    [false, true]
  )
})

test('a notice that comes between a call and its result waits for the result', async t => {
  const inside = insider()
  const injected: unknown[] = []
  const tools = echoRunner(name => {
    injected.push(main?.inject(notice('meanwhile')))
    return `${name} ran`
  })
  let main: Agent | undefined
  const llm = scriptedLlm(toolCalls({ id: 'c', name: 'Echo' }), 'done')
  const agent = await startAgent(t, llm, { packs: [inside.pack, tools] })
  main = await inside.main(agent)
  await agent.prompt('one')
  await agent.settled(1)

  assert.deepEqual(await Promise.all(injected), ['joins'])
  assert.deepEqual(llm.requests[1]?.messages.map(message => message.role).slice(-3), ['assistant', 'tool', 'user'])
})

test('a turn that is being aborted takes no notice any more', async t => {
  const inside = insider()
  const running = latch()
  const over = latch()
  const slow = runner(async ({ calls }) => {
    running.open()
    await over.opened
    return calls.map(call => ({ call, result: { output: 'done' } }))
  })
  const llm = scriptedLlm(toolCalls({ id: 'c', name: 'Echo' }), 'noted')
  const agent = await startAgent(t, llm, { packs: [inside.pack, slow] })
  const main = await inside.main(agent)
  await agent.prompt('one')
  await running.opened
  const aborting = main.abort(true)

  assert.equal(await main.inject(notice('now', { admission: 'activeTurnOnly' })), 'refused')
  assert.equal(await main.inject(notice('then')), 'starts')

  over.open()
  await aborting
  await turnsEnded(agent, 2)
  assert.deepEqual(heard(llm), ['one', 'then'])
})

test('a notice whose id is known is not taken twice', async t => {
  const inside = insider()
  const more = latch()
  const llm = scriptedLlm(hanging(more.opened), 'noted')
  const agent = await startAgent(t, llm, { packs: [inside.pack] })
  const main = await inside.main(agent)
  await agent.prompt('one')
  await llm.arrived(0)
  const once = notice('over', { id: 'task:bash-1:completed' })

  assert.deepEqual([await main.inject(once), await main.inject(once)], ['joins', 'known'])
  more.open()
  await agent.settled(1)
  assert.equal(await main.inject(once), 'known')

  assert.deepEqual(heard(llm), ['one', 'over'])
})

test('prompts can be steered into a turn that a notice began, and that turn can be aborted', async t => {
  const inside = insider()
  const more = latch()
  const llm = scriptedLlm(hanging(more.opened), hanging())
  const agent = await startAgent(t, llm, { packs: [inside.pack] })
  const params = { session_id: agent.session_id }
  await (await inside.main(agent)).inject(notice('go on', { id: 'goal' }))
  await llm.arrived(0)
  const { prompt_id, status } = await agent.prompt('also this')
  assert.equal(status, 'queued')

  assert.equal((await agent.call(steerPrompts, { params, body: { prompt_ids: [prompt_id] } })).code, 0)

  more.open()
  await llm.arrived(1)
  assert.deepEqual(heard(llm), ['go on', 'also this'])
  assert.equal(payloads(agent, 'prompt.steered')[0]?.activePromptId, 'goal')
  assert.equal((await agent.call(abortPrompt, { params: { ...params, prompt_id } })).code, 0)
  assert.deepEqual(
    payloads(agent, 'turn.ended').map(({ reason }) => reason),
    ['cancelled']
  )
  assert.deepEqual(
    ['prompt.aborted', 'prompt.completed'].flatMap(type => payloads(agent, type)),
    []
  )
  assert.equal((await agent.call(readSession, { params })).data.busy, false)
})

test('what was accepted survives a crash and comes exactly once', async t => {
  const inside = insider()
  const llm = scriptedLlm(hanging())
  const first = await startAgent(t, llm, { packs: [inside.pack] })
  const main = await inside.main(first)
  await first.prompt('one')
  await llm.arrived(0)
  await main.inject(notice('held', { admission: 'activeOrNextTurn' }))
  await main.inject(notice('only now', { admission: 'activeTurnOnly' }))
  await main.inject(notice('a'))
  await main.inject(notice('b', { admission: 'newTurn' }))
  const home = await copyOfHome(first.home)

  const again = scriptedLlm('noted')
  const second = await startAgent(t, again, { home, session_id: first.session_id })
  await second.call(listPrompts, { params: { session_id: first.session_id } })
  await turnsEnded(second, 3) // the one that the crash left open is among them

  assert.deepEqual(heard(again), ['one', 'a', 'held', 'b'])
  const messages = (await wireOf(second)).filter(record => record.type === 'message').map(record => JSON.stringify(record.content))
  assert.equal(messages.filter(content => content?.includes('"a"')).length, 1)
})

test('a notice that the disk refuses is not accepted and starts nothing', async t => {
  const inside = insider()
  let broken = false
  const history = historyOnDisk(() => {
    if (broken) throw new Error('disk is full')
  })
  const llm = scriptedLlm('fine')
  const agent = await startAgent(t, llm, { packs: [inside.pack], history })
  const main = await inside.main(agent)
  broken = true

  await assert.rejects(main.inject(notice('lost')), /disk is full/)
  await assert.rejects(main.inject(notice('lost, too', { admission: 'activeOrNextTurn' })), /disk is full/)

  broken = false
  await agent.prompt('one')
  await agent.settled(1)
  assert.deepEqual(heard(llm), ['one'])
})

test('archiving a session takes back the notices that wait', async t => {
  const inside = insider()
  const llm = scriptedLlm(hanging(), 'hello')
  const agent = await startAgent(t, llm, { packs: [inside.pack] })
  const params = { session_id: agent.session_id }
  const main = await inside.main(agent)
  await agent.prompt('one')
  await llm.arrived(0)
  await main.inject(notice('a'))
  await main.inject(notice('b', { admission: 'newTurn' }))

  assert.equal((await agent.call(archiveSession, { params })).code, 0)

  assert.equal(payloads(agent, 'turn.started').length, 1)
  await agent.call(restoreSession, { params })
  await agent.prompt('two')
  await agent.settled(2)
  assert.deepEqual(heard(llm), ['one', 'two'])
})
