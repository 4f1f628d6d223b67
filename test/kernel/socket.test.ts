import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect as connectTcp, Socket } from 'node:net'
import type { Writable } from 'node:stream'
import { test } from 'node:test'
import { WebSocket } from 'ws'
import { AppError, defineEvent, defineFrame, defineSlot, type EventSpec, errorSpec, type Principal, Type } from '../../kernel/index.ts'
import { Activity } from '../../kernel/lifecycle/scope.ts'
import type { MountedFrame } from '../../kernel/lifecycle/unit.ts'
import type { Frame, SocketClient } from '../../kernel/testing/socket.ts'
import { openGate } from '../helpers/gate.ts'
import { startHub } from '../helpers/hub.ts'

const noted = defineEvent({ type: 'note.added', scope: 'session', durable: true, payload: Type.Object({ text: Type.String() }) })
const streamed = defineEvent({
  type: 'note.delta',
  scope: 'session',
  durable: false,
  payload: Type.Object({ turnId: Type.Integer(), delta: Type.String() })
})
const born = defineEvent({ type: 'agent.born', scope: 'session', durable: true, unfiltered: true, payload: Type.Object({}) })
const worked = defineEvent({
  type: 'event.session.worked',
  scope: 'session',
  durable: true,
  deliver: 'everyone',
  payload: Type.Object({ busy: Type.Boolean() })
})
const changed = defineEvent({ type: 'event.thing.changed', scope: 'global', durable: true, payload: Type.Object({ id: Type.String() }) })

/** Frames after server_hello, up to the answer of one more request: everything sent before it has arrived. */
async function received(client: SocketClient): Promise<Frame[]> {
  const { id } = await client.request('unsubscribe', { session_ids: [] })
  const end = client.frames.findIndex(frame => frame.type === 'ack' && frame.id === id)
  return client.frames.slice(1, end).filter(frame => frame.type !== 'ack')
}

const texts = (frames: readonly Frame[]) => frames.map(frame => frame.payload.text ?? frame.payload.delta ?? frame.type)

function mounted(spec: MountedFrame['spec'], handler: (input: never) => unknown): MountedFrame {
  return {
    pack: 'test',
    name: `handler of frame ${spec.type}`,
    spec,
    handler: handler as MountedFrame['handler'],
    activity: new Activity()
  }
}

test('server_hello comes first and names the connection', async t => {
  const { connect, hub } = await startHub(t)
  const client = await connect({ headers: { 'user-agent': 'tester' } })
  const [hello] = client.frames
  const [row] = hub.clients.list()
  assert.deepEqual(hello, {
    type: 'server_hello',
    timestamp: '1970-01-01T00:00:00.000Z',
    payload: {
      ws_connection_id: row?.id,
      protocol_version: 2,
      max_event_buffer_size: 1000,
      capabilities: { event_batching: false, compression: false }
    }
  })
  assert.match(row?.id ?? '', /^conn_[0-9A-Z]{26}$/)
  assert.deepEqual(row, {
    id: row?.id,
    connected_at: '1970-01-01T00:00:00.000Z',
    remote_address: '127.0.0.1',
    user_agent: 'tester',
    has_client_hello: false,
    subscriptions: []
  })
})

test('global events reach every connection, session events only subscribers, a global session event everyone once', async t => {
  const { connect, hub } = await startHub(t)
  const [subscriber, other] = [await connect(), await connect()]
  await subscriber.request('subscribe', { session_ids: ['s1'] })
  hub.emit(noted, { text: 'a' }, 's1')
  hub.emit(worked, { busy: true }, 's1')
  hub.emit(changed, { id: 'x' })
  hub.emit(noted, { text: 'b' }, 's1')
  await hub.flushed()
  const forSubscriber = await received(subscriber)
  assert.deepEqual(
    forSubscriber.filter(frame => frame.session_id === 's1').map(frame => frame.seq),
    [1, 2, 3]
  )
  assert.deepEqual(texts(forSubscriber).sort(), ['a', 'b', 'event.session.worked', 'event.thing.changed'])
  assert.deepEqual(texts(await received(other)).sort(), ['event.session.worked', 'event.thing.changed'])
  const global = other.frames.find(frame => frame.type === changed.type)
  assert.equal(global?.session_id, '__global__')
  assert.equal(global?.seq, 1)
  assert.deepEqual(global?.payload, { type: changed.type, agentId: 'main', sessionId: '__global__', id: 'x' })
})

