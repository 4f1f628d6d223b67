import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { readRuntime } from '../../../features/sessions/contract.ts'
import { createSession, Sessions, updateProfile } from '../../../features/sessions/index.ts'
import sessions from '../../../features/sessions/pack.ts'
import workspaces from '../../../features/workspaces/pack.ts'
import { definePack, type Streams } from '../../../kernel/index.ts'
import { RestClient, startTestKernel, type TestKernel } from '../../../kernel/testing.ts'
import { serve } from '../../helpers/cli.ts'
import { crashScene } from '../../helpers/crash-scene.ts'
import { latch } from '../../helpers/latch.ts'
import { MemoryJournal, type MemoryOfJournals, memoryJournals } from '../../helpers/memory-journals.ts'
import { freshDir } from '../../helpers/temp.ts'
import { copyOfHome } from '../agent/start.ts'

for (const [signal, left] of [
  ['SIGKILL', 'a killed one left open'],
  ['SIGTERM', 'one that was shut down left with prompts that wait']
] as const) {
  test(`a server that starts goes on with the sessions that ${left}, without anybody opening them`, t => goesOn(t, signal))
}

test('what clients saw of a session before a kill -9 they see after it, at the first look and when it is open', async t => {
  const { home, place } = await crashScene(t)
  const path = '/api/v1/sessions'
  let id = ''
  let before: { last_turn_reason?: string; busy: boolean } | undefined
  for (const round of [0, 1, 2]) {
    const server = await serve(t, home, '--port', '0')
    const client = new RestClient(server.url, server.token)
    const read = async () => (await client.json('GET', `${path}/${id}`)).data as NonNullable<typeof before>
    const listed = async () => ((await client.json('GET', path)).data as { items: unknown[] }).items[0]
    if (before) {
      const looks = round === 1 ? [await listed(), await read()] : [await read(), await listed()]
      await client.json('GET', `${path}/${id}/messages`)
      assert.deepEqual([...looks, await read()], [before, before, before])
    } else id = ((await client.json('POST', path, { metadata: { cwd: place } })).data as { id: string }).id
    await client.json('POST', `${path}/${id}/prompts`, { content: [{ type: 'text', text: `now talk ${round}` }] })
    do before = await read()
    while (before.busy || before.last_turn_reason !== 'completed')
    server.child.kill('SIGKILL')
    await server.ended
    client.close()
  }
})

test('a title whose event a killed server had not on disk yet is told at the next start, once', async t => {
  const { opened, open: goOn } = latch()
  t.after(() => goOn())
  const created = latch()
  let isFull = false
  class Slow extends MemoryJournal {
    override async append(lines: readonly Uint8Array[]): Promise<void> {
      if (isFull) await opened
      await super.append(lines)
      created.open()
    }
  }
  const memory: MemoryOfJournals = new Map()
  const open = async (id: string) => memory.get(id) ?? memory.set(id, new Slow()).get(id)!
  const start = (home: string) =>
    startTestKernel(t, { packs: [workspaces, sessions], home, journal: () => ({ ...memoryJournals(memory), open }) })
  const titles = ({ events }: TestKernel) =>
    events.flatMap(({ type, payload }) => (type === 'session.meta.updated' ? [(payload as { title?: string }).title] : []))

  const first = await start(await freshDir())
  const { id } = (await first.call(createSession, { body: { metadata: { cwd: first.home } } })).data
  const params = { session_id: id }
  await created.opened
  isFull = true
  assert.equal((await first.call(updateProfile, { params, body: { title: 'chosen' } })).data.title, 'chosen')
  const home = await copyOfHome(first.home)
  isFull = false

  const second = await start(home)
  await second.call(readRuntime, { params })
  assert.deepEqual(titles(second), ['chosen'])
  await second.stop()
  const third = await start(home)
  await third.call(readRuntime, { params })
  assert.deepEqual(titles(third), [])
})

for (const [left, how] of [
  ['its event', 'told'],
  ['the beginning of its directory', 'begun']
] as const) {
  test(`of a main agent a killed server left ${left} alone: clients hear of it once`, async t => {
    const found: { sessions?: Sessions; streams?: Streams } = {}
    const probe = definePack({
      name: 'probe',
      needs: { sessions: Sessions },
      setup: ({ streams }, given) => void Object.assign(found, { streams, ...given })
    })
    const start = (home: string) => startTestKernel(t, { packs: [workspaces, sessions, probe], home })
    const first = await start(await freshDir())
    const { id } = (await first.call(createSession, { body: { metadata: { cwd: first.home } } })).data
    const session = await found.sessions!.load(id)
    if (how === 'begun') await mkdir(join(session.dir, 'agents', 'main'), { recursive: true })
    else await session.main()
    await found.streams!.flushed(id)
    await start(await copyOfHome(first.home))

    await (await found.sessions!.load(id)).main()

    await found.streams!.flushed(id)
    const told: unknown[] = []
    for await (const { type, payload } of found.streams!.backwards(id)) if (type === 'agent.created') told.push(payload.agentId)
    assert.deepEqual(told, ['main'])
  })
}

async function goesOn(t: TestContext, signal: NodeJS.Signals): Promise<void> {
  const { home, place } = await crashScene(t)
  const first = await serve(t, home, '--port', '0')
  const client = new RestClient(first.url, first.token)
  t.after(() => client.close())
  const { id } = (await client.json('POST', '/api/v1/sessions', { metadata: { cwd: place } })).data as { id: string }
  for (const text of ['hang', 'now talk']) {
    const { code } = await client.json('POST', `/api/v1/sessions/${id}/prompts`, { content: [{ type: 'text', text }] })
    assert.equal(code, 0)
  }
  first.child.kill(signal)
  await first.ended

  const second = await serve(t, home, '--port', '0')
  const again = new RestClient(second.url, second.token)
  t.after(() => again.close())
  let seen: { last_turn_reason?: string; last_prompt?: string; title?: string } = {}
  // Reading a session and listing do not load it.
  const until = AbortSignal.timeout(20_000)
  while (!until.aborted && seen.last_turn_reason !== 'completed')
    seen = (await again.json('GET', `/api/v1/sessions/${id}`)).data as typeof seen

  assert.deepEqual([seen.title, seen.last_prompt, seen.last_turn_reason], ['hang', 'now talk', 'completed'])
  const { items } = (await again.json('GET', '/api/v1/sessions?exclude_empty=true')).data as { items: { id: string }[] }
  assert.deepEqual(
    items.map(item => item.id),
    [id]
  )
}
