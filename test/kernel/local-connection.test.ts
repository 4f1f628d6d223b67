import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Connection, defineEvent, defineFrame, definePack, type LocalClient, type Principal, Type } from '../../kernel/index.ts'
import { type Frame, startTestKernel } from '../../kernel/testing.ts'
import { latch } from '../helpers/latch.ts'

const noted = defineEvent({ type: 'note.added', scope: 'session', durable: true, payload: Type.Object({ text: Type.String() }) })
const who = defineFrame({
  type: 'who',
  payload: Type.Object({}),
  ack: Type.Object({ id: Type.String(), size: Type.Integer() }),
  binary: true
})
const hidden = defineFrame({ type: 'hidden', scope: 'secrets', payload: Type.Object({}), ack: Type.Object({}) })

const wait = defineFrame({ type: 'wait', payload: Type.Object({}), ack: Type.Object({}) })

async function scene(t: Parameters<typeof startTestKernel>[0], connectionBufferBytes = 8 * 1024 * 1024) {
  const hold = latch()
  let emit: (payload: { text: string }, session: string) => void = () => undefined
  const pack = definePack({
    name: 'notes',
    setup(ctx) {
      emit = ctx.event(noted)
      ctx.tap(ctx.hooks.attachStream, async id => {
        await ctx.streams.open(id)
        return 'live' as const
      })
      ctx.frame(who, ({ connection, bytes }) => ({ id: connection.principal.id, size: bytes.length }))
      ctx.frame(hidden, () => ({}))
      ctx.frame(wait, async () => {
        await hold.opened
        return {}
      })
    }
  })
  const it = await startTestKernel(t, { packs: [pack], connectionBufferBytes })
  return { ...it, hold, emit: (text: string) => emit({ text }, 's1') }
}

/** Records what a client in this process gets. */
class Recorder implements LocalClient {
  readonly frames: Frame[] = []
  readonly over = latch<{ code: number; reason: string }>()
  readonly #look = new Set<() => void>()
  readonly principal?: Principal
  readonly user_agent = 'recorder'

  constructor(principal?: Principal) {
    if (principal) this.principal = principal
  }