test('agent_filter hides other agents but not unfiltered and global session events', async t => {
  const { connect, hub } = await startHub(t)
  const client = await connect()
  await client.request('subscribe', { session_ids: ['s1'], agent_filter: { s1: ['agent-1'] } })
  hub.emit(noted, { text: 'main' }, 's1')
  hub.emit(noted, { text: 'one' }, { session_id: 's1', subject: 'agent-1' })
  hub.emit(born, {}, { session_id: 's1', subject: 'agent-2' })
  hub.emit(worked, { busy: true }, 's1')
  await hub.flushed()
  assert.deepEqual(texts(await received(client)), ['one', 'agent.born', 'event.session.worked'])

  await client.request('subscribe', { session_ids: ['s1'] })
  hub.emit(noted, { text: 'again' }, 's1')
  await hub.flushed()
  assert.equal(texts(await received(client)).at(-1), 'again')
})

test('without a rule nobody is named in events, and no field of subscribe filters', async t => {
  const { connect, hub } = await startHub(t, { subject: null })
  const client = await connect()
  await client.request('subscribe', { session_ids: ['s1'], agent_filter: { s1: ['agent-1'] } })
  hub.emit(noted, { text: 'a' }, { session_id: 's1', subject: 'agent-2' })
  const { payload } = await client.next(noted.type)
  assert.deepEqual(payload, { type: noted.type, sessionId: 's1', text: 'a' })
})

test('the rule of a pack names the field, its fallback and the filter', async t => {
  const subject = { field: 'room', fallback: 'hall', filter: 'rooms' }
  const { connect, hub } = await startHub(t, { subject })
  const client = await connect()
  await client.request('subscribe', { session_ids: ['s1'], rooms: { s1: ['hall'] } })
  hub.emit(noted, { text: 'a' }, { session_id: 's1', subject: 'attic' })
  hub.emit(noted, { text: 'b' }, 's1')
  const { payload } = await client.next(noted.type)
  assert.deepEqual(payload, { type: noted.type, room: 'hall', sessionId: 's1', text: 'b' })
})

test('text that streams comes as it was told, with its offset and the number of the last durable event', async t => {
  const { connect, hub } = await startHub(t)
  const client = await connect()
  await client.request('subscribe', { session_ids: ['s1'] })
  const type = (delta: string, offset: number) => hub.emit(streamed, { turnId: 1, delta }, { session_id: 's1', offset })
  type('ab', 0)
  type('cd', 2)
  hub.emit(noted, { text: 'note' }, 's1')
  type('e', 4)
  await hub.flushed()
  const frames = await received(client)
  assert.deepEqual(
    frames.map(frame => [frame.payload.delta ?? frame.payload.text, frame.offset, frame.seq, frame.volatile]),
    [
      ['ab', 0, 0, true],
      ['cd', 2, 0, true],
      ['note', undefined, 1, undefined],
      ['e', 4, 1, true]
    ]
  )
})

test('what is sent to a client in one go leaves with one call of the system', async t => {
  const { connect, hub } = await startHub(t)
  const client = await connect()
  await client.request('subscribe', { session_ids: ['s1'] })
  await hub.open('s1')
  const written = t.mock.method(Socket.prototype as Required<Pick<Writable, '_writev'>>, '_writev')
  for (const delta of ['a', 'b', 'c']) hub.emit(streamed, { turnId: 1, delta }, { session_id: 's1', offset: 0 })
  await client.next(frame => frame.payload?.delta === 'c')
  assert.equal(written.mock.callCount(), 1)
})

