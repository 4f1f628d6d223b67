import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { Agents, TurnHooks } from '../../../features/agent/index.ts'
import { listDirectory } from '../../../features/agent/prompt/environment.ts'
import { PromptQueue } from '../../../features/agent/queue.ts'
import { repairOf } from '../../../features/agent/turn-records.ts'
import { Interactions } from '../../../features/interactions/index.ts'
import { abortSession, listPrompts, steerPrompts, submitPrompt } from '../../../features/prompts/index.ts'
import { readSession, updateProfile } from '../../../features/sessions/index.ts'
import { definePack } from '../../../kernel/index.ts'
import { stub } from '../../../kernel/testing.ts'
import { latch } from '../../helpers/latch.ts'
import { scriptedLlm } from '../../helpers/scripted-llm.ts'
import { freshDir } from '../../helpers/temp.ts'
import { copyOfHome, insider, startAgent } from './start.ts'

const never = new Promise<never>(() => undefined)

test('reloading the agent pack in the middle of a turn ends the turn; the session goes on with the new one', async t => {
  const llm = scriptedLlm(
    [
      { type: 'text', text: 'half' },
      { type: 'wait', until: never }
    ],
    'whole'
  )
  const agent = await startAgent(t, llm)
  const params = { session_id: agent.session_id }
  await agent.prompt('one')
  await agent.waitFor(event => event.type === 'assistant.delta')

  await agent.kernel.unload('agent')

  assert.equal((await agent.call(readSession, { params })).data.last_turn_reason, 'cancelled')
  assert.equal((await agent.call(listPrompts, { params })).code, 40400)
  await agent.kernel.load('agent')
  await agent.prompt('two')
  await agent.settled(2)
  assert.equal((await agent.call(readSession, { params })).data.last_turn_reason, 'completed')
})

test('prompts that were steered but not yet taken return to the queue when the turn ends first', async t => {
  const blocked = latch()
  const llm = scriptedLlm(
    [
      { type: 'text', text: 'a' },
      { type: 'wait', until: blocked.opened }
    ],
    'b'
  )
  const agent = await startAgent(t, llm)
  const params = { session_id: agent.session_id }
  await agent.prompt('one')
  await agent.waitFor(event => event.type === 'assistant.delta')
  const two = await agent.prompt('two')
  assert.equal((await agent.call(steerPrompts, { params, body: { prompt_ids: [two.prompt_id, two.prompt_id] } })).code, 40402)
  assert.equal((await agent.call(steerPrompts, { params, body: { prompt_ids: [two.prompt_id] } })).code, 0)

  await agent.call(abortSession, { params })
  await agent.settled(2)

  const started = agent.events.filter(event => event.type === 'turn.started').map(event => (event.payload as { promptId: string }).promptId)
  assert.equal(started[1], two.prompt_id)
})

test('the second of two submissions at one instant is queued, and both run', async t => {
  const agent = await startAgent(t, scriptedLlm('x'))
  const params = { session_id: agent.session_id }
  const body = (text: string) => ({ content: [{ type: 'text' as const, text }] })
  const replies = await Promise.all(['a', 'b', 'c'].map(text => agent.call(submitPrompt, { params, body: body(text) })))
  assert.deepEqual(
    replies.map(reply => reply.code),
    [0, 0, 0]
  )
  await agent.settled(3)
})

test('another pack reaches the engine through its service', async t => {
  let agents: Agents | undefined
  const pack = definePack({
    name: 'other',
    needs: { agents: Agents },
    setup(_ctx, services) {
      agents = services.agents
    }
  })
  const agent = await startAgent(t, scriptedLlm('x'), { packs: [pack] })
  const main = await agents?.main(agent.session_id)
  const prompt = await main?.submit({ content: [{ type: 'text', text: 'from a pack' }], origin: { kind: 'cron_job', jobId: 'j' } })
  await agent.settled(1)
  assert.ok(prompt)
  assert.equal((await agent.call(readSession, { params: { session_id: agent.session_id } })).data.last_prompt, undefined)
})

test('a listing shows two levels, directories first and hidden ones closed', async () => {
  const root = await freshDir()
  await mkdir(join(root, '.git', 'objects'), { recursive: true })
  await mkdir(join(root, 'sub'))
  await writeFile(join(root, 'sub', 'b.md'), '')
  await writeFile(join(root, 'Z.md'), '')
  await writeFile(join(root, 'a.md'), '')
  assert.equal(await listDirectory(root), '.git/\nsub/\n  b.md\na.md\nZ.md')
})

test('taken prompts return to their old places', () => {
  const queue = new PromptQueue()
  for (const id of ['a', 'b', 'c']) queue.push({ prompt_id: id, content: [], created_at: '', origin: { kind: 'user' } })
  const taken = queue.take(['c', 'a'])
  assert.deepEqual(
    taken.map(item => item.prompt_id),
    ['a', 'c']
  )
  queue.restore(taken)
  assert.deepEqual(
    queue.items().map(item => item.prompt_id),
    ['a', 'b', 'c']
  )
})

