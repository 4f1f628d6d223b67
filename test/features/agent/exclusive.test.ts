import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Agent } from '../../../features/agent/index.ts'
import { Histories } from '../../../features/history/index.ts'
import { listMessages } from '../../../features/messages/index.ts'
import { listPrompts } from '../../../features/prompts/index.ts'
import { archiveSession, SessionBusy } from '../../../features/sessions/index.ts'
import { AppError, definePack, errorSpec } from '../../../kernel/index.ts'
import { latch } from '../../helpers/latch.ts'
import { type Reply, scriptedLlm } from '../../helpers/scripted-llm.ts'
import { insider, startAgent, waitsAtTurnEnd } from './start.ts'

const never = new Promise<never>(() => undefined)
const hanging = [{ type: 'text', text: 'so far' } as const, { type: 'wait', until: never } as const]
const refusedWith = (code: number) => (error: unknown) => AppError.is(error) && error.spec.code === code

async function started(t: Parameters<typeof startAgent>[0], ...replies: readonly Reply[]) {
  const inside = insider()
  const llm = scriptedLlm(...replies)
  let histories: Histories | undefined
  const probe = definePack({
    name: 'probe',
    needs: { histories: Histories },
    setup(_ctx, services) {
      histories = services.histories
    }
  })
  const agent = await startAgent(t, llm, { packs: [inside.pack, probe] })
  const main: Agent = await inside.main(agent)
  const history = await histories!.of(main.host)
  return { agent, llm, main, history, params: { session_id: agent.session_id } }
}

test('exclusive work on an idle agent runs before prompts and notices that come meanwhile', async t => {
  const { agent, llm, main, history, params } = await started(t, 'first', 'second', 'third')
  await agent.prompt('one')
  await agent.settled(1)
  const done = latch()
  const begun = latch()
  const work = main.exclusive(async () => {
    begun.open()
    await done.opened
    await history.append({ type: 'context.undone', from: 0, context_tokens: 0 })
    return 'undone'
  })
  await begun.opened

  const { status } = await agent.prompt('two')
  assert.equal(await main.inject({ content: 'note', origin: { kind: 'task' }, admission: 'newTurn' }), 'starts')

  assert.equal(status, 'queued')
  assert.equal((await agent.call(listPrompts, { params })).data.queued.length, 1)
  assert.equal(llm.requests.length, 1)
  done.open()
  assert.equal(await work, 'undone')
  await llm.arrived(2)
  await agent.settled(2)
  const { items } = (await agent.call(listMessages, { params })).data
  assert.ok(!JSON.stringify(items).includes('"one"'))
  assert.ok(JSON.stringify(items).includes('"two"'))
})

test('exclusive work is refused while a turn runs, while something waits, and while other exclusive work goes on', async t => {
  const { agent, llm, main } = await started(t, hanging)
  const Own = errorSpec('compaction_refused', 40910, 'nothing to compact')
  const nothing = async () => assert.fail('it must not run')
  const done = latch()
  const first = main.exclusive(() => done.opened)
  await assert.rejects(main.exclusive(nothing), refusedWith(SessionBusy.code))
  done.open()
  await first

  await agent.prompt('one')
  await llm.arrived(0)

  await assert.rejects(main.exclusive(nothing), refusedWith(SessionBusy.code))
  await assert.rejects(main.exclusive(nothing, { refusal: Own }), refusedWith(40910))
})

test('exclusive work that comes when clients know the end of a turn waits for the taps of that end, unless they take long', async t => {
  const inside = insider()
  const taps = latch()
  const end = waitsAtTurnEnd(taps.opened)
  const agent = await startAgent(t, scriptedLlm('answer'), { packs: [inside.pack, end] })
  const client = await agent.connect()
  await client.request('subscribe', { session_ids: [agent.session_id] })
  await agent.prompt('one')
  await client.next('turn.ended')
  const main = await inside.main(agent)
  await assert.rejects(
    main.exclusive(async () => assert.fail('it must not run')),
    refusedWith(SessionBusy.code)
  )
  const work = main.exclusive(async () => 'done')
  taps.open()
  assert.equal(await work, 'done')
})

test('exclusive work that comes together with a prompt finds the agent busy or lets it wait', async t => {
  const { agent, main } = await started(t, 'answer')
  let running = 0
  const work = main.exclusive(async () => {
    running++
  })
  const prompt = agent.prompt('one')
  await Promise.allSettled([work, prompt])
  await agent.settled(1)
  assert.equal(running, 1)

  const [, late] = await Promise.allSettled([
    main.submit({ content: [{ type: 'text', text: 'two' }] }),
    main.exclusive(async () => running++)
  ])
  assert.equal(late?.status, 'rejected')
  await agent.settled(2)
})

test('brief work is waited for, in the order of the calls', async t => {
  const { main } = await started(t, 'answer')
  const done = latch()
  const begun = latch()
  const order: string[] = []
  const first = main.exclusive(
    async () => {
      begun.open()
      await done.opened
      order.push('first')
    },
    { brief: true }
  )
  await begun.opened
  const others = ['second', 'third'].map(name => main.exclusive(async () => void order.push(name), { brief: true }))
  done.open()
  await Promise.all([first, ...others])

  assert.deepEqual(order, ['first', 'second', 'third'])
})

test('work that fails frees the agent', async t => {
  const { agent, main } = await started(t, 'answer')

  await assert.rejects(
    main.exclusive(async () => {
      throw new Error('no')
    }),
    /no/
  )

  assert.equal((await agent.prompt('one')).status, 'running')
  await agent.settled(1)
})

test('archiving and shutting down end exclusive work by its signal and wait for it', async t => {
  const { agent, llm, main, params } = await started(t, 'answer')
  const ended: string[] = []
  const begin = (name: string) => {
    const begun = latch()
    const work = main.exclusive(async signal => {
      begun.open()
      await new Promise<void>(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))
      ended.push(name)
    })
    return { begun: begun.opened, work }
  }
  const one = begin('archive')
  await one.begun
  await agent.prompt('never runs')
  assert.equal((await agent.call(archiveSession, { params })).code, 0)
  assert.deepEqual([ended, llm.requests.length], [['archive'], 0])
  assert.ok(!agent.events.some(({ type }) => type === 'turn.started'))
  await one.work

  const two = begin('shutdown')
  await two.begun
  await agent.kernel.unload('agent')
  assert.deepEqual(ended, ['archive', 'shutdown'])
  await two.work
  await assert.rejects(
    main.exclusive(async () => undefined),
    refusedWith(SessionBusy.code)
  )
})
