import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openSide } from '../../../features/fork/index.ts'
import fork from '../../../features/fork/pack.ts'
import { Llm, ModelUnresolved, NoProvider } from '../../../features/llm/index.ts'
import { Permissions } from '../../../features/permissions/index.ts'
import { abortPrompt, abortSession, listPrompts, steerPrompt, steerPrompts, submitPrompt } from '../../../features/prompts/index.ts'
import { readStatus } from '../../../features/session-views/index.ts'
import { type AgentHost, readSession, type Session, Sessions, updateProfile } from '../../../features/sessions/index.ts'
import { type Tool, ToolPolicies } from '../../../features/tools/index.ts'
import { AppError, definePack } from '../../../kernel/index.ts'
import { stub } from '../../../kernel/testing.ts'
import { latch } from '../../helpers/latch.ts'
import { scriptedLlm } from '../../helpers/scripted-llm.ts'
import { startAgent } from '../agent/start.ts'

const text = (value: string) => [{ type: 'text' as const, text: value }]

test('a session without a prompt has no prompts, and looking creates nothing', async t => {
  const agent = await startAgent(t, scriptedLlm('x'))
  const params = { session_id: agent.session_id }
  assert.deepEqual((await agent.call(listPrompts, { params })).data, { active: null, queued: [] })
  assert.deepEqual((await agent.call(abortSession, { params })).data, { aborted: true })
  assert.equal((await agent.call(steerPrompts, { params, body: { prompt_ids: ['a'] } })).code, 40402)
  assert.equal((await agent.call(abortPrompt, { params: { ...params, prompt_id: 'a' } })).code, 40402)
  assert.ok(!agent.events.some(event => event.type === 'agent.created'))
})

test('what is refused before anything happens', async t => {
  const agent = await startAgent(t, scriptedLlm('x'))
  const params = { session_id: agent.session_id }
  const code = async (body: Record<string, unknown>, to = params) =>
    (await agent.call(submitPrompt, { params: to, body: { content: text('x'), ...body } as never })).code

  assert.equal(await code({ content: [] }), 40001)
  assert.equal(await code({ content: [{ type: 'sound' }] }), 40001)
  assert.equal(await code({ prompt_id: '' }), 40001)
  assert.equal(await code({ prompt_id: 'p', skills: [{ name: 's' }] }), 40001)
  assert.equal(await code({ content: [{ type: 'image', source: { kind: 'file', file_id: 'f_x' } }] }), 40407)
  assert.equal(await code({ content: [{ type: 'image', source: { kind: 'session_media', file_id: 'f_x' } }] }), 40407)
  assert.equal(await code({}, { session_id: 'session_none' }), 40401)
  assert.equal(await code({ skills: [{ name: 's' }] }), 40415)
  assert.equal(await code({ agent_id: 'agent-9' }), 40401)
  assert.equal(await code({ profile: 'nobody' }), 40001)
  assert.equal(await code({ permission_mode: 'never' }), 40001)
  assert.ok(!agent.events.some(event => event.type === 'prompt.submitted'))
})

test('a missing provider and an unknown model are told by the prompt call', async t => {
  const { llm } = scriptedLlm('x')
  let ready = false
  const resolve: Llm['resolve'] = alias => {
    if (!ready) throw new AppError(NoProvider)
    if (alias === 'gone') throw new AppError(ModelUnresolved, { details: { model_id: alias } })
    return llm.resolve(alias)
  }
  const pack = stub(Llm, { ...llm, resolve })
  const agent = await startAgent(t, { ...scriptedLlm('x'), pack })
  const params = { session_id: agent.session_id }
  assert.equal((await agent.call(submitPrompt, { params, body: { content: text('x') } })).code, 40110)
  ready = true
  const gone = await agent.call(submitPrompt, { params, body: { content: text('x'), model: 'gone' } })
  assert.deepEqual([gone.code, gone.details], [40113, { model_id: 'gone' }])
  const profile = await agent.call(updateProfile, { params, body: { agent_config: { model: 'gone' } } })
  assert.equal(profile.code, 40001)
  assert.equal((await agent.call(submitPrompt, { params, body: { content: text('x') } })).code, 0)
  await agent.settled(1)
})

