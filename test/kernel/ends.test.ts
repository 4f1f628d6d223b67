/** Requests that end otherwise than their handler meant: bodies that are too large or cut off, packs that leave, connections that are given up. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import { PassThrough, Readable, Writable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { test } from 'node:test'
import { binary, definePack, defineRoute, invalid, Type } from '../../kernel/index.ts'
import { startTestKernel } from '../../kernel/testing.ts'
import { latch } from '../helpers/latch.ts'
import { startHttp } from './http-fixture.ts'

const base = { path: '/api/v1/thing', summary: 'x', data: Type.Unknown() } as const
const get = defineRoute({ ...base, method: 'GET' })
const post = defineRoute({ ...base, method: 'POST', body: Type.Unknown() })
const upload = defineRoute({ ...base, method: 'POST', bodyType: 'stream', bodyLimit: 10 })

test('an upload may be as large as its route says and no larger, announced or not', async t => {
  const http = await startHttp(t)
  const sizes: number[] = []
  http.mount([
    upload,
    async ({ request: { stream } }) => {
      const { length } = await buffer(stream)
      sizes.push(length)
      return length
    }
  ])
  const send = async (size: number, headers = {}) => (await http.send('POST', base.path, { body: Buffer.alloc(size), headers })).json
  assert.equal((await send(10)).data, 10)
  assert.equal((await send(10, { 'transfer-encoding': 'chunked' })).data, 10)
  for (const headers of [{}, { 'transfer-encoding': 'chunked' }]) {
    const { code, details } = await send(5_000, headers)
    assert.deepEqual([code, details], [40001, [{ path: 'body', message: 'is larger than 10 bytes' }]])
  }
  assert.deepEqual(sizes, [10, 10])
})

/** Sends all of a body before it reads, as browsers do; resolves to what it reads then, or to why the body could not be sent. */
async function sentWhole(port: number, lines: readonly string[], body: Iterable<string | Buffer>, last = ''): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  const head = [`POST ${base.path} HTTP/1.1`, 'Host: localhost', ...lines, '', ''].join('\r\n')
  try {
    await pipeline(Readable.from([head, ...body, last]), socket, { end: false })
    return (await buffer(socket)).toString()
  } catch (error) {
    return String(error)
  } finally {
    socket.destroy()
  }
}

const megabyte = Buffer.alloc(1_000_000, 'x')
/** What a handler may have done with the stream of an upload before it refuses it. */
const refusals: Readonly<Record<string, (stream: Readable) => Promise<unknown>>> = {
  'read beyond its limit': stream => buffer(stream),
  'led elsewhere and not any more': async stream => {
    const elsewhere = new PassThrough()
    const first = once(elsewhere, 'data')
    stream.pipe(elsewhere)
    await first
    stream.unpipe(elsewhere)
    throw invalid([{ path: 'body', message: 'not wanted' }])
  },
  'led to where nobody takes it': async stream => {
    const full = new Writable({ highWaterMark: 1, write() {} })
    stream.pipe(full)
    await once(stream, 'pause')
    throw invalid([{ path: 'body', message: 'not wanted' }])
  }
}
for (const [what, refuse] of Object.entries(refusals)) {
  test(`the rest of an upload that was ${what} is taken: its client reads why, and a short one keeps its connection`, async t => {
    const http = await startHttp(t)
    const bodyLimit = what.includes('limit') ? 10 : undefined
    http.mount([{ ...upload, bodyLimit }, ({ request: { stream } }) => refuse(stream)], [get, () => 'the next one'])
    const known = `Authorization: Bearer ${http.token}`
    const chunked = Array(50).fill(['f4240\r\n', megabyte, '\r\n']).flat()
    const answer = await sentWhole(http.port, [known, 'Transfer-Encoding: chunked'], chunked, '0\r\n\r\n')
    assert.match(answer, /^HTTP\/1\.1 200 .*connection: close.*"code":40001/is)
    const next = `GET ${base.path} HTTP/1.1\r\nHost: localhost\r\n${known}\r\nConnection: close\r\n\r\n`
    const kept = bodyLimit === undefined ? ['Content-Length: 1000000'] : ['Content-Length: 11']
    const both = await sentWhole(http.port, [known, ...kept], [bodyLimit === undefined ? megabyte : 'x'.repeat(11)], next)
    assert.match(both, /"code":40001.*"data":"the next one"/s)
  })
}

