import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Peers } from '../../../features/peers/index.ts'
import { definePack } from '../../../kernel/index.ts'
import type { Frame, SocketClient, TestKernel } from '../../../kernel/testing.ts'
import { kernels, newSession, prompt, until } from './kernels.ts'

const timeout = 60_000
const durable = (frames: readonly Frame[], id: string) =>
  frames.filter(frame => frame.session_id === id && frame.seq !== undefined && !frame.volatile)

test('a prompt at one server is run by the one that has the session, and clients of both see the same events', { timeout }, async t => {
  const { servers, cwd } = await kernels(t, [[{ text: 'Hello there.', chunks: 4 }]])
  const [first, second] = [servers[0]!, servers[1]!]
  const id = await newSession(first, cwd)
  const [here, there] = [await first.connect(), await second.connect()]
  for (const socket of [here, there]) {
    const ack = await socket.request('subscribe', { session_ids: [id], cursors: { [id]: { seq: 0 } } })
    assert.deepEqual([ack.code, ack.payload.accepted, ack.payload.resync_required], [0, [id], []])
    assert.ok(ack.payload.cursors[id].seq >= 1)
  }

  const prompt_id = await prompt(second, id, 'hi')
  for (const socket of [here, there]) await socket.next(frame => frame.type === 'prompt.completed' && frame.payload.promptId === prompt_id)

  await until(
    async () => [durable(here.frames, id), durable(there.frames, id)],
    ([a, b]) => a?.at(-1)?.seq === b?.at(-1)?.seq
  )
  assert.deepEqual(durable(there.frames, id), durable(here.frames, id))
  assert.ok(there.frames.some(frame => frame.type === 'assistant.delta'))
  const messages = await second.rest.json('GET', `/api/v1/sessions/${id}/messages`)
  assert.equal(messages.code, 0)
  assert.deepEqual(messages.data, (await first.rest.json('GET', `/api/v1/sessions/${id}/messages`)).data)
  assert.equal((await second.rest.json('POST', `/api/v1/sessions/${id}/profile`, { title: 'from afar' })).code, 0)
  assert.equal(((await first.rest.json('GET', `/api/v1/sessions/${id}`)).data as { title: string }).title, 'from afar')
  assert.equal((await second.rest.json('POST', `/api/v1/sessions/${id}/profile`, { title: 7 })).code, 40001)
  assert.equal((await second.rest.json('GET', '/api/v1/sessions/session_nobody')).code, 40401)
})

test('a session made at one server is announced once to the clients of the other and is in its list at once', { timeout }, async t => {
  const { servers, cwd } = await kernels(t, [[{ text: 'x' }]])
  const [first, second] = [servers[0]!, servers[1]!]
  const there = await second.connect()
  const id = await newSession(first, cwd)
  const created = await there.next('event.session.created')
  assert.deepEqual([created.session_id, created.seq, created.payload.session.id], [id, 1, id])
  const listed = (await second.rest.json('GET', '/api/v1/sessions')).data as { items: { id: string }[] }
  assert.ok(listed.items.some(item => item.id === id))
  await there.request('subscribe', { session_ids: [id], cursors: { [id]: { seq: 1, epoch: created.epoch } } })
  assert.equal(there.frames.filter(frame => frame.type === 'event.session.created').length, 1)
  assert.equal(there.frames.filter(frame => frame.type === 'event.workspace.created').length, 1)
  assert.equal((await second.rest.json('POST', `/api/v1/sessions/${id}:archive`)).code, 0)
  const archived = await there.next('event.session.archived')
  assert.equal(archived.session_id, '__global__')
  assert.equal(archived.payload.sessionId, id)
})

test('what the server of a session tells of it stays in the lists of others that read the file before it is written', {
  timeout
}, async t => {
  const { servers, cwd } = await kernels(t, [[{ text: 'x' }]], 2, [], { scan_interval_ms: 0 })
  const [first, second] = [servers[0]!, servers[1]!]
  const there = await second.connect()
  const id = await newSession(first, cwd)
  await prompt(first, id, 'told at once, written a moment later')
  await there.next(frame => frame.type === 'session.meta.updated' && frame.session_id === id)
  const { data } = await second.rest.json('GET', '/api/v1/sessions')
  const [item] = (data as { items: { last_prompt?: string }[] }).items
  assert.equal(item?.last_prompt, 'told at once, written a moment later')
})

