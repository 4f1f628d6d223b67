/** Facts of packs in the status of a session: plan mode, swarm mode, a goal. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Agents, StatusFacts } from '../../../features/agent/index.ts'
import { Permissions } from '../../../features/permissions/index.ts'
import { readSnapshot, readStatus } from '../../../features/session-views/index.ts'
import { definePack } from '../../../kernel/index.ts'
import { stub } from '../../../kernel/testing.ts'
import { scriptedLlm } from '../../helpers/scripted-llm.ts'
import { type Started, startAgent } from '../agent/start.ts'

const statusOf = async (server: Started) => (await server.call(readStatus, { params: { session_id: server.session_id } })).data

/** The newest `agent.status.updated` that is not about the phase. */
const told = (server: Started) =>
  server.events
    .filter(({ type, payload }) => type === 'agent.status.updated' && !('phase' in (payload as object)))
    .map(({ payload }) => payload as Readonly<Record<string, unknown>>)
    .at(-1)

/** Plans by a switch, follows a goal; says a wrong thing about the model, which nobody hears. */
function planning() {
  let plans: boolean | undefined = true
  let toggle = async (_session_id: string, _to: boolean | undefined) => {}
  const pack = definePack({
    name: 'planning',
    needs: { agents: Agents },
    setup(ctx, { agents }) {
      ctx.contribute(StatusFacts, { field: 'plan_mode', value: () => plans })
      ctx.contribute(StatusFacts, { field: 'plan_mode', value: () => 'too late' })
      ctx.contribute(StatusFacts, { field: 'model', value: () => 'none' })
      ctx.contribute(StatusFacts, { field: 'goal', places: ['snapshot'], value: agent => ({ goalId: `goal of ${agent.id}` }) })
      toggle = async (session_id, to) => {
        plans = to
        ;(await agents.main(session_id)).announce()
      }
    }
  })
  return { pack, toggle: (session_id: string, to: boolean | undefined) => toggle(session_id, to) }
}

test('without facts of packs a session neither plans nor works in a swarm, and events say nothing of it', async t => {
  const modes = stub(Permissions, { defaultMode: async () => 'yolo', mode: async () => 'auto' })
  const server = await startAgent(t, scriptedLlm('ok'), { packs: [modes] })
  assert.equal((await statusOf(server)).permission, 'yolo', 'the mode in which its first turn will run')
  await server.prompt('go')
  await server.settled(1)
  const { plan_mode, swarm_mode, permission } = await statusOf(server)
  assert.deepEqual([plan_mode, swarm_mode, permission], [false, false, 'auto'])
  assert.ok(!('planMode' in (told(server) ?? {})))
})

test('a fact of a pack shows in the status and in events, and a change is told at once', async t => {
  const { pack, toggle } = planning()
  const server = await startAgent(t, scriptedLlm('ok'), { packs: [pack] })
  assert.equal((await statusOf(server)).plan_mode, false) // there is no agent yet
  await server.prompt('go')
  await server.settled(1)

  const { plan_mode, swarm_mode, model } = await statusOf(server)
  assert.deepEqual([plan_mode, swarm_mode, model], [true, false, 'test'])
  assert.deepEqual([told(server)?.planMode, told(server)?.model], [true, 'test'])

  await toggle(server.session_id, false)
  assert.equal(told(server)?.planMode, false)
  assert.equal((await statusOf(server)).plan_mode, false)
})

test('a fact without a value is left to the next pack, and to the built-in value', async t => {
  const silent = definePack({ name: 'silent', setup: ctx => ctx.contribute(StatusFacts, { field: 'swarm_mode', value: () => undefined }) })
  const server = await startAgent(t, scriptedLlm('ok'), { packs: [silent] })
  await server.prompt('go')
  await server.settled(1)
  assert.equal((await statusOf(server)).swarm_mode, false)
  assert.ok(!('swarmMode' in (told(server) ?? {})))
})

test('a fact that belongs to the snapshot shows there alone', async t => {
  const { pack } = planning()
  const server = await startAgent(t, scriptedLlm('ok'), { packs: [pack] })
  await server.prompt('go')
  await server.settled(1)
  const snapshot = (await server.call(readSnapshot, { params: { session_id: server.session_id } })).data as Readonly<
    Record<string, unknown>
  >
  assert.deepEqual([snapshot.goal, 'plan_mode' in snapshot], [{ goalId: 'goal of main' }, false])
  assert.ok(!('goal' in (await statusOf(server))))
})

test('a fact that fails is put down to its pack and left out; with its pack it goes', async t => {
  const logged: string[] = []
  const broken = definePack({
    name: 'broken',
    setup: ctx =>
      ctx.contribute(StatusFacts, {
        field: 'plan_mode',
        value() {
          throw new Error('broken on purpose')
        }
      })
  })
  const { pack } = planning()
  const server = await startAgent(t, scriptedLlm('ok'), { packs: [broken, pack], logged })
  await server.prompt('go')
  await server.settled(1)
  assert.equal((await statusOf(server)).plan_mode, true) // of the other pack
  const { pack: blamed, msg } = JSON.parse(logged[0] ?? '{}') as Record<string, unknown>
  assert.deepEqual([blamed, msg], ['broken', 'status fact plan_mode failed'])

  await server.kernel.unload('planning')
  assert.equal((await statusOf(server)).plan_mode, false)
})
