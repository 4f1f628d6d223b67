/** DELETE of a session: both trees go, for every process, and nothing brings them back. */
import assert from 'node:assert/strict'
import { mkdir, readdir, rename, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { loadDefaultPacks } from '../../../features/default-packs.ts'
import { deleteSession, deleteSessionAction, readSession, Sessions, sessionArchived } from '../../../features/sessions/index.ts'
import { discardLeft } from '../../../features/sessions/removal.ts'
import { definePack, defineSlot } from '../../../kernel/index.ts'
import { startTestKernel } from '../../../kernel/testing.ts'
import { newSession, prompt, scene } from '../../helpers/scene.ts'
import { freshDir } from '../../helpers/temp.ts'
import { silent } from '../tools/fakes.ts'

/** Every name below the home that has the id in it. */
async function traces(home: string, id: string): Promise<string[]> {
  const all = await readdir(home, { recursive: true })
  return all.filter(name => name.includes(id))
}

test('a session at work is ended and deleted; its clients hear of it as archived, and nobody finds it any more', async t => {
  const { page, cwd, home, server, upstream } = await scene(t, [[{ text: 'so far' }, { hang: true }]])
  const author = await page()
  const id = await newSession(author, cwd)
  const other = await newSession(author, cwd)
  await author.openSession(id)
  const streaming = author.next('assistant.delta')
  await prompt(author, id, 'work')
  await streaming
  assert.ok((await traces(home, id)).some(name => name.startsWith(join('server', 'events'))))

  const archived = author.next('event.session.archived')
  const params = { session_id: id }
  const answer = await server.call(deleteSession, { params })

  assert.deepEqual(answer.data, { deleted: true })
  assert.equal((await archived).payload.sessionId, id)
  assert.equal(await (await upstream.arrived(0)).closed, 'client')
  assert.deepEqual(await traces(home, id), [])
  for (const path of ['', '/messages', '/snapshot', '/status']) {
    assert.equal((await author.get(`/api/v1/sessions/${id}${path}`)).code, 40401, path)
  }
  assert.equal((await author.post(`/api/v1/sessions/${id}/prompts`, { content: [{ type: 'text', text: 'x' }] })).code, 40401)
  assert.equal((await server.call(deleteSession, { params })).code, 40401)
  assert.deepEqual((await author.request('subscribe', { session_ids: [id] })).payload.not_found, [id])
  const { items } = (await author.get('/api/v1/sessions?include_archive=true')).data
  assert.deepEqual(
    items.map((one: { id: string }) => one.id),
    [other]
  )
  assert.deepEqual(await traces(home, id), [])
  assert.equal(server.events.filter(one => one.type === sessionArchived.type).length, 1)

  const action = await server.call(deleteSessionAction, { params: { session_id: other } })
  assert.deepEqual([action.code, action.data, await traces(home, other)], [0, { deleted: true }, []])
})

/** A server with every pack, a session in it, and what packs see of sessions. */
async function holding(t: Parameters<typeof startTestKernel>[0], home: string) {
  let sessions: Sessions | undefined
  const holder = definePack({
    name: 'holder',
    needs: { sessions: Sessions },
    setup: (_ctx, needs) => {
      sessions = needs.sessions
    }
  })
  const server = await startTestKernel(t, { packs: [...(await loadDefaultPacks()), holder], home })
  const created = await server.rest.json('POST', '/api/v1/sessions', { metadata: { cwd: home } })
  const { id } = created.data as { id: string }
  return { server, id, held: await sessions!.load(id) }
}

test('a request under way hears that its session was deleted, or was closed', async t => {
  const home = await freshDir()
  const late = defineSlot('late', () => 1)
  const { server, id, held } = await holding(t, home)
  const main = await held.main()
  assert.equal((await server.call(deleteSession, { params: { session_id: id } })).code, 0)
  for (const host of [held, main]) {
    assert.throws(() => host.get(late), { code: 40401 })
    assert.throws(() => host.own(() => undefined), { code: 40401 })
  }

  const other = await holding(t, await freshDir())
  await other.server.stop()
  assert.throws(() => other.held.get(late), { code: 40901 })
})

test('whoever still holds a deleted session writes nothing', async t => {
  const home = await freshDir()
  const { server, id, held } = await holding(t, home)
  assert.equal((await server.call(deleteSession, { params: { session_id: id } })).code, 0)

  await assert.rejects(
    held.update(state => ({ ...state, title: 'late' })),
    { code: 40401 }
  )
  held.promptSubmitted('late', { announce: false })
  held.work.turnStarted('main')
  held.work.turnEnded('main', 'completed')
  await server.stop()
  assert.deepEqual(await traces(home, id), [])
})

test('a server that knows no others neither deletes a session that is open elsewhere nor brings back one that was deleted', async t => {
  const home = await freshDir()
  const packs = await loadDefaultPacks(['peers'])
  const [first, second] = [await startTestKernel(t, { packs, home }), await startTestKernel(t, { packs, home })]
  const { id } = (await first.rest.json('POST', '/api/v1/sessions', { metadata: { cwd: home } })).data as { id: string }
  const params = { session_id: id }
  assert.equal((await second.call(readSession, { params })).code, 0)
  assert.equal((await second.rest.json('GET', `/api/v1/sessions/${id}/messages`)).code, 0)
  assert.equal((await second.call(deleteSession, { params })).code, 40901)

  assert.equal((await first.call(deleteSession, { params })).code, 0)
  assert.equal((await second.call(readSession, { params })).code, 40401)
  assert.equal((await second.rest.json('POST', `/api/v1/sessions/${id}/profile`, { title: 'x' })).code, 40401)
  assert.equal((await second.rest.json('GET', `/api/v1/sessions/${id}/messages`)).code, 40401)
  assert.equal((await second.call(deleteSession, { params })).code, 40401)
  assert.deepEqual(await traces(home, id), [])
})

test('with its last session goes the directory of a workspace, also one that an earlier version left empty', async t => {
  const home = await freshDir()
  const packs = await loadDefaultPacks()
  const server = await startTestKernel(t, { packs, home })
  const make = async () => {
    const { id } = (await server.rest.json('POST', '/api/v1/sessions', { metadata: { cwd: home } })).data as { id: string }
    return { session_id: id }
  }
  const places = () => readdir(join(home, 'sessions'))
  const [first, second] = [await make(), await make()]
  const [place = ''] = await places()
  await server.call(deleteSession, { params: first })
  assert.deepEqual(await places(), [place])
  await server.call(deleteSession, { params: second })
  assert.deepEqual(await places(), [])
  assert.equal((await server.call(readSession, { params: await make() })).code, 0)
  assert.deepEqual(await places(), [place])

  await mkdir(join(home, 'sessions', 'wd_left_0123456789ab'))
  await discardLeft(join(home, 'sessions'), { remove: async () => undefined }, silent)
  assert.deepEqual(await places(), [place])
})

test('what a crash left of a removal goes at the next start', async t => {
  const home = await freshDir()
  const packs = await loadDefaultPacks()
  const before = await startTestKernel(t, { packs, home })
  const { id, workspace_id } = (await before.rest.json('POST', '/api/v1/sessions', { metadata: { cwd: home } })).data as {
    id: string
    workspace_id: string
  }
  await before.stop()
  const place = join(home, 'sessions', workspace_id)
  await rename(join(place, id), join(place, `.removed-${id}-0123456789ab`))
  await mkdir(join(place, '.removed-of-somebody-else'))
  assert.equal((await traces(home, id)).filter(name => name.startsWith(join('server', 'events'))).length, 1)

  const removed: string[] = []
  const streams = {
    remove: async (one: string) => {
      removed.push(one)
      throw new Error('the disk is away')
    }
  }
  await discardLeft(join(home, 'sessions'), streams, silent)
  assert.deepEqual(removed, [id])
  assert.ok((await traces(home, id)).length > 1, 'the directory stays until its journal is gone')

  const after = await startTestKernel(t, { packs, home })
  assert.equal((await after.call(readSession, { params: { session_id: id } })).code, 40401)
  await after.stop()
  assert.deepEqual(await traces(home, id), [])
  assert.deepEqual(await readdir(place), ['.removed-of-somebody-else'])
})

test('an empty directory that a crash left where a session was to be goes with a start an hour later, and its workspace with it', async () => {
  const root = await freshDir()
  const long = new Date(Date.now() - 2 * 60 * 60 * 1000)
  const made = async (...path: string[]) => {
    const dir = join(root, ...path)
    await mkdir(dir, { recursive: true })
    await utimes(dir, long, long)
  }
  await made('wd_one', 'session_left')
  await made('wd_two', 'session_left')
  await made('wd_two', 'session_used', 'agents')
  await made('wd_two', 'session_used')
  await mkdir(join(root, 'wd_two', 'session_begun'))
  await discardLeft(root, { remove: async () => {} }, silent)
  assert.deepEqual(await readdir(root), ['wd_two'])
  assert.deepEqual((await readdir(join(root, 'wd_two'))).sort(), ['session_begun', 'session_used'])
})