test('two subscribers get the same bytes', async t => {
  const { connect, hub } = await startHub(t)
  const clients = [await connect(), await connect()]
  for (const client of clients) await client.request('subscribe', { session_ids: ['s1'] })
  for (let i = 0; i < 200; i++) {
    hub.emit(streamed, { turnId: 1, delta: `${i},` }, { session_id: 's1', offset: i })
    if (i % 10 === 0) hub.emit(noted, { text: `n${i}` }, 's1')
  }
  await hub.flushed()
  const [first, second] = [await received(clients[0]!), await received(clients[1]!)]
  assert.deepEqual(first, second)
  const streamedText = first.flatMap(frame => frame.payload.delta ?? []).join('')
  assert.equal(streamedText, Array.from({ length: 200 }, (_, i) => `${i},`).join(''))
})

test('an ack comes after everything its frame and earlier events caused', async t => {
  const { connect, hub } = await startHub(t)
  const client = await connect()
  await client.request('subscribe', { session_ids: ['s1'] })
  await hub.open('s1')
  hub.emit(streamed, { turnId: 1, delta: 'a' }, { session_id: 's1', offset: 0 })
  await client.request('unsubscribe', { session_ids: ['s1'] })
  assert.deepEqual(
    client.frames.slice(2).map(frame => frame.type),
    ['note.delta', 'ack']
  )
  hub.emit(streamed, { turnId: 1, delta: 'b' }, { session_id: 's1', offset: 1 })
  assert.equal(hub.subscribers('s1'), 0)
  assert.deepEqual(texts(await received(client)), ['a'])
})

test('what is no frame and what has an unknown type is refused with details, in its turn, and the connection lives', async t => {
  const { connect } = await startHub(t)
  const client = await connect()
  for (const junk of ['not json', '[1]', 'null', '7', '{"type":5,"id":"x"}', '{"type":"pong"}', '{"type":"nope"}']) client.send(junk)
  const ack = await client.request('nope')
  const long = await client.request(`x${'\u{1f600}'.repeat(50)}`)
  assert.equal(long.details?.[0]?.message, `unknown frame type 'x${'\u{1f600}'.repeat(39)}'`, 'cut between characters')
  assert.equal((await client.request('subscribe', { session_ids: [] })).code, 0)
  const object = { path: '', message: 'expected an object: { type, id, payload }' }
  const unknown = { path: 'type', message: "unknown frame type 'nope'" }
  assert.deepEqual(
    client.frames.filter(frame => frame.type === 'ack').map(({ id, code, details }) => ({ id, code, details })),
    [
      { id: '', code: 40001, details: [{ path: '', message: 'the message is not valid JSON' }] },
      ...[1, 2, 3].map(() => ({ id: '', code: 40001, details: [object] })),
      { id: 'x', code: 40001, details: [{ path: 'type', message: 'expected a string' }] },
      { id: '', code: 40001, details: [unknown] }, // a pong needs no answer
      { id: ack.id, code: 40001, details: [unknown] },
      { id: long.id, code: 40001, details: long.details },
      { id: client.frames.at(-1)?.id, code: 0, details: undefined }
    ]
  )
})

test("a payload that misses its schema is refused with every wrong field, also in the kernel's own frames, and changes nothing", async t => {
  const { connect, hub } = await startHub(t, { sessions: ['s1'] })
  const client = await connect()
  const wrong = {
    session_ids: ['s1', 3],
    cursors: { s1: { seq: -1 }, s2: { seq: 0, epoch: 5 } },
    agent_filter: { s1: 'main' }
  }
  const ack = await client.request('subscribe', wrong)
  assert.equal(ack.code, 40001)
  assert.deepEqual(
    ack.details?.map(({ path }: { path: string }) => path),
    ['payload.session_ids.1', 'payload.cursors.s1.seq', 'payload.cursors.s2.epoch', 'payload.agent_filter.s1']
  )
  assert.equal(ack.msg, `${ack.details?.[0].path}: ${ack.details?.[0].message}`)
  assert.deepEqual(hub.clients.list()[0]?.subscriptions, [])
  const refused = async (type: string, payload?: unknown) => (await client.request(type, payload)).details?.[0]?.path
  assert.equal(await refused('subscribe', 'text'), 'payload')
  assert.equal(await refused('subscribe'), 'payload.session_ids')
  assert.equal(await refused('unsubscribe', { session_ids: 's1' }), 'payload.session_ids')
  assert.equal(await refused('client_hello', { subscriptions: {} }), 'payload.subscriptions')
})