test('a model that is found when it is looked for once more takes the prompt', async t => {
  const scripted = scriptedLlm('x')
  let found = false
  const resolve: Llm['resolve'] = alias => {
    if (alias === 'new' && !found) throw new AppError(ModelUnresolved)
    return scripted.llm.resolve(alias)
  }
  const lookUp: Llm['lookUp'] = async alias => {
    found = true
    return resolve(alias)
  }
  const agent = await startAgent(t, { ...scripted, pack: stub(Llm, { ...scripted.llm, resolve, lookUp }) })
  const params = { session_id: agent.session_id }

  assert.equal((await agent.call(submitPrompt, { params, body: { content: text('x'), model: 'new' } })).code, 0)
  await agent.settled(1)
  assert.equal(scripted.requests[0]?.model.alias, 'new')
})

test('overrides apply before the prompt runs and stay', async t => {
  const modes: string[] = []
  const permissions = stub(Permissions, {
    setMode: async (_agent, mode) => void modes.push(mode),
    mode: async () => 'yolo'
  })
  const llm = scriptedLlm('x')
  const agent = await startAgent(t, llm, { packs: [permissions] })
  const params = { session_id: agent.session_id }
  await agent.prompt('one', { model: 'big', thinking: 'HIGH', permission_mode: 'yolo', profile: 'explore', disabled_tools: ['Bash'] })
  await agent.settled(1)

  assert.deepEqual([llm.requests[0]?.model.alias, llm.requests[0]?.effort, modes], ['big', 'high', ['yolo']])
  assert.match(llm.requests[0]?.system ?? '', /You only look/)
  const status = (await agent.call(readStatus, { params })).data
  assert.deepEqual([status.model, status.thinking_level, status.permission, status.busy], ['big', 'high', 'yolo', false])
  assert.equal((await agent.call(submitPrompt, { params, body: { content: text('x'), profile: 'plan' } })).code, 40001)
  // Empty ones leave what is set.
  const empty = { content: text('x'), profile: 'explore', model: '', thinking: '' }
  assert.equal((await agent.call(submitPrompt, { params, body: empty })).code, 0)
  await agent.settled(2)
  assert.deepEqual([llm.requests[1]?.model.alias, llm.requests[1]?.effort], ['big', 'high'])
  await agent.stop()

  const later = scriptedLlm('y')
  const again = await startAgent(t, later, { home: agent.home, session_id: agent.session_id })
  await again.prompt('three')
  await again.settled(1)
  assert.deepEqual([later.requests[0]?.model.alias, later.requests[0]?.effort], ['big', 'high'])
  assert.equal(later.requests[0]?.system, llm.requests[1]?.system)
})

test('tools that the session or the profile switched off are refused with a reason, also for agents that come later', async t => {
  let refuses: ((tool: string, agent?: AgentHost) => string | undefined) | undefined
  let session: Session | undefined
  const spy = definePack({
    name: 'spy',
    needs: { sessions: Sessions },
    setup(ctx, { sessions }) {
      const policies = ctx.collect(ToolPolicies)
      refuses = (name, agent) => {
        session = sessions.allLoaded()[0]
        const host = agent ?? session?.agent('main')
        const tool = { name } as Tool // the policy looks at the name only
        return (
          host &&
          policies
            .items()
            .find(policy => policy.name === 'agent')
            ?.refuses(host, tool)
        )
      }
    }
  })
  const agent = await startAgent(t, scriptedLlm('x'), { packs: [spy] })
  await agent.prompt('one', { disabled_tools: ['Grep'], profile: 'explore' })
  await agent.settled(1)
  assert.match(refuses?.('Grep') ?? '', /disabled/)
  assert.match(refuses?.('Write') ?? '', /profile explore/)
  assert.equal(refuses?.('Read'), undefined)

  const child = await session?.createAgent({ type: 'sub', parent_agent_id: 'main' })
  assert.deepEqual([refuses?.('Grep', child) !== undefined, refuses?.('Write', child)], [true, undefined])
  await agent.prompt('two', { disabled_tools: ['Read'] })
  assert.deepEqual([refuses?.('Grep', child), refuses?.('Read', child) !== undefined], [undefined, true])
  await agent.settled(2)
})

test('steering needs a running turn and queued ids', async t => {
  const agent = await startAgent(t, scriptedLlm('x'))
  const params = { session_id: agent.session_id }
  const done = await agent.prompt('one')
  await agent.settled(1)
  assert.equal((await agent.call(steerPrompt, { params: { ...params, prompt_id: done.prompt_id } })).code, 40402)
  assert.equal((await agent.call(abortPrompt, { params: { ...params, prompt_id: done.prompt_id } })).code, 40903)
  assert.equal((await agent.call(readSession, { params })).data.last_prompt, 'one')
})