test('a history whose last turn ended needs no repair', () => {
  const ended = { turn_id: 0, origin: { kind: 'user' }, started_at: 'x', ended_at: 'x', steps: 1 }
  const history = { lastTurn: () => ended, prompts: () => [], openStep: () => undefined, openCalls: () => [] }
  assert.deepEqual(repairOf(history), [])
})

test('prompts that a crash left running end with their turn, the one that began it first', () => {
  const prompt = (prompt_id: string, status: 'running' | 'queued') => ({ prompt_id, content: [], created_at: 'x', status })
  const records = repairOf({
    lastTurn: () => ({ turn_id: 3, origin: { kind: 'user' }, prompt_id: 'b', started_at: 'x', steps: 2 }),
    prompts: () => [prompt('a', 'running'), prompt('b', 'running'), prompt('c', 'queued')],
    openStep: () => undefined,
    openCalls: () => []
  })
  const settled = records.find(record => record.type === 'prompt.settled')
  assert.deepEqual(settled, { type: 'prompt.settled', prompt_ids: ['b', 'a'], status: 'aborted', turn_id: 3 })
})

test('an agent that is closed takes nothing more, and says so', async t => {
  const inside = insider()
  const agent = await startAgent(t, scriptedLlm('x'), { packs: [inside.pack] })
  const main = await inside.main(agent)
  await agent.kernel.unload('agent')
  const busy = { code: 40901 }
  await assert.rejects(main.submit({ content: [{ type: 'text', text: 'more' }] }), busy)
  await assert.rejects(main.inject({ content: 'more', origin: { kind: 'task' } }), busy)
})

test('calls that a crash left open are shown before the first of their results: clients close a message with that', () => {
  const call = (id: string) => ({ id, name: 'Bash', arguments: '{"command":"ls"}' })
  const records = repairOf({
    lastTurn: () => ({ turn_id: 3, origin: { kind: 'user' }, started_at: 'x', steps: 2 }),
    prompts: () => [],
    openStep: () => ({ turn_id: 3, step: 2, step_id: 's' }),
    openCalls: () => [
      { call: call('a'), begun: true },
      { call: call('b'), begun: false }
    ]
  })
  assert.deepEqual(
    records.flatMap(record => ('tool_call_id' in record ? [`${record.type} ${record.tool_call_id}`] : [])),
    ['tool.begin b', 'tool.result a', 'tool.result b']
  )
})

test('changes of the settings that come at once all count', async t => {
  const llm = scriptedLlm('done')
  const scene = await startAgent(t, llm)
  const params = { session_id: scene.session_id }
  const change = (agent_config: Record<string, unknown>) => scene.call(updateProfile, { params, body: { agent_config } })
  await Promise.all([change({ model: 'big' }), change({ thinking: 'high' })])
  await scene.prompt('go')
  await scene.settled(1)
  assert.deepEqual([llm.requests[0]?.model.alias, llm.requests[0]?.effort], ['big', 'high'])
})

test('a change that comes while the first turn of an agent begins is there after a restart, too', async t => {
  const gate = latch()
  const asked = latch()
  const slow = definePack({
    name: 'slow',
    needs: { turns: TurnHooks },
    setup(ctx, { turns }) {
      ctx.tap(turns.stepBegin, async () => {
        asked.open()
        await gate.opened
        return undefined
      })
    }
  })
  const scene = await startAgent(t, scriptedLlm('done'), { packs: [slow] })
  const { session_id } = scene
  await scene.prompt('go')
  await asked.opened
  await scene.call(updateProfile, { params: { session_id }, body: { agent_config: { thinking: 'high' } } })
  gate.open()
  await scene.settled(1)

  const llm = scriptedLlm('done')
  const again = await startAgent(t, llm, { home: await copyOfHome(scene.home), session_id })
  await again.prompt('again')
  await again.settled(1)
  assert.equal(llm.requests[0]?.effort, 'high')
})

test('an agent that cannot be opened fails for those who asked for it, and for nobody who only looked', async t => {
  const opening = latch()
  const failing = latch()
  const recover = async () => {
    opening.open()
    await failing.opened
    throw new Error('its journal cannot be read')
  }
  const agent = await startAgent(t, scriptedLlm('x'), { packs: [stub(Interactions, { recover })] })
  const params = { session_id: agent.session_id }
  const prompt = agent.call(submitPrompt, { params, body: { content: [{ type: 'text', text: 'go' }] } })
  await opening.opened
  const client = await agent.connect()
  await client.request('subscribe', { session_ids: [agent.session_id], cursors: { [agent.session_id]: { seq: 0 } } })

  failing.open()

  assert.notEqual((await prompt).code, 0)
  assert.equal((await agent.call(readSession, { params })).code, 0)
})