test('an ack without an id carries an empty one', async t => {
  const { connect } = await startHub(t)
  const client = await connect()
  client.send({ type: 'subscribe', payload: { session_ids: [] } })
  const ack = await client.next('ack')
  assert.deepEqual(ack, {
    type: 'ack',
    id: '',
    code: 0,
    msg: 'success',
    payload: { accepted: [], not_found: [], resync_required: [], cursors: {} } as object
  })
})

test('unknown sessions are not found, duplicates are repeated, and unsubscribing always succeeds', async t => {
  const { connect, hub } = await startHub(t, { sessions: ['s1'] })
  const client = await connect()
  const { payload } = await client.request('subscribe', { session_ids: ['s1', 'nope', 's1', '../x', '__global__'] })
  const { epoch } = await hub.open('s1')
  assert.deepEqual(payload, {
    accepted: ['s1', 's1'],
    not_found: ['nope', '../x', '__global__'],
    resync_required: [],
    cursors: { s1: { seq: 0, epoch } }
  })
  assert.deepEqual(hub.clients.list()[0]?.subscriptions, ['s1'])
  const gone = await client.request('unsubscribe', { session_ids: ['s1', 'nope'] })
  assert.deepEqual(gone.payload, { accepted: [], not_found: [], resync_required: [] })
  assert.deepEqual(hub.clients.list()[0]?.subscriptions, [])
})

test('client_hello subscribes, filters and is remembered', async t => {
  const { connect, hub } = await startHub(t, { sessions: ['s1'] })
  const client = await connect()
  const hello = await client.request('client_hello', { client_id: 'c', subscriptions: ['s1', 'lost'], agent_filter: { s1: ['agent-1'] } })
  const { epoch } = await hub.open('s1')
  assert.equal(hello.code, 0)
  assert.deepEqual(hello.payload, {
    accepted_subscriptions: ['s1'],
    not_found: ['lost'],
    resync_required: ['lost'],
    cursors: { s1: { seq: 0, epoch } }
  })
  assert.equal(hub.clients.list()[0]?.has_client_hello, true)
  hub.emit(noted, { text: 'hidden' }, 's1')
  hub.emit(noted, { text: 'shown' }, { session_id: 's1', subject: 'agent-1' })
  await hub.flushed()
  assert.deepEqual(texts(await received(client)), ['shown'])
})

test('a wrong token in client_hello is told, then the connection ends with 1000', async t => {
  const { connect } = await startHub(t, { gate: openGate({ bypass: false }) })
  const client = await connect()
  assert.equal((await client.request('client_hello', { token: 'good' })).code, 0)
  assert.equal((await client.request('client_hello', { token: 'bad' })).code, 40112)
  assert.equal((await client.closed).code, 1000)
})

test('control frames run one after another in order of arrival', async t => {
  const { connect, hub } = await startHub(t)
  const client = await connect()
  const gates: (() => void)[] = []
  const wait = defineFrame({ type: 'wait', payload: Type.Object({}), ack: Type.Object({}) })
  const mark = defineFrame({ type: 'mark', payload: Type.Object({}), ack: Type.Object({}) })
  const order: string[] = []
  const waiting = new Promise<void>(seen => {
    hub.clients.frames.mount([
      mounted(wait, async () => {
        order.push('begun')
        await new Promise<void>(resolve => {
          gates.push(resolve)
          seen()
        })
        order.push('done')
        return {}
      }),
      mounted(mark, () => {
        order.push('mark')
        return {}
      })
    ])
  })
  const first = client.request('wait')
  const second = client.request('mark')
  await waiting
  gates[0]?.()
  await Promise.all([first, second])
  assert.deepEqual(order, ['begun', 'done', 'mark'])
})