test('tools and MCP servers of a session are those of the server that has it, also where the newest one is meant', { timeout }, async t => {
  const { servers, cwd } = await kernels(t, [[{ text: 'x' }]], 3)
  const [first, second, third] = servers as [TestKernel, TestKernel, TestKernel]
  await third.rest.json('POST', '/api/v2/mcp/servers', { name: 'broken', transport: 'stdio', command: 'false' })
  const ask = async ({ rest }: TestKernel, method: string, path: string) => {
    const { code, data } = await rest.json(method, path)
    return { code, data: data as { tools?: { name: string }[]; servers?: { id: string }[] } | null }
  }
  assert.deepEqual((await ask(third, 'GET', '/api/v1/mcp/servers')).data, { servers: [] })
  const older = await newSession(second, cwd)
  await newSession(first, cwd)
  for (const path of ['/api/v1/tools', `/api/v1/tools?session_id=${older}`]) {
    const answers = await Promise.all(servers.map(server => ask(server, 'GET', path)))
    assert.ok(answers[0]?.data?.tools?.some(({ name }) => name === 'Read'))
    for (const answer of answers) assert.deepEqual(answer, answers[0])
  }
  for (const server of servers) {
    const { data } = await ask(server, 'GET', '/api/v1/mcp/servers')
    assert.deepEqual(
      data?.servers?.map(({ id }) => id),
      ['broken']
    )
    assert.equal((await ask(server, 'POST', '/api/v1/mcp/servers/broken:restart')).code, 0)
    assert.equal((await ask(server, 'POST', '/api/v1/mcp/servers/nobody:restart')).code, 40408)
  }
})

test('what goes on in a session is in the lists of every server', { timeout }, async t => {
  const { servers, cwd, upstream } = await kernels(t, [[{ text: 'Wait. ' }, { hang: true }, { text: 'Done.' }]], 3)
  const id = await newSession(servers[0]!, cwd)
  await prompt(servers[1]!, id, 'hang')
  const item = async (server: (typeof servers)[number]) =>
    ((await server.rest.json('GET', '/api/v1/sessions?busy=true')).data as { items: { id: string; busy: boolean }[] }).items
  for (const server of servers)
    await until(
      () => item(server),
      items => items.some(each => each.id === id && each.busy)
    )
  const running = await servers[1]!.rest.json('GET', '/api/v2/sessions?activity.status=running')
  assert.deepEqual(
    (running.data as { items: { id: string }[] }).items.map(each => each.id),
    [id]
  )
  upstream.release()
  for (const server of servers)
    await until(
      () => item(server),
      items => items.length === 0
    )
})

test('a batch archives and restores sessions wherever they are, one with a turn that runs elsewhere too', { timeout }, async t => {
  const { servers, cwd } = await kernels(t, [[{ text: 'Wait. ' }, { hang: true }]])
  const [first, second] = [servers[0]!, servers[1]!]
  const there = await second.connect()
  const ids = [await newSession(first, cwd), await newSession(second, cwd)]
  await prompt(first, ids[0]!, 'hang')
  const batch = async (what: string) =>
    (await second.rest.json('POST', `/api/v2/sessions:${what}`, { ids: [...ids, 'session_nobody'] })).data
  const missing = { id: 'session_nobody', ok: false, error: { code: 40401, message: 'session not found' } }
  const expected = { results: [...ids.map(id => ({ id, ok: true })), missing], succeeded: 2, failed: 1 }

  assert.deepEqual(await batch('archive'), expected)
  const session = async () => (await first.rest.json('GET', `/api/v1/sessions/${ids[0]}`)).data as { archived: boolean; busy: boolean }
  const { archived, busy } = await session()
  assert.deepEqual([archived, busy], [true, false])
  for (const id of ids) await there.next(({ type, payload }) => type === 'event.session.archived' && payload.sessionId === id)
  assert.deepEqual(await batch('restore'), expected)
  assert.equal((await session()).archived, false)
})

test('a server that stops leaves its sessions to the others, and their clients go on without a gap or a repetition', {
  timeout
}, async t => {
  const { servers, cwd } = await kernels(t, [[{ text: 'Hello.' }]])
  const [first, second] = [servers[0]!, servers[1]!]
  const id = await newSession(first, cwd)
  const there = await second.connect()
  await there.request('subscribe', { session_ids: [id], cursors: { [id]: { seq: 0 } } })
  const one = await prompt(second, id, 'one')
  await there.next(frame => frame.type === 'prompt.completed' && frame.payload.promptId === one)
  await first.stop()
  const two = await prompt(second, id, 'two')
  await there.next(frame => frame.type === 'prompt.completed' && frame.payload.promptId === two)
  const seqs = durable(there.frames, id).map(frame => frame.seq)
  assert.deepEqual(
    seqs,
    Array.from(seqs, (_, at) => at + 1)
  )
  // What streamed before the subscription went on is in no replay: then the client is told.
  const missed = there.frames.filter(frame => frame.type === 'resync_required').map(frame => frame.payload.session_id)
  assert.ok(missed.every(each => each === id) && missed.length <= 1)
})

