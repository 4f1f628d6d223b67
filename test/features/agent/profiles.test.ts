/** Profiles that packs contribute: bound by name, with a role and tools of their own, and kept when their pack has left. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AgentProfiles, Agents } from '../../../features/agent/index.ts'
import { submitPrompt } from '../../../features/prompts/index.ts'
import { Tools } from '../../../features/tools/index.ts'
import tools from '../../../features/tools/pack.ts'
import { definePack } from '../../../kernel/index.ts'
import { type Reply, scriptedLlm, toolCalls } from '../../helpers/scripted-llm.ts'
import { scripted } from '../tools/fakes.ts'
import { type StartOptions, startAgent } from './start.ts'

const all = ['Read', 'Bash', 'mcp__db__query', 'mcp__db__drop', 'mcp__web__get']
const someTools = definePack({
  name: 'some-tools',
  setup(ctx) {
    for (const name of all) ctx.contribute(Tools, scripted({ name }))
  }
})
const reviewer = definePack({
  name: 'reviewer',
  setup(ctx) {
    ctx.contribute(AgentProfiles, {
      name: 'reviewer',
      description: 'Reads changes',
      role: 'You review what others changed.',
      tools: ['Read', 'mcp__db__*']
    })
    ctx.contribute(AgentProfiles, { name: 'agent', description: 'takes the place of the built-in one', role: 'You are somebody else.' })
  }
})

async function start(t: Parameters<typeof startAgent>[0], options: StartOptions = {}, ...replies: readonly Reply[]) {
  const llm = scriptedLlm(...replies, 'ok')
  const server = await startAgent(t, llm, { ...options, packs: [tools, someTools, ...(options.packs ?? [reviewer])] })
  const offered = (request: number) => llm.requests[request]?.tools.map(tool => tool.name)
  return { ...server, llm, offered }
}

test('a profile of a pack is bound by its name: its role is in the system prompt, and only its tools are there', async t => {
  const { llm, offered, ...server } = await start(t)
  await server.prompt('look', { profile: 'reviewer' })
  await server.settled(1)
  assert.match(llm.requests[0]?.system ?? '', /You review what others changed\./)
  assert.deepEqual(offered(0), ['Read', 'mcp__db__query', 'mcp__db__drop'])
})

test('a built-in profile wins over one of its name, and an unknown one is refused with those that there are', async t => {
  const { llm, offered, ...server } = await start(t)
  const params = { session_id: server.session_id }
  const refused = await server.call(submitPrompt, { params, body: { content: [{ type: 'text', text: 'x' }], profile: 'nobody' } })
  assert.equal(refused.code, 40001)
  assert.match(JSON.stringify(refused.details), /agent, coder, explore, plan, reviewer/)
  await server.prompt('look', { profile: 'agent' })
  await server.settled(1)
  assert.doesNotMatch(llm.requests[0]?.system ?? '', /somebody else/)
  assert.deepEqual(offered(0), all)
})

test('who explores may run commands, who plans may not', async t => {
  for (const [profile, tools] of [
    ['explore', ['Read', 'Bash']],
    ['plan', ['Read']]
  ] as const) {
    const { offered, ...server } = await start(t)
    await server.prompt('look', { profile })
    await server.settled(1)
    assert.deepEqual(offered(0), tools)
  }
})

test('disabled tools are names, and globs for tools of MCP servers', async t => {
  const { offered, ...server } = await start(t)
  await server.prompt('look', { disabled_tools: ['mcp__db__*', 'Bas*', 'Read'] })
  await server.settled(1)
  assert.deepEqual(offered(0), ['Bash', 'mcp__web__get'])
})

test('an agent whose profile has left with its pack keeps its system prompt and its tools, also after a restart', async t => {
  const first = await start(t)
  await first.prompt('look', { profile: 'reviewer' })
  await first.settled(1)
  await first.kernel.unload('reviewer')
  await first.prompt('again', { profile: 'reviewer' }) // bound already
  await first.settled(2)
  await first.prompt('and again', { disabled_tools: ['mcp__db__drop'] })
  await first.settled(3)
  const [system, ...later] = first.llm.requests.map(request => request.system)
  assert.deepEqual(later, [system, system])
  assert.deepEqual(first.offered(1), ['Read', 'mcp__db__query', 'mcp__db__drop'])
  assert.deepEqual(first.offered(2), ['Read', 'mcp__db__query'])
  await first.stop()

  const place = { home: first.home, session_id: first.session_id }
  const second = await start(t, { ...place, packs: [] }, toolCalls({ id: 'c1', name: 'Bash' }))
  await second.prompt('and now')
  await second.settled(1)
  assert.equal(second.llm.requests[0]?.system, system)
  assert.deepEqual(second.offered(0), ['Read', 'mcp__db__query'])
  assert.match(JSON.stringify(second.llm.requests[1]?.messages.at(-1)), /not available to the profile reviewer/)
})

test('a profile that left before the first turn fails the turn: nobody knows what it allows', async t => {
  let bind = async (_session_id: string) => {}
  const binder = definePack({
    name: 'binder',
    needs: { agents: Agents },
    setup(_ctx, { agents }) {
      bind = async session_id => (await agents.main(session_id)).configure({ profile: 'reviewer' })
    }
  })
  const { llm, ...server } = await start(t, { packs: [reviewer, binder] })
  await bind(server.session_id)
  await server.kernel.unload('reviewer')
  await server.prompt('look')
  const { payload } = await server.waitFor(event => event.type === 'turn.ended')
  assert.deepEqual((payload as { error?: unknown }).error, {
    code: 'internal',
    message: 'the profile reviewer is not there',
    name: 'AppError',
    retryable: false
  })
  assert.equal(llm.requests.length, 0)
})