for (const [what, status, answer] of [
  ['nothing', 204, () => undefined],
  ['a stream', 200, () => binary({ stream: Readable.from(['some ', 'bytes']), type: 'text/plain' })],
  ['a file', 200, () => binary({ file: import.meta.filename, type: 'text/plain' })]
] as const) {
  test(`the rest of an upload that is answered with ${what} before its end is taken: the answer arrives, and a short one keeps its connection`, async t => {
    const http = await startHttp(t)
    const early = async (stream: Readable) => {
      await once(stream, 'readable')
      stream.read(1)
      return answer()
    }
    http.mount([{ ...upload, bodyLimit: undefined, status }, ({ request: { stream } }) => early(stream)], [get, () => 'the next one'])
    const known = `Authorization: Bearer ${http.token}`
    const chunked = Array(50).fill(['f4240\r\n', megabyte, '\r\n']).flat()
    const long = await sentWhole(http.port, [known, 'Transfer-Encoding: chunked'], chunked, '0\r\n\r\n')
    assert.match(long, new RegExp(`^HTTP/1\\.1 ${status} .*connection: close`, 'is'))
    const next = `GET ${base.path} HTTP/1.1\r\nHost: localhost\r\n${known}\r\nConnection: close\r\n\r\n`
    const both = await sentWhole(http.port, [known, 'Content-Length: 1000000'], [megabyte], next)
    assert.match(both, new RegExp(`^HTTP/1\\.1 ${status} .*"data":"the next one"`, 'is'))
  })
}

test('an upload beyond its limit that nobody reads hurts nobody', async t => {
  const http = await startHttp(t)
  http.mount([upload, () => 'not interested'])
  const answer = await http.send('POST', base.path, { body: Buffer.alloc(5_000), headers: { 'transfer-encoding': 'chunked' } })
  assert.equal(answer.json.data, 'not interested')
})

test('a handler reads the end of an upload whose client goes away', async t => {
  const http = await startHttp(t)
  let failed: (error: Error) => void = () => undefined
  const failure = new Promise<Error>(resolve => {
    failed = resolve
  })
  let entered: () => void = () => undefined
  const reading = new Promise<void>(resolve => {
    entered = resolve
  })
  http.mount([
    upload,
    ({ request: { stream } }) => {
      entered()
      return buffer(stream).catch(failed)
    }
  ])
  const headers = { authorization: `Bearer ${http.token}`, 'content-length': 8 }
  const req = request({ port: http.port, method: 'POST', path: base.path, headers })
  req.on('error', () => {})
  req.write('abc')
  await reading
  req.destroy()
  assert.match((await failure).message, /aborted|ended early/)
})

test('a client that goes away while its password is checked, or in the middle of its body, is not waited for', async t => {
  const http = await startHttp(t, { password: 'secret', level: 'debug' })
  let read: () => void = () => undefined
  const uploaded = new Promise<void>(resolve => {
    read = resolve
  })
  const other = defineRoute({ ...upload, path: '/api/v1/upload' })
  http.mount([post, () => 1], [get, () => 1], [other, ({ request: { stream } }) => buffer(stream).finally(read)])
  const begin = async (path: string, credential: string, length: number) => {
    const socket = connect(http.port, '127.0.0.1')
    const head = `Host: localhost\r\nAuthorization: Bearer ${credential}\r\nContent-Type: application/json\r\nContent-Length: ${length}`
    socket.write(`POST ${path} HTTP/1.1\r\n${head}\r\n\r\n{`)
    await once(socket, 'connect')
    return socket
  }
  const gone = (times: number) =>
    new Promise<void>(resolve => {
      const look = setInterval(() => {
        if (http.logs.filter(line => line.includes('the client went away')).length < times) return
        clearInterval(look)
        resolve()
      }, 5)
    })
  const checked = [await begin(base.path, 'secret', 100), await begin(other.path, 'secret', 8)]
  for (const socket of checked) socket.resetAndDestroy()
  await uploaded
  await gone(2)

  const sending = await begin(base.path, http.token, 100)
  for (let round = 0; round < 3; round++) await http.send('GET', base.path) // by now its body is being read
  sending.resetAndDestroy()
  await gone(3)
})