test('thousands of frames sent at once are all answered in order', async t => {
  const { connect } = await startHub(t)
  const client = await connect()
  const acks = await Promise.all(Array.from({ length: 3000 }, () => client.request('subscribe', { session_ids: ['s1'] })))
  assert.deepEqual(
    client.frames.filter(frame => frame.type === 'ack').map(frame => frame.id),
    acks.map(ack => ack.id)
  )
})

test("a pack's frame is validated, answered, and its failures carry their codes", async t => {
  const full = errorSpec('box_full', 49999, 'the box is full')
  const put = defineFrame({
    type: 'put',
    payload: Type.Object({ count: Type.Integer() }),
    ack: Type.Object({ count: Type.Integer() }),
    errors: [full]
  })
  const { connect, hub, violations } = await startHub(t)
  hub.clients.frames.mount([
    mounted(put, ({ payload }: { payload: { count: number } }) => {
      if (payload.count === 1) throw new AppError(full, { data: { limit: 1 } })
      if (payload.count === 2) throw new Error('a bug')
      return payload
    })
  ])
  const client = await connect()
  assert.deepEqual((await client.request('put', { count: 0, extra: true })).payload, { count: 0 })
  assert.deepEqual(await client.request('put', { count: 1 }), {
    type: 'ack',
    id: 't2',
    code: 49999,
    msg: full.message,
    payload: { limit: 1 }
  })
  assert.deepEqual(await client.request('put', { count: 2 }), { type: 'ack', id: 't3', code: 50001, msg: 'internal error', payload: {} })
  assert.equal((await client.request('put', { count: 'x' })).code, 40001)
  assert.deepEqual(violations, [])
  hub.clients.frames.mount([])
  assert.equal((await client.request('put', { count: 0 })).code, 40001)
})

test('slots of a connection are closed with it, and it leaves the list at once', async t => {
  const { connect, hub } = await startHub(t)
  const closed = new Promise<void>(resolve => {
    const slot = defineSlot('probe', () => ({ close: resolve }))
    const open = defineFrame({ type: 'open', payload: Type.Object({}), ack: Type.Object({}) })
    hub.clients.frames.mount([
      mounted(open, ({ connection }: { connection: { get(slot: unknown): unknown } }) => {
        connection.get(slot)
        return {}
      })
    ])
  })
  const client = await connect()
  await client.request('open')
  await client.close()
  await closed
  assert.deepEqual(hub.clients.list(), [])
})

test('clients that all end in one moment are all let go, with what hung on them', async t => {
  const { connect, hub } = await startHub(t)
  const many = 300
  let held = 0
  const closed = new Promise<void>(resolve => {
    const slot = defineSlot('probe', () => ({ close: () => --held === 0 && resolve() }))
    const open = defineFrame({ type: 'open', payload: Type.Object({}), ack: Type.Object({}) })
    hub.clients.frames.mount([
      mounted(open, ({ connection }: { connection: { get(slot: unknown): unknown } }) => {
        held++
        connection.get(slot)
        return {}
      })
    ])
  })
  const clients = await Promise.all(Array.from({ length: many }, () => connect()))
  await Promise.all(clients.map(client => client.request('open')))
  assert.equal(held, many)
  for (const client of clients) client.terminate()
  await closed
  assert.deepEqual(hub.clients.list(), [])
})

test('a client that ends its side still gets what was on its way to it', async t => {
  const { connect, hub, url } = await startHub(t)
  const other = await connect()
  const socket = connectTcp({ port: Number(new URL(url).port), host: '127.0.0.1', allowHalfOpen: true })
  t.after(() => socket.destroy())
  socket.write(
    'GET /api/v1/ws HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'
  )
  while (hub.clients.list().length < 2) await once(socket, 'data')
  socket.pause()
  const id = 'x'.repeat(12 * 1024 * 1024) // more than the system takes for one socket
  hub.emit(changed, { id })
  await other.next(frame => frame.type === changed.type)
  socket.end()
  await other.request('unsubscribe', { session_ids: [] })
  let bytes = 0
  for await (const data of socket) bytes += (data as Buffer).length
  assert.ok(bytes > id.length, `${bytes} bytes came`)
  assert.equal(hub.clients.list().length, 1)
})

