import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { Histories } from '../../../features/history/index.ts'
import { listMessages } from '../../../features/messages/index.ts'
import { abortPrompt, abortSession, listPrompts } from '../../../features/prompts/index.ts'
import { type AgentHost, archiveSession, readSession, type Session, Sessions } from '../../../features/sessions/index.ts'
import { definePack } from '../../../kernel/index.ts'
import { scriptedLlm } from '../../helpers/scripted-llm.ts'
import { copyOfHome, countedHistory, type Insider, insider, type Started, startAgent } from './start.ts'

const never = new Promise<never>(() => undefined)
const hanging = [{ type: 'text', text: 'so far' } as const, { type: 'wait', until: never } as const]

/** What is told of an agent from now on: type and the prompt or reason, in order. */
function heard({ kernel }: Started, agent_id: string): (readonly [string, string | undefined])[] {
  const told: (readonly [string, string | undefined])[] = []
  kernel.hub.on(undefined, event => {
    const { promptId, reason } = event.payload as { promptId?: string; reason?: string }
    if (event.subject === agent_id) told.push([event.type, promptId ?? reason])
  })
  return told
}

async function child(inside: Insider, { session_id }: Started, type: 'sub' | 'independent'): Promise<AgentHost> {
  return await (await inside.sessions.load(session_id)).createAgent({ type, parent_agent_id: 'main' })
}

test('a session that was closed opens its main agent alone; a child is opened by whoever asks for it', async t => {
  const inside = insider()
  const first = await startAgent(t, scriptedLlm('fine'), { packs: [inside.pack] })
  await first.prompt('one')
  const ids: string[] = []
  for (let n = 0; n < 30; n++) {
    const { id: agent_id } = await child(inside, first, 'sub')
    ids.push(agent_id)
    await first.prompt('work', { agent_id })
  }
  await first.settled(31)
  await first.stop()
  const opened: string[] = []
  const again = await startAgent(t, scriptedLlm('fine'), {
    home: first.home,
    session_id: first.session_id,
    history: countedHistory(opened)
  })
  const params = { session_id: first.session_id }

  assert.equal((await again.call(listMessages, { params })).data.items.length > 0, true)
  await again.prompt('more', { agent_id: ids[7] })
  await again.settled(1)
  assert.deepEqual(opened, ['main', ids[7]])

  // Whatever follows in the background has been looked at by then.
  assert.equal((await again.call(archiveSession, { params })).code, 0)
  assert.deepEqual(opened, ['main', ids[7]])
})

test('an abort of what runs opens no other agent; a prompt that is over opens the agent that has it, an unknown one none', async t => {
  const inside = insider()
  const first = await startAgent(t, scriptedLlm('fine'), { packs: [inside.pack] })
  await first.prompt('one')
  const ids: string[] = []
  const over: string[] = []
  for (let n = 0; n < 3; n++) {
    const { id: agent_id } = await child(inside, first, 'sub')
    ids.push(agent_id)
    over.push((await first.prompt('work', { agent_id })).prompt_id)
  }
  await first.settled(4)
  await first.stop()
  const opened: string[] = []
  const { home, session_id } = first
  const again = await startAgent(t, scriptedLlm(hanging), { home, session_id, history: countedHistory(opened) })
  const abort = async (prompt_id: string | undefined) =>
    await again.call(abortPrompt, { params: { session_id, prompt_id: prompt_id ?? assert.fail() } })

  const running = await again.prompt('more', { agent_id: ids[2] })
  assert.deepEqual((await abort(running.prompt_id)).data, { aborted: true })
  assert.equal((await abort(over[2])).code, 40903)
  assert.deepEqual(opened, ['main', ids[2]])

  assert.equal((await abort('unknown')).code, 40402)
  assert.deepEqual(opened, ['main', ids[2]])
  const late = await abort(over[1])
  assert.deepEqual([late.code, late.data], [40903, { aborted: false }])
  assert.deepEqual(opened, ['main', ids[2], ids[1]])
})

