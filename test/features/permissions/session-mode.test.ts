/** The mode of the main agent and those of its children, over restarts. */
import assert from 'node:assert/strict'
import { mkdir, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { Histories } from '../../../features/history/index.ts'
import { type PermissionMode, Permissions } from '../../../features/permissions/index.ts'
import permissionsPack from '../../../features/permissions/pack.ts'
import { Sessions, updateProfile } from '../../../features/sessions/index.ts'
import { definePack } from '../../../kernel/index.ts'
import { scriptedLlm } from '../../helpers/scripted-llm.ts'
import { countedHistory, type StartOptions, startAgent } from '../agent/start.ts'

async function start(t: TestContext, options: Pick<StartOptions, 'home' | 'session_id'> = {}) {
  const services: { permissions?: Permissions; sessions?: Sessions; histories?: Histories } = {}
  /** Whose mode was announced, and which. */
  const modesTold: (readonly [string, string])[] = []
  const probe = definePack({
    name: 'probe',
    needs: { permissions: Permissions, sessions: Sessions, histories: Histories },
    setup(ctx, given) {
      Object.assign(services, given)
      ctx.tap(ctx.hooks.event, ({ type, subject, payload }) => {
        const { permission } = payload as { permission?: string }
        if (type === 'agent.status.updated' && permission !== undefined) modesTold.push([subject, permission])
      })
    }
  })
  /** Whose history was opened, in order. */
  const opened: string[] = []
  const packs = [permissionsPack, probe]
  const llm = scriptedLlm('fine')
  const started = await startAgent(t, llm, { ...options, packs, history: countedHistory(opened) })
  const { permissions, sessions, histories } = services as Required<typeof services> // the kernel has started
  const session = () => sessions.load(started.session_id)
  return {
    ...started,
    opened,
    session,
    modesTold,
    llm,
    history: async () => await histories.of(await (await session()).main()),
    create: async () => (await (await session()).createAgent({ type: 'sub', parent_agent_id: 'main' })).id,
    permissions,
    host: async (agent_id: string) => (await session()).agent(agent_id) ?? assert.fail(),
    async modes(...ids: string[]) {
      const hosts = (await session()).agents()
      return await Promise.all(hosts.filter(({ id }) => ids.includes(id)).map(host => permissions.mode(host)))
    },
    async setMain(permission_mode: PermissionMode) {
      const body = { agent_config: { permission_mode } }
      assert.equal((await started.call(updateProfile, { params: { session_id: started.session_id }, body })).code, 0)
    },
    async setChild(agent_id: string, permission_mode: PermissionMode) {
      await started.prompt('go on', { agent_id, permission_mode })
      await started.settled(1)
    },
    async restarted() {
      await started.stop()
      return await start(t, { home: started.home, session_id: started.session_id })
    }
  }
}

/** A session that was closed, with a main agent and three children. */
async function closed(t: TestContext) {
  const first = await start(t)
  await first.prompt('one')
  const ids = [await first.create(), await first.create(), await first.create()] as const
  for (const agent_id of ids) await first.prompt('work', { agent_id })
  await first.settled(4)
  return { ids, again: await first.restarted() }
}

test('the mode of the main agent reaches children, opened and made later, without opening one', async t => {
  const { ids, again } = await closed(t)
  await again.setMain('auto')
  assert.deepEqual(again.opened, ['main'])
  assert.deepEqual(await again.modes(...ids, await again.create()), ['auto', 'auto', 'auto', 'auto'])

  const later = await again.restarted()
  assert.deepEqual(await later.modes('main', ...ids), ['auto', 'auto', 'auto', 'auto'])
})

test("of a child's own mode and the main agent's the one that was set later counts, also after a restart", async t => {
  const { ids, again } = await closed(t)
  await again.setMain('auto')
  await again.setChild(ids[1], 'manual')
  assert.deepEqual(await again.modes('main', ...ids), ['auto', 'auto', 'manual', 'auto'])

  const second = await again.restarted()
  assert.deepEqual(await second.modes('main', ...ids), ['auto', 'auto', 'manual', 'auto'])

  const third = await second.restarted()
  await third.setMain('auto') // as before, and yet a setting
  assert.deepEqual(third.opened, ['main'])
  assert.deepEqual(await third.modes('main', ...ids), ['auto', 'auto', 'auto', 'auto'])
  await third.setChild(ids[1], 'manual')
  await third.setMain('auto')
  assert.deepEqual(await third.modes(ids[1]), ['auto'])

  assert.deepEqual(await (await third.restarted()).modes('main', ...ids), ['auto', 'auto', 'auto', 'auto'])
})

test('a mode that is set again and holds for all already is not recorded again', async t => {
  const { ids, again } = await closed(t)
  await again.setMain('auto')
  await again.setMain('auto')
  await again.prompt('more', { permission_mode: 'auto' })
  await again.settled(1)
  await again.setChild(ids[0], 'yolo')
  await again.setChild(ids[0], 'yolo')

  const files = (await readdir(again.home, { recursive: true })).filter(name => name.endsWith('wire.jsonl'))
  const lines = (await Promise.all(files.map(name => readFile(join(again.home, name), 'utf8')))).join('').split('\n')
  const recorded = lines.filter(line => line.includes('"permission.mode"')).map(line => (JSON.parse(line) as { mode: string }).mode)
  assert.deepEqual(recorded.sort(), ['auto', 'yolo'])
})

test('a mode is on record when setting it resolves, that of the main agent and of a child', async t => {
  const server = await start(t)
  for (const id of [(await (await server.session()).main()).id, await server.create()]) {
    const host = await server.host(id)
    await server.permissions.mode(host) // its history is open
    await mkdir(join(host.dir, 'wire.jsonl'), { recursive: true })
    await assert.rejects(server.permissions.setMode(host, 'yolo'), `${id} can be written to`)
  }
})

test('entering auto mode and leaving it is told to the model once, and again after a compaction', async t => {
  const server = await start(t)
  const turn = async (permission_mode: PermissionMode) => {
    const before = server.events.filter(({ type }) => type === 'prompt.completed').length
    await server.prompt('go', { permission_mode })
    await server.settled(before + 1)
    const text = JSON.stringify(server.llm.requests.at(-1)?.messages)
    return [/Auto mode is on/g, /Auto mode is off/g].map(each => text.match(each)?.length ?? 0)
  }
  assert.deepEqual(await turn('manual'), [0, 0])
  assert.deepEqual(await turn('auto'), [1, 0])
  assert.deepEqual(await turn('auto'), [1, 0])
  assert.deepEqual(await turn('yolo'), [1, 1])
  assert.deepEqual(await turn('manual'), [1, 1])
  assert.deepEqual(await turn('auto'), [2, 1])
  const summary = { role: 'user', content: [{ type: 'text', text: 'so far' }] } as const
  await (await server.history()).append({ type: 'context.compacted', messages: [summary] })
  assert.deepEqual(await turn('auto'), [1, 0])
})

test('the mode of the main agent is announced for the agents at work that it reaches', async t => {
  const server = await start(t)
  await server.prompt('one')
  const child = await server.create()
  await server.prompt('work', { agent_id: child })
  await server.settled(2)
  await server.setMain('yolo')
  assert.deepEqual(server.modesTold, [
    ['main', 'yolo'],
    [child, 'yolo']
  ])
  await server.setChild(child, 'manual')
  await server.setMain('manual')
  assert.deepEqual(server.modesTold.slice(2), [
    [child, 'manual'],
    ['main', 'manual']
  ])
})

test('a mode is set in the history that is there by now when the pack of histories was swapped', async t => {
  const { kernel, settled, prompt, setMain, modes, restarted } = await start(t)
  await prompt('one')
  await settled(1)
  await setMain('yolo')
  await kernel.reload('history')

  assert.deepEqual(await modes('main'), ['yolo'])
  await setMain('auto')
  assert.deepEqual(await modes('main'), ['auto'])
  assert.deepEqual(await (await restarted()).modes('main'), ['auto'])
})