test('suppressed events stay away, other agents and unfiltered ones do not', async t => {
  const { connect, hub } = await startHub(t)
  let undo: (() => void) | undefined
  const watch = defineFrame({ type: 'watch', payload: Type.Object({ on: Type.Boolean() }), ack: Type.Object({}) })
  hub.clients.frames.mount([
    mounted(
      watch,
      async ({ payload, connection }: { payload: { on: boolean }; connection: import('../../kernel/index.ts').Connection }) => {
        await connection.subscribe('s1')
        if (payload.on) undo = connection.suppress('s1', 'test', (type, agent) => type === 'note.added' && agent === 'main')
        else undo?.()
        return {}
      }
    )
  ])
  const client = await connect()
  await client.request('watch', { on: true })
  hub.emit(noted, { text: 'hidden' }, 's1')
  hub.emit(noted, { text: 'shown' }, { session_id: 's1', subject: 'agent-1' })
  hub.emit(born, {}, 's1')
  await hub.flushed()
  await client.request('watch', { on: false })
  hub.emit(noted, { text: 'back' }, 's1')
  await hub.flushed()
  assert.deepEqual(texts(await received(client)), ['shown', 'agent.born', 'back'])
  await client.request('watch', { on: true })
  await client.request('unsubscribe', { session_ids: ['s1'] })
  await client.request('subscribe', { session_ids: ['s1'] })
  hub.emit(noted, { text: 'a new subscription hides nothing' }, 's1')
  await hub.flushed()
  assert.equal(texts(await received(client)).at(-1), 'a new subscription hides nothing')
})

test('the undo of a rule takes away that rule alone, not the one that has come in its place', async t => {
  const { connect, hub } = await startHub(t)
  const undos: (() => void)[] = []
  const veil = defineFrame({ type: 'veil', payload: Type.Object({}), ack: Type.Object({}) })
  hub.clients.frames.mount([
    mounted(veil, async ({ connection }: { connection: import('../../kernel/index.ts').Connection }) => {
      await connection.subscribe('s1')
      undos.push(connection.suppress('s1', 'test', () => true))
      return {}
    })
  ])
  const client = await connect()
  await client.request('veil')
  await client.request('veil')
  undos[0]?.()
  hub.emit(noted, { text: 'hidden' }, 's1')
  await hub.flushed()
  undos[1]?.()
  hub.emit(noted, { text: 'shown' }, 's1')
  await hub.flushed()
  assert.deepEqual(texts(await received(client)), ['shown'])
})

test('the first bearer subprotocol is echoed whole, and none when none was offered', async t => {
  const { connect } = await startHub(t)
  assert.equal(
    (await connect({ protocols: ['other', 'svc-code.bearer.good', 'svc-code.bearer.more'] })).ws.protocol,
    'svc-code.bearer.good'
  )
  assert.equal((await connect()).ws.protocol, '')
  assert.equal((await connect({ path: '/api/v1/ws?client_id=c' })).ws.protocol, '')
})

test('refused upgrades answer 403, 401 and 429 and close; other paths get nothing', async t => {
  const answers: [Parameters<typeof openGate>[0], string][] = [
    [{ check: () => ({ origin: 'refused', headers: {} }) }, 'HTTP/1.1 403 Forbidden'],
    [{ authenticateSocket: async () => undefined }, 'HTTP/1.1 401 Unauthorized'],
    [
      { check: () => ({ refusal: new AppError(errorSpec('banned', 42901, 'x', 429)), origin: 'none', headers: {} }) },
      'HTTP/1.1 429 Too Many Requests'
    ],
    [{}, '']
  ]
  for (const [gate, expected] of answers) {
    const { url } = await startHub(t, { gate: openGate(gate) })
    const socket = connectTcp(Number(new URL(url).port), '127.0.0.1')
    const path = expected === '' ? '/api/v1/ws/x' : '/api/v1/ws'
    socket.write(
      `GET ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`
    )
    let text = ''
    socket.on('error', () => undefined)
    socket.on('data', data => {
      text += data.toString()
    })
    await once(socket, 'close')
    assert.equal(text.split('\r\n')[0], expected)
    if (expected !== '') assert.match(text, /connection: close/i)
  }
})