test('reads through another server are answered all the time while the one that has the session stops', { timeout }, async t => {
  const { servers, cwd } = await kernels(t, [[{ text: 'Hello.' }]])
  const [first, second] = [servers[0]!, servers[1]!]
  const id = await newSession(first, cwd)
  let isOver = false
  const stopped = first.stop().then(() => {
    isOver = true
  })
  const codes = new Map<number, number>()
  while (!isOver) {
    const { code } = await second.rest.json('GET', `/api/v1/sessions/${id}`)
    codes.set(code, (codes.get(code) ?? 0) + 1)
  }
  await stopped
  assert.deepEqual([...codes.keys()], [0])
})

test('a client that only follows transcripts elsewhere is told when that server goes', { timeout }, async t => {
  const { servers, cwd } = await kernels(t, [[{ text: 'Hello.' }]])
  const [first, second] = [servers[0]!, servers[1]!]
  const id = await newSession(first, cwd)
  const client = await second.connect()
  const wish = { session_id: id, transcript: { '*': 'delta' } }
  assert.equal((await client.request('subscribe_v2', wish)).code, 0)
  await first.stop()
  const told = await client.next('resync_required')
  assert.equal(told.payload.session_id, id)
  assert.equal((await client.request('subscribe_v2', wish)).code, 0)
  await prompt(second, id, 'hello')
  await client.next(frame => frame.type === 'transcript.ops' && JSON.stringify(frame.payload.ops).includes('Hello.'))
})

test('who subscribes to transcripts alone is subscribed to the session elsewhere: each event comes once and in order, until it unsubscribes', {
  timeout
}, async t => {
  const { servers, cwd } = await kernels(t, () => [{ text: 'Hello.' }])
  const [first, second] = [servers[0]!, servers[1]!]
  const [here, there] = [await first.connect(), await second.connect()]
  const id = await newSession(first, cwd)
  for (const socket of [here, there]) await socket.next('event.session.created')
  const refused = await there.request('subscribe_v2', { session_id: id, transcript: { main: 'everything' } })
  const wish = { session_id: id, transcript: { main: 'off' } }
  assert.equal(refused.code, 1)
  assert.deepEqual((await there.request('subscribe_v2', wish)).payload, (await here.request('subscribe_v2', wish)).payload)
  const done = async () => {
    const prompt_id = await prompt(second, id, 'hi')
    await here.next(({ type, payload }) => type === 'prompt.completed' && payload.promptId === prompt_id)
    return durable(here.frames, id).at(-1)?.seq
  }
  const last = await done()
  await there.next(({ session_id, seq }) => session_id === id && seq === last)
  assert.deepEqual(durable(there.frames, id), durable(here.frames, id))
  const { data } = await second.rest.json('GET', '/api/v1/connections')
  assert.deepEqual((data as { connections: { subscriptions: string[] }[] }).connections[0]?.subscriptions, [id])

  assert.equal((await there.request('unsubscribe', { session_ids: [id] })).code, 0)
  await done()
  await there.next(({ type, seq, payload }) => type === 'event.session.work_changed' && seq! > last! && payload.busy === false)
  assert.ok(!durable(there.frames, id).some(({ type, seq }) => type === 'turn.started' && seq! > last!))
})

test('a session that is deleted is among the subscriptions of no client, at whichever server', { timeout }, async t => {
  const { servers, cwd } = await kernels(t, [[{ text: 'x' }]])
  const [first, second] = servers as [TestKernel, TestKernel]
  const [deleted, other] = [await newSession(first, cwd), await newSession(first, cwd)]
  const clients = [await first.connect(), await second.connect()]
  for (const client of clients) await client.request('subscribe', { session_ids: [deleted, other] })
  const subscriptions = (server: TestKernel) => async () => {
    const { data } = await server.rest.json('GET', '/api/v1/connections')
    return (data as { connections: { subscriptions: string[] }[] }).connections.map(each => each.subscriptions)
  }
  for (const server of servers) assert.deepEqual(await subscriptions(server)(), [[deleted, other].sort()])

  assert.equal((await second.rest.json('DELETE', `/api/v1/sessions/${deleted}`)).code, 0)
  for (const server of servers) await until(subscriptions(server), ([each]) => !each?.includes(deleted))

  for (const server of servers) assert.deepEqual(await subscriptions(server)(), [[other]])
  await prompt(first, other, 'hi')
  for (const client of clients) await client.next('prompt.completed')
  assert.ok(clients.every(client => client.frames.every(({ type }) => type !== 'session_gone' && type !== 'resync_required')))
})