test('a prompt that waits for another agent is steered into the turn of that one', async t => {
  const more = latch()
  const held = [
    { type: 'wait', until: more.opened } as const,
    { type: 'text', text: 'a' } as const,
    { type: 'finish', reason: 'completed' } as const
  ]
  const llm = scriptedLlm('main', held, held, 'b')
  let sessions: Sessions | undefined
  const spy = definePack({
    name: 'spy',
    needs: { sessions: Sessions },
    setup(_ctx, services) {
      sessions = services.sessions
    }
  })
  const agent = await startAgent(t, llm, { packs: [spy] })
  const params = { session_id: agent.session_id }
  await agent.prompt('one')
  await agent.settled(1)
  const { id: agent_id } = await (await sessions!.load(agent.session_id)).createAgent({ type: 'sub', parent_agent_id: 'main' })
  const ask = async (value: string, to: object) =>
    (await agent.call(submitPrompt, { params, body: { content: text(value), ...to } })).data.prompt_id
  await ask('two', { agent_id })
  await ask('three', {})
  await llm.arrived(2)
  const [side, main] = [await ask('more for it', { agent_id }), await ask('more for the main one', {})]

  assert.equal((await agent.call(steerPrompts, { params, body: { prompt_ids: [side, main] } })).code, 40402)
  const { code, data } = await agent.call(steerPrompt, { params: { ...params, prompt_id: side } })

  assert.deepEqual([code, data], [0, { steered: true, prompt_ids: [side] }])
  const steered = agent.events.find(({ type }) => type === 'prompt.steered')
  assert.deepEqual((steered?.payload as { promptIds?: string[] } | undefined)?.promptIds, [side])
  more.open()
})

test('a prompt id is good for one agent of a session: whoever aborts by it names none', async t => {
  const llm = scriptedLlm('main', [{ type: 'wait', until: latch().opened }])
  const agent = await startAgent(t, llm, { packs: [fork] })
  const params = { session_id: agent.session_id }
  await agent.prompt('one', { prompt_id: 'first' })
  await agent.settled(1)
  const { agent_id } = (await agent.call(openSide, { params })).data
  const codes = (prompt_id: string) =>
    Promise.all(
      [agent_id, 'main'].map(async to =>
        agent.call(submitPrompt, { params, body: { content: text('two'), prompt_id, agent_id: to } }).then(({ code }) => code)
      )
    )

  assert.deepEqual(await codes('first'), [40903, 40903])
  assert.deepEqual((await codes('second')).sort(), [0, 40927], 'of two that come at once the first counts')
  await llm.arrived(1)
  assert.deepEqual((await agent.call(abortPrompt, { params: { ...params, prompt_id: 'second' } })).data, { aborted: true })
  await agent.settled(2)
  assert.deepEqual(await codes('second'), [40903, 40903])
})

test('a prompt with an id that is used up changes nothing: its overrides come after that check', async t => {
  const agent = await startAgent(t, scriptedLlm('x'))
  const params = { session_id: agent.session_id }
  await agent.prompt('one', { prompt_id: 'mine', thinking: 'low' })
  await agent.settled(1)

  const again = await agent.call(submitPrompt, { params, body: { content: text('x'), prompt_id: 'mine', thinking: 'high' } })

  assert.equal(again.code, 40903)
  assert.equal((await agent.call(readStatus, { params })).data.thinking_level, 'low')
})

test('a prompt waits until the permission mode that it brings is recorded', async t => {
  const asked = latch()
  const recorded = latch()
  const permissions = stub(Permissions, {
    setMode: async () => {
      asked.open()
      await recorded.opened
    },
    mode: async () => 'manual'
  })
  const agent = await startAgent(t, scriptedLlm('x'), { packs: [permissions] })
  await agent.prompt('one')
  await agent.settled(1)
  const prompt = agent.prompt('two', { permission_mode: 'yolo' })
  await asked.opened

  const params = { session_id: agent.session_id }
  for (let n = 0; n < 60; n++) await agent.call(listPrompts, { params }) // time enough for one that does not wait

  assert.equal(agent.events.filter(event => event.type === 'prompt.submitted').length, 1)
  recorded.open()
  await prompt
})