test('frames that arrive before the credential is checked are answered afterwards', async t => {
  let decide: (ok: boolean) => void = () => undefined
  const asked = new Promise<void>(resolve => {
    decide = () => resolve()
  })
  let admit: (who: Principal) => void = () => undefined
  const { url } = await startHub(t, {
    gate: openGate({
      authenticateSocket: () => {
        decide(true)
        return new Promise<Principal>(resolve => {
          admit = resolve
        })
      }
    })
  })
  const socket = connectTcp(Number(new URL(url).port), '127.0.0.1')
  t.after(() => socket.destroy())
  const masked = (text: string) => Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), Buffer.from(text)])
  socket.write(
    Buffer.concat([
      Buffer.from(
        'GET /api/v1/ws HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'
      ),
      masked('{"type":"subscribe","id":"early"}')
    ])
  )
  await asked
  socket.write(masked('{"type":"subscribe","id":"late"}'))
  admit({ id: 'late', kind: 'token', scopes: 'all' })
  let text = ''
  for await (const data of socket) {
    text += (data as Buffer).toString()
    if (text.includes('"late"')) break
  }
  assert.ok(text.indexOf('server_hello') < text.indexOf('"early"'))
  assert.ok(text.indexOf('"early"') < text.indexOf('"late"'))
})

test('a message over the limit ends its own connection with 1009 only', async t => {
  const { connect } = await startHub(t)
  const [loud, quiet] = [await connect(), await connect()]
  loud.send('x'.repeat(16 * 1024 * 1024 + 1))
  assert.equal((await loud.closed).code, 1009)
  assert.equal((await quiet.request('subscribe', { session_ids: [] })).code, 0)
})

test('stopping closes sockets with 1001 and refuses new ones', async t => {
  const { connect, hub, url } = await startHub(t)
  const client = await connect()
  await hub.clients.close()
  assert.deepEqual(await client.closed, { code: 1001, reason: 'server shutting down' })
  const late = new WebSocket(`${url.replace('http', 'ws')}/api/v1/ws`)
  const [error] = (await once(late, 'error')) as [Error]
  assert.ok(error)
  assert.deepEqual(hub.clients.list(), [])
})

test('a client that does not answer the close is cut when the server stops', async t => {
  const { connect, hub } = await startHub(t)
  const client = await connect()
  client.ws.pause()
  const began = performance.now()
  await hub.clients.close()
  assert.ok(performance.now() - began < 10_000, 'the socket library alone would wait half a minute')
  client.ws.resume()
  assert.ok([1001, 1006].includes((await client.closed).code))
})

test('listeners hear events in order of emission, also those emitted by listeners', async t => {
  const { hub, violations } = await startHub(t)
  const heard: unknown[] = []
  hub.on(noted.type, event => {
    if ((event.payload as { text: string }).text === 'a') {
      hub.emit(noted, { text: 'b' }, 's1')
      hub.emit(noted, { text: 'c' }, 's1')
    }
  })
  const undo = hub.on(undefined, event => heard.push((event.payload as { text: string }).text))
  hub.on(noted.type, () => {
    throw new Error('a listener that fails')
  })
  hub.emit(noted, { text: 'a' }, 's1')
  assert.deepEqual(heard, ['a', 'b', 'c'])
  undo()
  hub.emit(noted as EventSpec, { text: 5 }, 's1')
  assert.deepEqual(heard, ['a', 'b', 'c'])
  assert.match(violations[0]?.message ?? '', /note\.added.*text/)
})
