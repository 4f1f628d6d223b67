import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AppError, type Connection, defineFrame, defineOutFrame, definePack, errorSpec, PackAway, Type } from '../../kernel/index.ts'
import { type Frames, frameQueue } from '../../kernel/realtime/frames.ts'
import { startTestKernel, testEnvironment } from '../../kernel/testing.ts'

const Gone = errorSpec('thing_gone', 40999, 'no such thing')
const Invalid = errorSpec('invalid_look', 1, 'no look')
const look = defineFrame({
  type: 'look',
  payload: Type.Object({ id: Type.String(), depth: Type.Integer() }),
  ack: Type.Object({ depth: Type.Integer() }),
  errors: [Gone],
  invalid: Invalid
})
const upload = defineFrame({
  type: 'upload',
  payload: Type.Object({ name: Type.String() }),
  ack: Type.Object({ name: Type.String(), size: Type.Integer() }),
  binary: true
})
const uploaded = defineOutFrame({ type: 'uploaded', payload: Type.Object({ name: Type.String() }), binary: true })

const out = defineOutFrame({ type: 'out', payload: Type.Object({ n: Type.Integer() }), binary: true })

const looks = definePack({
  name: 'looks',
  setup(ctx) {
    ctx.frame(
      look,
      ({ payload }) => ({ depth: payload.depth }),
      ({ payload }) => {
        if ((payload as { id?: unknown }).id === 'gone') throw new AppError(Gone)
      }
    )
    ctx.outFrame(uploaded)
    ctx.frame(upload, ({ payload: { name }, bytes, connection }) => {
      connection.send({ type: uploaded.type, payload: { name } }, { bytes })
      return { name, size: bytes.length }
    })
  }
})

test('a frame that is refused after a while is not handled meanwhile', async t => {
  const handled: string[] = []
  const slow = definePack({
    name: 'slow',
    setup: ctx =>
      void ctx.frame(
        look,
        ({ payload: { id, depth } }) => {
          handled.push(id)
          return { depth }
        },
        async () => {
          await new Promise(resolve => setImmediate(resolve))
          throw new AppError(Gone)
        }
      )
  })
  const { connect } = await startTestKernel(t, { packs: [slow] })
  const client = await connect()
  assert.equal((await client.request('look', { id: 'a', depth: 1 })).code, Gone.code)
  assert.deepEqual(handled, [])
})

test('a frame may refuse with a code of its own before its payload is checked, and instead of 40001', async t => {
  const { connect } = await startTestKernel(t, { packs: [looks] })
  const client = await connect()
  assert.deepEqual(await client.request('look', { id: 'gone', depth: 'x' }), {
    type: 'ack',
    id: 't1',
    code: Gone.code,
    msg: Gone.message,
    payload: {}
  })
  assert.deepEqual(await client.request('look', { id: 'here', depth: 'x' }), {
    type: 'ack',
    id: 't2',
    code: 1,
    msg: 'invalid look payload',
    payload: {},
    details: [{ path: 'payload.depth', message: 'expected integer' }]
  })
  assert.deepEqual((await client.request('look', { id: 'here', depth: 3 })).payload, { depth: 3 })
})

test('bytes go both ways in binary messages, unchanged and in order with text', async t => {
  const { connect } = await startTestKernel(t, { packs: [looks] })
  const client = await connect()
  const bytes = Buffer.from([10, 0, 255, 123, 10, 34])
  const ack = await client.request('upload', { name: 'a' }, bytes)
  assert.deepEqual(ack.payload, { name: 'a', size: 6 })
  const [, back, last] = client.frames
  assert.equal(back?.type, 'uploaded')
  assert.deepEqual(back?.bytes, bytes)
  assert.equal(last, ack)
  assert.equal((await client.request('upload', { name: 'b' })).payload.size, 0)
})

test('a frame that takes no bytes refuses them', async t => {
  const { connect } = await startTestKernel(t, { packs: [looks] })
  const client = await connect()
  const { code, msg, details } = await client.request('look', { id: 'here', depth: 3 }, Buffer.from([1]))
  assert.deepEqual([code, msg], [40001, "frame 'look' takes no bytes"])
  assert.deepEqual(details, [{ path: '', message: msg }])
})

test('what a payload brings beside its fields is checked before it is left out', async t => {
  const names = defineFrame({
    type: 'names',
    payload: Type.Object({ of: Type.Record(Type.String(), Type.String()) }),
    ack: Type.Object({ known: Type.Array(Type.String()) })
  })
  const guest = definePack({ name: 'guest', setup: ctx => void ctx.frame(names, ({ payload }) => ({ known: Object.keys(payload.of) })) })
  const client = await (await startTestKernel(t, { packs: [guest] })).connect()
  const ask = async (of: string) => {
    client.ws.send(`{"type":"names","id":"${++asked}","payload":{"of":${of},"more":1}}`)
    return await client.next(frame => frame.id === String(asked))
  }
  let asked = 0
  assert.deepEqual((await ask('{"a\\nb":"x","__proto__":"y","constructor":"z"}')).payload, { known: ['a\nb', 'constructor'] })
  assert.deepEqual((await ask('{"a":"x","b":5}')).details, [{ path: 'payload.of.b', message: 'expected string' }])
  client.ws.send(`${'['.repeat(300)}${']'.repeat(300)}`)
  const deep = await client.next(frame => frame.id === '')
  assert.deepEqual(deep.details, [{ path: '', message: 'the message is nested more than 256 levels deep' }])
})