test('a handler that ignores its signal is given up when its pack leaves, and the pack is named', async t => {
  const logs: string[] = []
  const streams: Readable[] = []
  let entered: () => void = () => undefined
  const running = new Promise<void>(resolve => {
    entered = resolve
  })
  let answer: (value: unknown) => void = () => undefined
  const deaf = definePack({
    name: 'deaf',
    setup(ctx) {
      ctx.route(get, () => {
        entered()
        return new Promise(resolve => {
          answer = resolve
        })
      })
    }
  })
  const log = { level: 'error', to: { write: (line: string) => logs.push(line) } } as const
  const { call, kernel } = await startTestKernel(t, { packs: [deaf], graceMs: 20, log })
  const asked = call(get)
  await running
  await kernel.unload('deaf')
  const { status, code } = await asked
  assert.deepEqual([status, code], [404, 40400])
  const line = JSON.parse(logs[0] ?? '{}')
  assert.deepEqual([line.pack, line.msg], ['deaf', 'route GET /api/v1/thing failed'])
  streams.push(new Readable({ read() {} }))
  answer(binary({ stream: streams[0]!, type: 'text/plain' }))
  await once(streams[0]!, 'close')
})

test('a fault of a handler is put down to its pack', async t => {
  const pack = definePack({
    name: 'broken',
    setup: ctx => {
      ctx.route(get, () => {
        throw new Error('boom')
      })
    }
  })
  const { call, kernel } = await startTestKernel(t, { packs: [pack] })
  const { code, msg } = await call(get)
  assert.deepEqual([code, msg], [50001, 'internal error'])
  assert.deepEqual(kernel.features()[0]?.meta.faults, { count: 1, last: 'route GET /api/v1/thing: boom' })
})

test('requests of one connection end with it, also those whose turn to be answered has not come', async t => {
  const http = await startHttp(t)
  const waits = defineRoute({ ...base, method: 'GET', path: '/api/v1/wait' })
  const streams = defineRoute({ ...base, method: 'GET', path: '/api/v1/stream' })
  const entered = latch()
  const ended = latch()
  const until = (signal: AbortSignal) => new Promise(resolve => signal.addEventListener('abort', resolve))
  const endless = new Readable({ read: () => void setImmediate(() => endless.push(Buffer.alloc(64 * 1024))) })
  http.mount(
    [get, ({ signal }) => until(signal)],
    [streams, () => binary({ stream: endless, type: 'text/plain' })],
    [
      waits,
      ({ signal }) => {
        entered.open()
        return until(signal).then(() => ended.open())
      }
    ]
  )
  const socket = connect(http.port, '127.0.0.1')
  const line = ({ path }: { readonly path: string }) =>
    `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${http.token}\r\n\r\n`
  socket.write(line(get) + line(streams) + line(waits))
  await entered.opened

  socket.destroy()

  await ended.opened
  if (!endless.destroyed) await once(endless, 'close')
})

test('the clock of an upload ends with it, however long the answer takes then', async t => {
  const http = await startHttp(t)
  const clocks: (number | undefined)[] = []
  const look = (stream: Readable) => clocks.push((stream as IncomingMessage).socket.timeout)
  http.mount([
    defineRoute({ ...base, method: 'POST', bodyType: 'stream' }),
    async ({ request: { stream } }) => {
      look(stream)
      await buffer(stream)
      look(stream)
      return 'read'
    }
  ])
  assert.equal((await http.send('POST', base.path, { body: 'abc' })).json.data, 'read')
  assert.deepEqual(clocks, [300_000, 0])
})
