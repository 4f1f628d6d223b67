/** Several servers on one home: one owner per session, one truth on disk, and the survivor takes over at once. */
import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type Envelope, type Frame, RestClient, SocketClient } from '../../kernel/testing.ts'
import { type Running, serve } from '../helpers/cli.ts'
import { journal } from '../helpers/crash-judge.ts'
import { crashScene } from '../helpers/crash-scene.ts'

interface Server extends Running {
  readonly rest: RestClient
}

async function started(t: TestContext, home: string): Promise<Server> {
  const server = await serve(t, home, '--port', '0')
  const rest = new RestClient(server.url, server.token)
  t.after(() => rest.close())
  return { ...server, rest }
}

const prompt = (rest: RestClient, id: string, text: string) =>
  rest.json('POST', `/api/v1/sessions/${id}/prompts`, { content: [{ type: 'text', text }] })

async function create(rest: RestClient, cwd: string): Promise<string> {
  return ((await rest.json('POST', '/api/v1/sessions', { metadata: { cwd } })).data as { id: string }).id
}

const subscribe = async (server: Server, id: string) => {
  const socket = await SocketClient.open(server.url, server.token)
  await socket.request('subscribe', { session_ids: [id], cursors: { [id]: { seq: 0 } } })
  return socket
}

test('a session that one server runs is driven through the other as well; after kill -9 the other goes on at once', async t => {
  const { home, place, upstream } = await crashScene(t)
  const [first, second] = [await started(t, home), await started(t, home)]
  assert.equal(first.token, second.token)
  const id = await create(first.rest, place)
  const watching = await subscribe(first, id)
  const foreign = await subscribe(second, id)
  const { prompt_id: first_id } = (await prompt(second.rest, id, 'hang')).data as { prompt_id: string }
  for (const socket of [watching, foreign]) await socket.next('assistant.delta')
  assert.equal((await prompt(first.rest, id, 'talk')).code, 0)
  const item = `/api/v1/sessions/${id}`
  for (const path of ['/messages', '/snapshot', '/status']) assert.equal((await second.rest.json('GET', `${item}${path}`)).code, 0)
  assert.equal((await second.rest.json('POST', `${item}/profile`, { title: 'mine' })).code, 0)
  assert.equal((await second.rest.json('POST', `${item}/approvals/approval_x`, { decision: 'approved' })).code, 40404)

  const before = await journal(second.url, second.token, id)
  first.child.kill('SIGKILL')
  await first.ended
  const accepted = await prompt(second.rest, id, 'talk now')
  assert.equal(accepted.code, 0, accepted.msg)
  const { prompt_id } = accepted.data as { prompt_id: string }
  await foreign.next(frame => frame.type === 'prompt.completed' && frame.payload.promptId === prompt_id)
  const after = await journal(second.url, second.token, id)
  assert.equal(after[0]?.epoch, before[0]?.epoch)
  assert.deepEqual(after.slice(0, before.length), before)
  assert.deepEqual(
    after.filter(frame => frame.type === 'turn.ended').map(frame => [frame.payload.turnId, frame.payload.reason]),
    [
      [0, 'cancelled'],
      [1, 'completed'],
      [2, 'completed']
    ]
  )
  assert.ok(after.some(frame => frame.type === 'prompt.submitted' && frame.payload.promptId === first_id))
  // The watcher of the survivor was never told twice and missed nothing.
  const live = foreign.frames.filter(frame => frame.seq !== undefined && frame.session_id === id && !frame.volatile)
  assert.deepEqual(
    live.map(frame => frame.seq),
    after.slice(0, live.length).map(frame => frame.seq)
  )
  // Text that streamed when the first one died is in no replay: then the client is told, once.
  const missed = foreign.frames.filter(frame => frame.type === 'resync_required').map(frame => frame.payload.session_id)
  assert.ok(missed.every(each => each === id) && missed.length <= 1)
  upstream.release(9)
})

for (const next of ['the server of the client', 'a third one'])
  test(`who follows transcripts of a session whose server is killed follows them at ${next}: no event that they stand for comes`, async t => {
    const { home, place, upstream } = await crashScene(t)
    const [first, second, third] = [await started(t, home), await started(t, home), await started(t, home)]
    const id = await create(first.rest, place)
    const foreign = await SocketClient.open(second.url, second.token)
    await foreign.request('subscribe_v2', { session_id: id, transcript: { '*': 'delta' } })
    await prompt(first.rest, id, 'hang')
    await foreign.next(frame => frame.type === 'transcript.ops' && JSON.stringify(frame.payload.ops).includes('"append"'))
    const from = foreign.frames.length
    first.child.kill('SIGKILL')
    await first.ended
    const { prompt_id } = (await prompt((next === 'a third one' ? third : second).rest, id, 'talk now')).data as { prompt_id: string }
    const isOver = ({ type, payload }: Frame) =>
      type === 'transcript.ops' && JSON.stringify(payload.ops).includes(`"promptId":"${prompt_id}","status":"completed"`)
    while (!foreign.frames.slice(from).some(isOver)) await foreign.next(isOver)
    const types = new Set(foreign.frames.slice(from).map(({ type }) => type))
    assert.ok(types.has('transcript.reset'))
    assert.deepEqual(
      [...types].filter(type => /^(turn|tool|prompt\.(sub|comp|ab)|assistant|thinking)/.test(type)),
      []
    )
    upstream.release(9)
  })

test('settings, workspaces and sessions that three servers change at once are all kept, and every server shows them', async t => {
  const { home, place } = await crashScene(t)
  const servers = await Promise.all([started(t, home), started(t, home), started(t, home)])
  const answers: Promise<Envelope>[] = []
  const created: Promise<string>[] = []
  for (const [at, { rest }] of servers.entries()) {
    for (let n = 0; n < 6; n++) {
      const root = join(place, `${at}-${n}`)
      await mkdir(root)
      answers.push(rest.json('POST', '/api/v1/workspaces', { root }))
      answers.push(
        rest.json('POST', '/api/v1/config', { models: { [`m${at}${n}`]: { provider: 'p', model: 'x', max_context_size: 1000 } } })
      )
      created.push(create(rest, root))
    }
  }
  for (const { code, msg } of await Promise.all(answers)) assert.equal(code, 0, msg)
  const ids = await Promise.all(created)
  for (const { rest } of servers) {
    const workspaces = (await rest.json('GET', '/api/v1/workspaces')).data as { items: unknown[] }
    assert.equal(workspaces.items.length, 18)
    await until(async () => {
      const sessions = (await rest.json('GET', '/api/v1/sessions?page_size=100')).data as { items: { id: string }[] }
      const { models } = (await rest.json('GET', '/api/v1/config')).data as { models: object }
      return ids.every(id => sessions.items.some(item => item.id === id)) && Object.keys(models).length === 19
    })
  }
})

/** Servers look at the disk now and then: asks until it fits; the time limit of the test ends it otherwise. */
async function until(fits: () => Promise<boolean>): Promise<void> {
  while (!(await fits())) await new Promise(resolve => setTimeout(resolve, 50))
}
