import assert from 'node:assert/strict'
import { cp, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { TurnHooks } from '../../../features/agent/index.ts'
import { abortSession, listPrompts } from '../../../features/prompts/index.ts'
import { readStatus } from '../../../features/session-views/index.ts'
import { listSessions, readSession } from '../../../features/sessions/index.ts'
import { definePack } from '../../../kernel/index.ts'
import { latch } from '../../helpers/latch.ts'
import { scriptedLlm } from '../../helpers/scripted-llm.ts'
import { copyOfHome, historyOnDisk, type Started, startAgent } from './start.ts'

/** Whether the session is at work: by its object, its status and the last event about it. */
async function atWork({ call, events, session_id }: Started): Promise<readonly unknown[]> {
  const params = { session_id }
  const { busy, main_turn_active } = (await call(readSession, { params })).data
  const told = events.findLast(event => event.type === 'event.session.work_changed')?.payload as { readonly busy: boolean } | undefined
  return [busy, main_turn_active, (await call(readStatus, { params })).data.busy, told?.busy]
}

test('an accepted prompt is visible as work before its answer arrives, however long its turn takes to begin', async t => {
  const disk = latch()
  const history = historyOnDisk(async records => {
    // A turn that begins with a write of its own would wait here.
    if (records[0]?.type === 'turn.started' || records[0]?.type === 'agent.settings') await disk.opened
  })
  const agent = await startAgent(t, scriptedLlm('answer'), { history })

  assert.equal((await agent.prompt('one')).status, 'running')

  assert.deepEqual(await atWork(agent), [true, true, true, true])
  disk.open()
  await agent.settled(1)
  assert.deepEqual(await atWork(agent), [false, false, false, false])
})

test('between two queued prompts the session is at work without a gap', async t => {
  const second = latch()
  const disk = latch()
  const history = historyOnDisk(async records => {
    if (!records.some(record => record.type === 'turn.started' && record.turn_id === 1)) return
    second.open()
    await disk.opened
  })
  const agent = await startAgent(t, scriptedLlm('a', 'b'), { history })
  await Promise.all([agent.prompt('one'), agent.prompt('two')])

  await second.opened

  assert.deepEqual(await atWork(agent), [true, true, true, true])
  const { active } = (await agent.call(listPrompts, { params: { session_id: agent.session_id } })).data
  assert.deepEqual(active?.content[0], { type: 'text', text: 'two' })
  disk.open()
  await agent.settled(2)
  const work = agent.events.filter(event => event.type === 'event.session.work_changed')
  assert.deepEqual(
    work.map(event => event.payload),
    [
      { busy: true, main_turn_active: true, pending_interaction: 'none' },
      { busy: true, main_turn_active: true, pending_interaction: 'none', last_turn_reason: 'completed' },
      { busy: true, main_turn_active: true, pending_interaction: 'none' },
      { busy: false, main_turn_active: false, pending_interaction: 'none', last_turn_reason: 'completed' }
    ]
  )
})

test('behind a prompt that is aborted while packs are asked about it, the next one begins while the session is still at work', async t => {
  const asked = latch()
  const guard = definePack({
    name: 'guard',
    needs: { hooks: TurnHooks },
    setup(ctx, { hooks }) {
      ctx.tap(hooks.beforePrompt, ({ content, signal }) => {
        if (content.some(part => part.type === 'text' && part.text === 'two')) return
        asked.open()
        return new Promise(resolve => signal.addEventListener('abort', () => resolve(undefined)))
      })
    }
  })
  const agent = await startAgent(t, scriptedLlm('answer'), { packs: [guard] })
  const first = agent.prompt('one')
  await asked.opened
  assert.equal((await agent.prompt('two')).status, 'queued')

  assert.equal((await agent.call(abortSession, { params: { session_id: agent.session_id } })).code, 0)
  await first
  await agent.settled(2)

  const work = agent.events.filter(event => event.type === 'event.session.work_changed')
  const told = work.map(({ payload }) => (payload as { readonly busy: boolean }).busy)
  assert.deepEqual([told.indexOf(false), told.at(-1)], [told.length - 1, false])
})

test('the answer to a prompt costs one write, which also begins its turn; a plain turn costs three', async t => {
  const writes: string[][] = []
  const history = historyOnDisk(records => {
    // How far events were told goes with whatever is written.
    writes.push(records.map(record => record.type).filter(type => type !== 'told'))
  })
  const agent = await startAgent(t, scriptedLlm('answer'), { history })
  await agent.prompt('one')
  await agent.settled(1)
  writes.length = 0

  await agent.prompt('two')

  assert.deepEqual(writes[0], ['prompt.accepted', 'turn.started', 'message'])
  await agent.settled(2)
  assert.deepEqual(writes.slice(1), [['step.begin'], ['step.message', 'step.end', 'turn.ended', 'prompt.settled']])
})

test('what a kill swallowed of the state of a session follows from its journal', async t => {
  let ms = Date.now()
  const now = () => new Date(ms++) // every record has an instant of its own
  const agent = await startAgent(t, scriptedLlm('answer'), { now })
  const { session_id } = agent
  const params = { session_id }
  const home = await copyOfHome(agent.home) // the state as it was before the prompt
  await agent.prompt('name me')
  await agent.settled(1)
  const before = (await agent.call(readSession, { params })).data
  const state = (await readdir(home, { recursive: true })).find(name => name.endsWith('state.json')) ?? ''
  const killed = await copyOfHome(agent.home)
  await agent.stop() // from here on it is on record that clients were told
  for (const later of [killed, await copyOfHome(agent.home)]) {
    await cp(join(home, state), join(later, state))

    const again = await startAgent(t, scriptedLlm('x'), { home: later, session_id })
    await again.call(listPrompts, { params })

    const { title, last_prompt, last_turn_reason, updated_at } = (await again.call(readSession, { params })).data
    assert.deepEqual([title, last_prompt, last_turn_reason], [before.title, before.last_prompt, 'completed'])
    assert.equal(updated_at, before.updated_at)
    const { items } = (await again.call(listSessions, { query: { exclude_empty: true } })).data
    assert.deepEqual(
      items.map(item => item.id),
      [session_id]
    )
    assert.deepEqual(
      again.events.map(event => event.type).filter(type => type !== 'agent.status.updated'),
      []
    )
  }
})

test('a kill while a failed step waits for its next attempt interrupts the step', async t => {
  const error = { code: 'provider.api_error', name: 'ApiError', message: 'later', retryable: true, retry_after_ms: 60_000 } as const
  const agent = await startAgent(t, scriptedLlm([{ type: 'error', error }]))
  const { session_id } = agent
  await agent.prompt('one')
  await agent.waitFor(event => event.type === 'turn.step.retrying')
  const again = await startAgent(t, scriptedLlm('x'), { home: await copyOfHome(agent.home), session_id })
  await again.call(listPrompts, { params: { session_id } })
  const types = again.events.map(event => event.type).filter(type => type.startsWith('turn.'))
  assert.deepEqual(types, ['turn.step.interrupted', 'turn.ended'])
})

test('after a kill in a turn with a prompt behind it the session is at work without a gap', async t => {
  const never = new Promise<never>(() => undefined)
  const hanging = [
    { type: 'text', text: 'so far' },
    { type: 'wait', until: never }
  ] as const
  const agent = await startAgent(t, scriptedLlm([...hanging]))
  const { session_id } = agent
  await agent.prompt('one')
  await agent.waitFor(event => event.type === 'assistant.delta')
  await agent.prompt('two')
  const home = await copyOfHome(agent.home)

  const again = await startAgent(t, scriptedLlm('answer'), { home, session_id })
  await again.call(listPrompts, { params: { session_id } })
  await again.settled(2)

  const work = again.events.filter(event => event.type === 'event.session.work_changed').map(event => event.payload)
  const base = { pending_interaction: 'none' }
  assert.deepEqual(work, [
    { ...base, busy: true, main_turn_active: true, last_turn_reason: 'cancelled' },
    { ...base, busy: true, main_turn_active: true },
    { ...base, busy: false, main_turn_active: false, last_turn_reason: 'completed' }
  ])
})