test('a binary message without bytes is read as text, over several lines too', async t => {
  const { connect } = await startTestKernel(t, { packs: [looks] })
  const client = await connect()
  client.ws.send(Buffer.from(JSON.stringify({ type: 'look', id: 'x', payload: { id: 'here', depth: 1 } }, null, 2)))
  assert.deepEqual((await client.next(frame => frame.id === 'x')).payload, { depth: 1 })
})

test('who sends much is told when the client does not take it, and when it does again', async t => {
  let connection: Connection | undefined
  const hello = defineFrame({ type: 'hello', payload: Type.Object({}), ack: Type.Object({}) })
  const talker = definePack({
    name: 'talker',
    setup(ctx) {
      ctx.outFrame(out)
      ctx.frame(hello, input => {
        connection = input.connection
        return {}
      })
    }
  })
  const { connect } = await startTestKernel(t, { packs: [talker] })
  const client = await connect()
  await client.request('hello')
  client.ws.pause()
  const bytes = Buffer.alloc(64 * 1024)
  let sent = 0
  for (; connection?.writable; sent++) {
    connection.send({ type: out.type, payload: { n: sent } }, { bytes })
    await new Promise(resolve => setImmediate(resolve))
  }
  let drained = false
  const waiting = connection?.drained().then(() => {
    drained = true
  })
  await new Promise(resolve => setImmediate(resolve))
  assert.equal(drained, false)
  client.ws.resume()
  await waiting
  assert.equal(connection?.writable, true)
  await client.next(frame => frame.payload?.n === sent - 1)
  client.terminate()
  await connection?.drained()
})

test('a client whose frames wait with more than a MiB is not read until they are through', async () => {
  let isRead = true
  const reads = (now: boolean) => () => {
    isRead = now
  }
  const answers: (() => void)[] = []
  const frames = {
    arrived: () => undefined,
    answer: () => new Promise<void>(resolve => answers.push(resolve))
  } as unknown as Frames
  const connection = { open: true, listen: () => undefined, send: () => undefined } as never
  const transport = { pause: reads(false), resume: reads(true) } as never
  const receive = frameQueue(testEnvironment(), frames, connection, transport)
  const frame = Buffer.from(JSON.stringify({ type: 'x', payload: { text: 'x'.repeat(600 * 1024) } }))
  const passed = () => new Promise(resolve => setImmediate(resolve))

  for (let n = 0; n < 3; n++) receive(frame, false) // one is being answered, two wait
  await passed()
  assert.equal(isRead, false)
  answers.shift()?.()
  await passed()
  assert.equal(isRead, true)
})

const wait = defineFrame({ type: 'wait', payload: Type.Object({}), ack: Type.Object({}) })

/** A pack whose handler waits until its signal aborts; `begun` resolves with each one that waits. */
function waiting() {
  const latches: (() => void)[] = []
  const begun = () => new Promise<void>(resolve => latches.push(resolve))
  const pack = definePack({
    name: 'waiting',
    setup: ctx => {
      ctx.frame(wait, async ({ signal }) => {
        latches.shift()?.()
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))
        return {}
      })
    }
  })
  return { pack, begun }
}

test('a frame that waits while its pack is unloaded is answered as unknown, and is no fault of the pack', async t => {
  const { pack, begun } = waiting()
  const { kernel, connect } = await startTestKernel(t, { packs: [pack, looks], graceMs: 20 })
  const client = await connect()
  const ready = begun()
  const ack = client.request('wait', {})
  await ready
  await kernel.unload('waiting')
  const { code, msg } = await ack
  assert.deepEqual([code, msg], [40001, "type: unknown frame type 'wait'"])
  assert.equal((await client.request('look', { id: 'here', depth: 1 })).code, 0)
})

test('a frame that waits while its pack is reloaded is told that the pack comes back, and is no fault of the pack', async t => {
  const { pack, begun } = waiting()
  const faultLimit = { count: 1, within_ms: 60_000 }
  const { kernel, connect } = await startTestKernel(t, { packs: [pack], graceMs: 20, faultLimit })
  const client = await connect()
  const ready = begun()
  const ack = client.request('wait', {})
  await ready
  await kernel.reload('waiting')
  assert.equal((await ack).code, PackAway.code)
  assert.deepEqual(kernel.features(), [{ name: 'waiting', state: 'Active', meta: {} }])
})