  message(data: Buffer): void {
    this.frames.push(JSON.parse(data.toString()) as Frame)
    for (const look of this.#look) look()
  }

  closed(code: number, reason: string): void {
    this.over.open({ code, reason })
  }

  async next(fits: (frame: Frame) => boolean): Promise<Frame> {
    for (;;) {
      const found = this.frames.find(fits)
      if (found) return found
      await new Promise<void>(resolve => {
        const look = () => {
          this.#look.delete(look)
          resolve()
        }
        this.#look.add(look)
      })
    }
  }
}

test('code of this process is a client like any other: hello, subscription, events, acks, in order', async t => {
  const { kernel, emit } = await scene(t)
  const client = new Recorder()
  const connection = kernel.connect(client)
  await connection.send({ type: 'subscribe', id: '1', payload: { session_ids: ['s1'] } })
  await client.next(frame => frame.id === '1')
  emit('a')
  await client.next(frame => frame.type === noted.type)
  assert.deepEqual(
    client.frames.map(frame => frame.type),
    ['server_hello', 'ack', noted.type]
  )
  assert.equal(client.frames[0]?.payload.ws_connection_id, connection.id)
  const [row] = kernel.hub.clients.list()
  assert.deepEqual([row?.id, row?.remote_address, row?.user_agent, row?.subscriptions], [connection.id, null, 'recorder', ['s1']])
  connection.close()
  assert.deepEqual(await client.over.opened, { code: 1000, reason: '' })
  assert.deepEqual(kernel.hub.clients.list(), [])
})

test('its principal is that of the process unless it brings one, and scopes hold for frames', async t => {
  const { kernel } = await scene(t)
  const ask = async (type: string, principal?: Principal) => {
    const client = new Recorder(principal)
    await kernel.connect(client).send({ type, id: '1' }, Buffer.from('abc'))
    const { code, payload } = await client.next(frame => frame.id === '1')
    return [code, payload.id, payload.size]
  }
  const guest: Principal = { id: 'guest', kind: 'in-process', scopes: ['api'] }
  assert.deepEqual(await ask('who'), [0, 'in-process', 3])
  assert.deepEqual(await ask('who', guest), [0, 'guest', 3])
  assert.equal((await ask('hidden', guest))[0], 40302)
  assert.equal((await ask('subscribe', { ...guest, scopes: [] }))[0], 40302)
})

test('a client in this process that takes nothing is cut like a slow socket, and others go on', async t => {
  const { kernel, emit, connect } = await scene(t, 64 * 1024)
  const other = await connect()
  await other.request('subscribe', { session_ids: ['s1'] })
  const over = latch<number>()
  const slow = kernel.connect({
    message: () => new Promise(() => undefined),
    closed: code => over.open(code)
  })
  await slow.send({ type: 'subscribe', payload: { session_ids: ['s1'] } })
  while (kernel.hub.subscribers('s1') < 2) await other.request('unsubscribe', { session_ids: [] })
  for (let n = 0; n < 20; n++) {
    emit('x'.repeat(8 * 1024))
    await other.next(frame => frame.seq === n + 1)
  }
  assert.equal(await over.opened, 1013)
})

test('a client in this process that fails loses its connection, and the stop ends the others with 1001', async t => {
  const { kernel, stop } = await scene(t)
  const failed = latch<number>()
  kernel.connect({
    message() {
      throw new Error('a bug')
    },
    closed: code => failed.open(code)
  })
  assert.equal(await failed.opened, 1011)
  const client = new Recorder()
  kernel.connect(client)
  await stop()
  assert.deepEqual(await client.over.opened, { code: 1001, reason: 'server shutting down' })
  assert.throws(() => kernel.connect(client), /stopping/)
})

test('a client in this process that fails when it is told of its end hurts nobody: it is logged', async t => {
  const lines: string[] = []
  const log = { to: { write: (line: string) => void lines.push(line) } }
  const { kernel, stop } = await startTestKernel(t, { packs: [], log })
  kernel.connect({
    message: () => undefined,
    closed() {
      throw new Error('a bug')
    }
  })
  await stop()
  assert.ok(lines.some(line => line.includes('failed at its end') && line.includes('a bug')))
})

test('limits of time that are longer than a timer can wait are the longest, and not none', async t => {
  const never = Number.POSITIVE_INFINITY
  const slow = definePack({
    name: 'slow',
    setup(ctx) {
      ctx.frame(wait, async () => {
        await new Promise(resolve => setTimeout(resolve, 5)) // what was no time was one millisecond
        return {}
      })
    }
  })
  const limits = { frameTimeoutMs: never, firstFrameMs: never, setupTimeoutMs: never, graceMs: never }
  const { connect } = await startTestKernel(t, { packs: [slow], ...limits })
  const socket = await connect()
  assert.equal((await socket.request('wait', {})).code, 0)
})

test('connections of a principal can be ended, others stay', async t => {
  const { kernel, connect } = await scene(t)
  const guest = new Recorder({ id: 'guest', kind: 'in-process', scopes: 'all' })
  kernel.connect(guest)
  const other = await connect()
  kernel.hub.clients.disconnect(principal => principal.id === 'guest', 'credential withdrawn')
  const moment = new Promise(resolve => setImmediate(resolve, 'it has taken everything and is waited for all the same'))
  assert.deepEqual(await Promise.race([guest.over.opened, moment]), { code: 1008, reason: 'credential withdrawn' })
  assert.equal((await other.request('unsubscribe', { session_ids: [] })).code, 0)
})

test('whoever sends more frames than are answered is held back until they are', async t => {
  const { kernel, hold } = await scene(t)
  const client = new Recorder()
  const connection = kernel.connect(client)
  await connection.send({ type: 'wait', id: 'first' })
  for (let n = 0; n < 256; n++) await connection.send({ type: 'who', id: `${n}` })
  let sent = false
  const last = connection.send({ type: 'who', id: 'last' }).then(() => {
    sent = true
  })
  await new Promise(resolve => setImmediate(resolve))
  assert.equal(sent, false)
  hold.open()
  await last
  await client.next(frame => frame.id === 'last')
  assert.deepEqual(
    client.frames.slice(1).map(frame => frame.id),
    ['first', ...Array.from({ length: 256 }, (_, n) => `${n}`), 'last']
  )
})

test('whoever is held back is let go when the connection ends', async t => {
  const { kernel, hold } = await scene(t)
  const connection = kernel.connect(new Recorder())
  await connection.send({ type: 'wait', id: 'first' })
  for (let n = 0; n < 256; n++) await connection.send({ type: 'who', id: `${n}` })
  let isLetGo = false
  void connection.send({ type: 'who', id: 'last' }).then(() => {
    isLetGo = true
  })
  connection.close()
  await new Promise(resolve => setImmediate(resolve))
  assert.equal(isLetGo, true)
  hold.open()
})

test('whoever sends much to a client in this process is told when that has taken it', async t => {
  const taken = latch()
  const connections: Connection[] = []
  const greet = defineFrame({ type: 'greet', payload: Type.Object({}), ack: Type.Object({}) })
  const pack = definePack({
    name: 'sender',
    setup: ctx => {
      ctx.frame(greet, ({ connection }) => {
        connections.push(connection)
        return {}
      })
    }
  })
  const { kernel } = await startTestKernel(t, { packs: [pack] })
  const asked = latch()
  const client = kernel.connect({
    message: data => {
      const { type } = JSON.parse(data.toString()) as Frame
      if (type === 'ack') asked.open()
      return type === 'much' ? taken.opened : undefined
    }
  })
  await client.send({ type: 'greet', id: '1', payload: {} })
  await asked.opened
  const [connection] = connections
  connection?.send({ type: 'much', text: 'x'.repeat(100_000) })
  assert.equal(connection?.writable, false)
  let isDrained = false
  const drained = connection?.drained().then(() => {
    isDrained = true
  })
  for (let round = 0; round < 5; round++) await new Promise(resolve => setImmediate(resolve))
  assert.equal(isDrained, false)
  taken.open()
  await drained
  assert.equal(connection?.writable, true)
})

test('a client in this process that has said nothing hears at once what is for everyone', async t => {
  const told = defineEvent({ type: 'note.told', scope: 'session', durable: true, deliver: 'everyone', payload: Type.Object({}) })
  let emit: (session: string) => void = () => undefined
  const pack = definePack({
    name: 'teller',
    setup: ctx => {
      const tell = ctx.event(told)
      emit = session => tell({}, session)
    }
  })
  const { kernel } = await startTestKernel(t, { packs: [pack] })
  const client = new Recorder()
  kernel.connect(client)
  emit('s1')
  await kernel.hub.flushed('s1')
  await new Promise(resolve => setImmediate(resolve))
  assert.deepEqual(
    client.frames.map(({ type }) => type),
    ['server_hello', 'note.told']
  )
})

test('a client in this process that closes gets nothing any more, whatever waits', async t => {
  const { kernel } = await scene(t)
  const [first, taken] = [latch(), latch()]
  const got: string[] = []
  const client = kernel.connect({
    message: data => {
      got.push((JSON.parse(data.toString()) as Frame).type)
      first.open()
      return taken.opened
    }
  })
  await first.opened
  await client.send({ type: 'who', id: '1', payload: {} })
  for (let round = 0; round < 5; round++) await new Promise(resolve => setImmediate(resolve)) // the ack waits behind the hello
  client.close()
  taken.open()
  for (let round = 0; round < 5; round++) await new Promise(resolve => setImmediate(resolve))
  assert.deepEqual(got, ['server_hello'])
})