test('after a crash a subagent is closed and begins nothing, an independent agent goes on with what waits', async t => {
  const inside = insider()
  const llm = scriptedLlm(hanging)
  const first = await startAgent(t, llm, { packs: [inside.pack] })
  const [sub, independent] = [await child(inside, first, 'sub'), await child(inside, first, 'independent')]
  const prompts: Record<string, string[]> = {}
  for (const { id: agent_id } of [sub, independent]) {
    prompts[agent_id] = []
    for (const text of ['one', 'two']) prompts[agent_id].push((await first.prompt(text, { agent_id })).prompt_id)
  }
  await llm.arrived(1)
  await (await inside.agents.of(sub)).inject({ content: 'note', origin: { kind: 'task' }, admission: 'newTurn' })
  const home = await copyOfHome(first.home)

  const again = scriptedLlm('done')
  const second = await startAgent(t, again, { home, session_id: first.session_id })
  const [toldOfSub, toldOfIndependent] = [heard(second, sub.id), heard(second, independent.id)]
  await second.call(listPrompts, { params: { session_id: first.session_id } })
  await second.waitFor(event => event.type === 'prompt.completed' && event.subject === independent.id)

  assert.deepEqual(toldOfSub, [
    ['turn.step.interrupted', 'aborted'],
    ['turn.ended', 'cancelled'],
    ['prompt.aborted', prompts[sub.id]?.[0]],
    ['prompt.aborted', prompts[sub.id]?.[1]]
  ])
  const ofTurns = toldOfIndependent.filter(([type]) => type === 'turn.started' || type === 'turn.ended' || type.startsWith('prompt.'))
  assert.deepEqual(ofTurns, [
    ['turn.ended', 'cancelled'],
    ['prompt.aborted', prompts[independent.id]?.[0]],
    ['prompt.submitted', prompts[independent.id]?.[1]],
    ['turn.started', prompts[independent.id]?.[1]],
    ['turn.ended', 'completed'],
    ['prompt.completed', prompts[independent.id]?.[1]]
  ])
  assert.equal(again.requests.length, 1)
  assert.equal((await second.call(readSession, { params: { session_id: first.session_id } })).data.busy, false)
})

test('after a stop an independent agent goes on with what waits, and nobody has to ask for it', async t => {
  const inside = insider()
  const llm = scriptedLlm(hanging)
  const first = await startAgent(t, llm, { packs: [inside.pack] })
  await first.prompt('main')
  await llm.arrived(0)
  await first.call(abortSession, { params: { session_id: first.session_id } })
  const { id: agent_id } = await child(inside, first, 'independent')
  await first.prompt('one', { agent_id })
  const { prompt_id } = await first.prompt('two', { agent_id })
  await first.stop()

  const { home, session_id } = first
  const second = await startAgent(t, scriptedLlm('done'), { home, session_id })
  const { payload } = await second.waitFor(event => event.type === 'prompt.completed' && event.subject === agent_id)
  assert.equal((payload as { promptId: string }).promptId, prompt_id)
})

for (const early of [false, true]) {
  const who = early ? ', also when another pack writes to its journal first' : ''
  test(`what a child did and nobody was told before the process died is told without anybody asking for it${who}`, async t => {
    const inside = insider()
    const first = await startAgent(t, scriptedLlm('fine'), { packs: [inside.pack] })
    const { id: agent_id } = await child(inside, first, 'sub')
    await first.prompt('one', { agent_id })
    await first.settled(1)
    const home = await copyOfHome(first.home)
    const journal = join(home, 'server', 'events', `${first.session_id}.jsonl`)
    const lines = (await readFile(journal, 'utf8')).trimEnd().split('\n')
    const kept = lines.findIndex(line => line.includes('turn.step.started'))
    await writeFile(journal, `${lines.slice(0, kept).join('\n')}\n`)
    const writer = definePack({
      name: 'writer',
      needs: { sessions: Sessions, histories: Histories },
      setup(_ctx, { sessions, histories }) {
        const write = async (session: Session) => {
          const host = session.agent(agent_id)
          if (host) await (await histories.of(host)).append({ type: 'writer.noted' })
        }
        sessions.onLoad(write)
      }
    })

    const packs = early ? [writer] : []
    const second = await startAgent(t, scriptedLlm('never asked'), { home, session_id: first.session_id, packs })
    const told = heard(second, agent_id)
    await second.call(listPrompts, { params: { session_id: first.session_id } })
    await second.settled(1)

    assert.deepEqual(
      told.map(([type]) => type),
      ['turn.step.started', 'turn.step.completed', 'turn.ended', 'prompt.completed']
    )
  })
}

test('a turn that a notice began is closed after a crash, and the session is told free', async t => {
  const inside = insider()
  const llm = scriptedLlm(hanging)
  const first = await startAgent(t, llm, { packs: [inside.pack] })
  await (await inside.main(first)).inject({ content: 'go on', origin: { kind: 'task' } })
  await llm.arrived(0)
  const home = await copyOfHome(first.home)

  const second = await startAgent(t, scriptedLlm('never asked'), { home, session_id: first.session_id })
  await second.call(listPrompts, { params: { session_id: first.session_id } })

  assert.deepEqual(
    second.events.filter(event => ['turn.ended', 'event.session.work_changed'].includes(event.type)).map(event => event.payload),
    [
      { turnId: 0, reason: 'cancelled', interruptReason: 'aborted' },
      { busy: false, main_turn_active: false, pending_interaction: 'none', last_turn_reason: 'cancelled' }
    ]
  )
})