test('a client gets what it asked for where the session is, also when another server takes it at that moment', { timeout }, async t => {
  let meanwhile: (() => Promise<unknown>) | undefined
  const tapped: (() => void)[] = []
  const between = definePack({
    name: 'between',
    needs: { peers: Peers },
    setup(ctx, { peers }) {
      const pass = async () => {
        const now = meanwhile
        meanwhile = undefined
        await now?.()
        return undefined
      }
      tapped.push(() => ctx.tap(peers.owner, pass))
    }
  })
  const { servers, cwd, more } = await kernels(t, () => [{ text: 'Hello.' }], 2, [between])
  const [first, second] = servers as [TestKernel, TestKernel]
  tapped[1]!() // behind the one that finds who has a session
  for (const ask of [
    (client: SocketClient, id: string) => client.request('subscribe_v2', { session_id: id, transcript: { '*': 'delta' } }),
    (client: SocketClient, id: string) => client.request('subscribe', { session_ids: [id] })
  ]) {
    const third = await more()
    const id = await newSession(third, cwd)
    await third.stop()
    const client = await second.connect()
    meanwhile = () => prompt(first, id, 'before')
    assert.equal((await ask(client, id)).code, 0)
    assert.equal(meanwhile, undefined)
    await prompt(first, id, 'hello')
    await client.next(frame => ['transcript.ops', 'turn.started'].includes(frame.type) && JSON.stringify(frame.payload).includes('hello'))
  }
})

test('a request that reaches a server which has lost the session goes to the one that has it, its body too', { timeout }, async t => {
  const known: Peers[] = []
  let astray: string | undefined
  const guide = definePack({
    name: 'guide',
    needs: { peers: Peers },
    setup(ctx, { peers }) {
      const at = known.push(peers) - 1
      const once = async () => {
        const wrong = astray !== undefined && at === 1 ? peers.place(astray) : undefined
        astray = wrong ? undefined : astray
        return wrong
      }
      ctx.tap(peers.owner, once, { stage: -1 })
    }
  })
  const { servers, cwd } = await kernels(t, [[{ text: 'Hello.' }]], 3, [guide])
  const [first, second] = servers as [TestKernel, TestKernel]
  const id = await newSession(first, cwd)
  const ask = async (method: string, path: string, body?: unknown) => {
    astray = known[2]!.server_id
    const { code } = await second.rest.json(method, `/api/v1/sessions/${id}${path}`, body)
    assert.equal(astray, undefined)
    return code
  }
  assert.equal(await ask('GET', '/messages'), 0)
  assert.equal(await ask('POST', ':abort'), 0)
  assert.equal(await ask('POST', '/prompts', { content: [{ type: 'text', text: 'hi' }] }), 0)
  await first.waitFor(({ type }) => type === 'prompt.completed')
})

test('a session that nobody has loaded is archived at one server and restored at another: each list shows it without a look at the disk', {
  timeout
}, async t => {
  const { servers, cwd, more } = await kernels(t, () => [{ text: 'done' }], 2, [], { scan_interval_ms: 3_600_000 })
  const [first, second] = servers as [TestKernel, TestKernel]
  const maker = await more()
  const id = await newSession(maker, cwd)
  await maker.stop()
  const archived = (server: TestKernel) => async () => {
    const { data } = await server.rest.json('GET', '/api/v1/sessions?include_archive=true')
    return (data as { items: { id: string; archived: boolean }[] }).items.find(item => item.id === id)?.archived
  }
  for (const server of [first, second]) await until(archived(server), value => value === false)

  assert.equal((await first.rest.json('POST', `/api/v1/sessions/${id}:archive`, {})).code, 0)
  await until(archived(second), value => value === true)
  assert.equal((await second.rest.json('POST', `/api/v1/sessions/${id}:restore`, {})).code, 0)
  await until(archived(first), value => value === false)
})
