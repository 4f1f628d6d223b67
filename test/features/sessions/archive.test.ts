/** What archiving is for the agents of a session. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { archiveSession, readSession, restoreSession } from '../../../features/sessions/index.ts'
import { readTranscript } from '../../../features/transcript/index.ts'
import transcript from '../../../features/transcript/pack.ts'
import { scriptedLlm } from '../../helpers/scripted-llm.ts'
import { insider, startAgent } from '../agent/start.ts'

test('the agents of a loaded session are over when it is archived, each is told before the session is; restored they are as they were', async t => {
  const inside = insider()
  const scene = await startAgent(t, scriptedLlm('hello'), { packs: [inside.pack, transcript] })
  const params = { session_id: scene.session_id }
  await scene.prompt('hi')
  await scene.settled(1)
  const session = await inside.sessions.load(scene.session_id)
  const { id } = await session.createAgent({ type: 'sub', parent_agent_id: 'main' })
  const socket = await scene.connect()
  const { session_id } = params
  await socket.request('subscribe', { session_ids: [session_id], agent_filter: { [session_id]: ['nobody'] } })
  const archived = () => socket.frames.filter(({ type }) => type === 'event.session.archived').length
  const told = async (times: number) => {
    await socket.next(() => archived() === times)
    return socket.frames.flatMap(({ type, payload }) =>
      type === 'agent.disposed' ? `${type} ${payload.agentId}` : type === 'event.session.archived' ? type : []
    )
  }
  const disposed = async () =>
    (await scene.call(readTranscript, { params, query: { agent_id: 'main' } })).data.agents.map(a => a.disposedAt)
  const one = ['agent.disposed main', `agent.disposed ${id}`, 'event.session.archived']
  assert.deepEqual(await disposed(), [undefined, undefined])

  assert.equal((await scene.call(archiveSession, { params })).code, 0)
  assert.deepEqual(await told(1), one)
  const { archived_at } = (await scene.call(readSession, { params })).data
  assert.ok(archived_at)
  assert.deepEqual(await disposed(), [archived_at, archived_at])

  assert.equal((await scene.call(archiveSession, { params })).code, 0)
  assert.deepEqual(await told(2), [...one, 'event.session.archived'])

  assert.equal((await scene.call(restoreSession, { params })).code, 0)
  assert.deepEqual(await disposed(), [undefined, undefined])
  assert.equal((await scene.call(archiveSession, { params })).code, 0)
  assert.deepEqual(await told(3), [...one, 'event.session.archived', ...one])
})

test('a session that is archived, or restored, by two requests at once is over, or goes on, once', async t => {
  const inside = insider()
  const scene = await startAgent(t, scriptedLlm('hello'), { packs: [inside.pack] })
  const params = { session_id: scene.session_id }
  await inside.sessions.load(scene.session_id)
  const heard: string[] = []
  // As hooks of the user are told: one that is archived is over already.
  inside.sessions.onArchive(async ({ state }) => {
    if (!state.archived) heard.push('over')
  })
  inside.sessions.onRestore(() => heard.push('goes on'))
  inside.sessions.onArchive(async () => {
    for (let n = 0; n < 10; n++) await scene.call(readSession, { params }) // work that takes a while to end
  })
  const twice = async (route: typeof archiveSession | typeof restoreSession) =>
    (await Promise.all([0, 1].map(() => scene.call(route, { params })))).map(({ code }) => code)

  assert.deepEqual(await twice(archiveSession), [0, 0])
  assert.deepEqual(await twice(restoreSession), [0, 0])
  assert.deepEqual(heard, ['over', 'goes on'])
})
